//! Random checkpoints of any shape, for tests: a folder that loads like a trained one.

use std::path::Path;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};

use crate::error::ModelError;

/// Shape and statistics of a random checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomSpec {
    /// Width of the residual stream.
    pub width: usize,
    /// Decoder blocks.
    pub layers: usize,
    /// Heads; must divide the width.
    pub heads: usize,
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
    /// `activation_function` of the configuration.
    pub activation: &'static str,
    /// Seed: equal seeds and shapes give equal weights.
    pub seed: u64,
}

impl Default for RandomSpec {
    fn default() -> Self {
        Self {
            width: 96,
            layers: 2,
            heads: 3,
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
        let config = json!({
            "model_type": "gpt2",
            "architectures": ["GPT2LMHeadModel"],
            "n_embd": self.width,
            "n_layer": self.layers,
            "n_head": self.heads,
            "n_inner": self.hidden,
            "n_positions": self.positions,
            "vocab_size": self.vocabulary,
            "activation_function": self.activation,
            "layer_norm_epsilon": 1e-5 * self.residual_scale * self.residual_scale,
            "tie_word_embeddings": self.tied_head,
            "bos_token_id": 0,
            "eos_token_id": 0,
        });
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            std::fs::write(&path, bytes).map_err(|source| ModelError::Io { path, source })
        };
        write("config.json", config.to_string().as_bytes())?;
        write("model.safetensors", &self.weights(folder)?)?;
        if self.vocabulary > 256 {
            write("tokenizer.json", byte_tokenizer().to_string().as_bytes())?;
        }
        Ok(())
    }

    fn weights(&self, folder: &Path) -> Result<Vec<u8>, ModelError> {
        let (d, hidden, f) = (self.width, self.hidden, self.residual_scale);
        let mut tensors = TensorWriter {
            rng: ChaCha8Rng::seed_from_u64(self.seed),
            tensors: Vec::new(),
        };
        let spread = |width: usize, gain: f64| gain / (width as f64).sqrt();
        tensors.normal(
            "transformer.wte.weight",
            &[self.vocabulary, d],
            0.0,
            spread(d, 2.0),
            f,
        );
        tensors.normal(
            "transformer.wpe.weight",
            &[self.positions, d],
            0.0,
            spread(d, 1.0),
            f,
        );
        for layer in 0..self.layers {
            let name = |part: &str| format!("transformer.h.{layer}.{part}");
            for norm in ["ln_1", "ln_2"] {
                tensors.normal(&name(&format!("{norm}.weight")), &[d], 1.0, 0.1, 1.0);
                tensors.normal(&name(&format!("{norm}.bias")), &[d], 0.0, self.bias, 1.0);
            }
            // Small enough writers keep the residual stream's size from layer to layer.
            for (part, rows, cols, gain, factor) in [
                ("attn.c_attn", d, 3 * d, 1.0, 1.0),
                ("attn.c_proj", d, d, 0.2, f),
                ("mlp.c_fc", d, hidden, 1.0, 1.0),
                ("mlp.c_proj", hidden, d, 0.2, f),
            ] {
                tensors.normal(
                    &name(&format!("{part}.weight")),
                    &[rows, cols],
                    0.0,
                    spread(rows, gain),
                    factor,
                );
                tensors.normal(
                    &name(&format!("{part}.bias")),
                    &[cols],
                    0.0,
                    self.bias,
                    factor,
                );
            }
        }
        let undo = if self.tied_head { 1.0 / f } else { 1.0 };
        tensors.normal("transformer.ln_f.weight", &[d], 1.0, 0.1, undo);
        tensors.normal("transformer.ln_f.bias", &[d], 0.0, self.bias, undo);
        if !self.tied_head {
            tensors.normal(
                "lm_head.weight",
                &[self.vocabulary, d],
                0.0,
                spread(d, 2.0),
                1.0,
            );
        }
        tensors.serialize(folder)
    }
}

/// Collects named tensors with normally distributed entries.
struct TensorWriter {
    rng: ChaCha8Rng,
    tensors: Vec<(String, Vec<usize>, Vec<u8>)>,
}

impl TensorWriter {
    /// Entries `factor * (mean + deviation * normal)`.
    fn normal(&mut self, name: &str, shape: &[usize], mean: f64, deviation: f64, factor: f64) {
        let count = shape.iter().product();
        let data = (0..count).flat_map(|_| {
            let value = factor * (mean + deviation * standard_normal(&mut self.rng));
            (value as f32).to_le_bytes()
        });
        self.tensors
            .push((name.into(), shape.to_vec(), data.collect()));
    }

    fn serialize(&self, folder: &Path) -> Result<Vec<u8>, ModelError> {
        let bad = |error: safetensors::SafeTensorError| ModelError::Weights {
            path: folder.join("model.safetensors"),
            got: error.to_string(),
        };
        let views = (self.tensors.iter())
            .map(|(name, shape, data)| {
                Ok((
                    name,
                    TensorView::new(Dtype::F32, shape.clone(), data).map_err(bad)?,
                ))
            })
            .collect::<Result<Vec<_>, ModelError>>()?;
        safetensors::serialize(views, None).map_err(bad)
    }
}

/// Box and Muller's transform, one of its two values.
fn standard_normal(rng: &mut impl Rng) -> f64 {
    let mut uniform = || ((rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let radius = (-2.0 * uniform().ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform()).cos()
}

/// A byte-level BPE without merges: id 0 ends a text, id 1 + n is byte n.
fn byte_tokenizer() -> Value {
    // Bytes that do not print stand for the letters from U+0100 on, in order.
    let mut unprintable = 0;
    let mut vocabulary = serde_json::Map::from_iter([("<|endoftext|>".to_owned(), json!(0))]);
    for byte in 0..=255u8 {
        let letter = if matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) {
            char::from(byte)
        } else {
            unprintable += 1;
            char::from_u32(0xff + unprintable).unwrap_or(char::REPLACEMENT_CHARACTER)
        };
        vocabulary.insert(letter.to_string(), json!(u32::from(byte) + 1));
    }
    let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [{
            "id": 0, "content": "<|endoftext|>", "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true
        }],
        "normalizer": null,
        "pre_tokenizer": byte_level,
        "post_processor": null,
        "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocabulary, "merges": []
        }
    })
}
