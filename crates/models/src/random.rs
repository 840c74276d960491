//! Random checkpoints of any shape, for tests and for measuring: a folder that loads like a trained one.

mod published;
mod tensors;
mod tokenizer;
mod write;

use std::path::Path;

use serde_json::{Value, json};

use crate::config::ModelConfig;
use crate::error::ModelError;

pub use published::{PUBLISHED, Published};
use write::Precision;

/// Which configuration file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RandomFamily {
    /// `gpt2`.
    Gpt2,
    /// `llama`.
    Llama,
    /// `qwen2`: biases of queries, keys and values.
    Qwen2,
    /// `qwen3`: norms of queries and keys.
    Qwen3,
}

/// Shape and statistics of a random checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomSpec {
    /// Architecture.
    pub family: RandomFamily,
    /// Width of the residual stream.
    pub width: usize,
    /// Decoder blocks.
    pub layers: usize,
    /// Query heads; must divide the width.
    pub heads: usize,
    /// Query heads per key head; must divide the heads. GPT-2 has one.
    pub queries: usize,
    /// Feed-forward width.
    pub hidden: usize,
    /// Longest context.
    pub positions: usize,
    /// Token ids. With 257 or more a byte-level tokenizer is written too.
    pub vocabulary: usize,
    /// Whether the head is the token embedding.
    pub tied_head: bool,
    /// Standard deviation of every bias and of the norms' offsets.
    pub bias: f64,
    /// Factor on the residual stream and on everything that writes it. The logits do not depend on it: epsilon grows with its
    /// square, and a tied head is undone in the last norm.
    pub residual_scale: f64,
    /// `activation_function` or `hidden_act` of the configuration.
    pub activation: &'static str,
    /// Seed: equal seeds and shapes give equal weights.
    pub seed: u64,
}

impl Default for RandomSpec {
    fn default() -> Self {
        Self {
            family: RandomFamily::Gpt2,
            width: 96,
            layers: 2,
            heads: 3,
            queries: 1,
            hidden: 4 * 96,
            positions: 64,
            vocabulary: 260,
            tied_head: true,
            bias: 0.1,
            residual_scale: 1.0,
            activation: "gelu_new",
            seed: 1,
        }
    }
}

impl RandomSpec {
    /// Writes config.json, model.safetensors and, for a large enough vocabulary, tokenizer.json into `folder`.
    pub fn write(&self, folder: &Path) -> Result<(), ModelError> {
        let statistics = tensors::Statistics {
            bias: self.bias,
            residual_scale: self.residual_scale,
        };
        write_checkpoint(
            folder,
            &self.config(),
            &statistics,
            Precision::F32,
            self.seed,
        )
    }

    fn config(&self) -> Value {
        let epsilon = 1e-5 * self.residual_scale * self.residual_scale;
        let kind = match self.family {
            RandomFamily::Gpt2 => {
                return json!({
                    "model_type": "gpt2",
                    "architectures": ["GPT2LMHeadModel"],
                    "n_embd": self.width,
                    "n_layer": self.layers,
                    "n_head": self.heads,
                    "n_inner": self.hidden,
                    "n_positions": self.positions,
                    "vocab_size": self.vocabulary,
                    "activation_function": self.activation,
                    "layer_norm_epsilon": epsilon,
                    "tie_word_embeddings": self.tied_head,
                    "bos_token_id": 0,
                    "eos_token_id": 0,
                });
            }
            RandomFamily::Llama => "llama",
            RandomFamily::Qwen2 => "qwen2",
            RandomFamily::Qwen3 => "qwen3",
        };
        json!({
            "model_type": kind,
            "hidden_size": self.width,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.heads / self.queries.max(1),
            "head_dim": self.width / self.heads,
            "intermediate_size": self.hidden,
            "max_position_embeddings": self.positions,
            "vocab_size": self.vocabulary,
            "hidden_act": self.activation,
            "rms_norm_eps": epsilon,
            "rope_theta": 10000.0,
            "tie_word_embeddings": self.tied_head,
            "bos_token_id": 0,
            "eos_token_id": 0,
        })
    }
}

/// Writes a random checkpoint of a published shape into `folder`, which is made where it is missing; with fewer or more layers where asked for.
/// Weights are in bf16, as most of these are published, and go to the disk as they are made. The tokenizer is one of bytes, not the model's own.
pub fn write_published(
    shape: &Published,
    layers: Option<usize>,
    seed: u64,
    folder: &Path,
) -> Result<(), ModelError> {
    std::fs::create_dir_all(folder).map_err(|source| ModelError::Io {
        path: folder.into(),
        source,
    })?;
    let config = shape.config(layers);
    let statistics = tensors::Statistics::default();
    write_checkpoint(folder, &config, &statistics, Precision::Bf16, seed)
}

fn write_checkpoint(
    folder: &Path,
    config: &Value,
    statistics: &tensors::Statistics,
    precision: Precision,
    seed: u64,
) -> Result<(), ModelError> {
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).map_err(|source| ModelError::Io { path, source })
    };
    let text = config.to_string();
    let config = ModelConfig::parse(text.as_bytes(), &folder.join("config.json"))?;
    write("config.json", text.as_bytes())?;
    let tensors = tensors::tensors(&config, statistics);
    write::write_tensors(&folder.join("model.safetensors"), &tensors, precision, seed)?;
    if config.vocabulary > 256 {
        write(
            "tokenizer.json",
            tokenizer::byte_tokenizer().to_string().as_bytes(),
        )?;
    }
    Ok(())
}
