//! Shapes of published models, as their configuration files give them.

use std::path::Path;

use serde_json::{Value, json};

use super::tensors::{Statistics, tensors};
use crate::config::ModelConfig;
use crate::error::ModelError;

/// The shape of a published model.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// The model's name in small letters.
    pub name: &'static str,
    config: fn() -> Value,
    /// Name of the field that counts decoder blocks.
    layers: &'static str,
}

impl Published {
    /// Its `config.json`, with another number of decoder blocks where asked for.
    pub fn config(&self, layers: Option<usize>) -> Value {
        let mut config = (self.config)();
        if let Some(layers) = layers {
            config[self.layers] = json!(layers);
        }
        config
    }

    /// How many weights it has.
    pub fn weights(&self, layers: Option<usize>) -> Result<usize, ModelError> {
        let config = self.config(layers).to_string();
        let config = ModelConfig::parse(config.as_bytes(), Path::new(self.name))?;
        let tensors = tensors(&config, &Statistics::default());
        let sizes = tensors
            .iter()
            .map(|tensor| tensor.shape.iter().product::<usize>());
        Ok(sizes.sum())
    }
}

/// Where the number of blocks is in each kind of file.
const GPT2: &str = "n_layer";
const LLAMA: &str = "num_hidden_layers";

/// All that are known by name.
pub const PUBLISHED: &[Published] = &[
    shape("gpt2-small", || gpt2(768, 12, 12), GPT2),
    shape("gpt2-medium", || gpt2(1024, 24, 16), GPT2),
    shape("tinyllama-1.1b", tinyllama, LLAMA),
    shape("smollm2-135m", smollm2, LLAMA),
    shape("llama-2-7b", llama2, LLAMA),
    shape("llama-3-8b", llama3, LLAMA),
    shape("llama-3.2-1b", llama32, LLAMA),
    shape("qwen2.5-0.5b", qwen25, LLAMA),
    shape("qwen3-0.6b", qwen3, LLAMA),
];

const fn shape(name: &'static str, config: fn() -> Value, layers: &'static str) -> Published {
    Published {
        name,
        config,
        layers,
    }
}

fn gpt2(width: usize, layers: usize, heads: usize) -> Value {
    json!({
        "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"],
        "n_embd": width, "n_layer": layers, "n_head": heads, "n_positions": 1024, "vocab_size": 50257,
        "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "bos_token_id": 50256, "eos_token_id": 50256,
    })
}

fn tinyllama() -> Value {
    json!({
        "model_type": "llama", "architectures": ["LlamaForCausalLM"],
        "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22,
        "num_attention_heads": 32, "num_key_value_heads": 4, "max_position_embeddings": 2048, "vocab_size": 32000,
        "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_scaling": null, "rope_theta": 10000.0,
        "attention_bias": false, "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2,
    })
}

fn smollm2() -> Value {
    json!({
        "model_type": "llama", "architectures": ["LlamaForCausalLM"],
        "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
        "num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 8192, "vocab_size": 49152,
        "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_scaling": null, "rope_theta": 100000,
        "attention_bias": false, "tie_word_embeddings": true, "bos_token_id": 0, "eos_token_id": 0,
    })
}

fn llama2() -> Value {
    json!({
        "model_type": "llama", "architectures": ["LlamaForCausalLM"],
        "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 4096, "vocab_size": 32000,
        "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_scaling": null, "pretraining_tp": 1,
        "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2,
    })
}

fn llama3() -> Value {
    json!({
        "model_type": "llama", "architectures": ["LlamaForCausalLM"],
        "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 8192, "vocab_size": 128256,
        "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_scaling": null, "rope_theta": 500000.0,
        "attention_bias": false, "tie_word_embeddings": false, "bos_token_id": 128000, "eos_token_id": 128001,
    })
}

fn llama32() -> Value {
    json!({
        "model_type": "llama", "architectures": ["LlamaForCausalLM"],
        "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "head_dim": 64,
        "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072, "vocab_size": 128256,
        "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
        "rope_scaling": {
            "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192
        },
        "attention_bias": false, "mlp_bias": false, "tie_word_embeddings": true,
        "bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009],
    })
}

fn qwen25() -> Value {
    json!({
        "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"],
        "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
        "num_attention_heads": 14, "num_key_value_heads": 2, "max_position_embeddings": 32768, "vocab_size": 151936,
        "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
        "use_sliding_window": false, "sliding_window": 32768, "max_window_layers": 24,
        "tie_word_embeddings": true, "bos_token_id": 151643, "eos_token_id": 151643,
    })
}

fn qwen3() -> Value {
    json!({
        "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"],
        "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "head_dim": 128,
        "num_attention_heads": 16, "num_key_value_heads": 8, "max_position_embeddings": 40960, "vocab_size": 151936,
        "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_scaling": null, "rope_theta": 1000000,
        "use_sliding_window": false, "sliding_window": null, "max_window_layers": 28, "attention_bias": false,
        "tie_word_embeddings": true, "bos_token_id": 151643, "eos_token_id": 151645,
    })
}
