//! Hugging Face `config.json` -> a checked GPT-2 configuration.

use std::path::Path;

use serde::Deserialize;

use crate::error::ModelError;
use crate::files;

/// Largest configuration file read, in bytes.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// The activation between the two products of a feed-forward block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// GeLU in its tanh form (`gelu_new`, `gelu_pytorch_tanh`).
    GeluTanh,
    /// GeLU with the error function (`gelu`).
    GeluErf,
}

impl Activation {
    /// The function itself.
    pub fn apply(self, x: f64) -> f64 {
        match self {
            Self::GeluTanh => taciturn_approx::gelu_tanh(x),
            Self::GeluErf => taciturn_approx::gelu_erf(x),
        }
    }
}

/// Shape of a GPT-2 model. Every field is checked: sizes are positive and bounded, `heads` divides `width`.
#[derive(Clone, Debug, PartialEq)]
pub struct Gpt2Config {
    /// Width d of the residual stream (`n_embd`).
    pub width: usize,
    /// Number of decoder blocks (`n_layer`).
    pub layers: usize,
    /// Attention heads per block (`n_head`).
    pub heads: usize,
    /// Width of the feed-forward hidden layer (`n_inner`, by default `4 * width`).
    pub hidden: usize,
    /// Longest context in tokens (`n_positions`).
    pub positions: usize,
    /// Number of token ids (`vocab_size`).
    pub vocabulary: usize,
    /// Activation of the feed-forward block.
    pub activation: Activation,
    /// Added to the variance in every norm (`layer_norm_epsilon`).
    pub epsilon: f64,
    /// Whether the head shares the token embedding's weights.
    pub tied_head: bool,
    /// The token that begins every text.
    pub bos: u32,
    /// The token that ends a text, if there is one.
    pub eos: Option<u32>,
}

/// The fields as they stand in the file; defaults are those of Hugging Face's `GPT2Config`.
#[derive(Deserialize)]
struct RawConfig {
    model_type: Option<String>,
    n_embd: Option<u64>,
    n_layer: Option<u64>,
    n_head: Option<u64>,
    n_inner: Option<u64>,
    n_positions: Option<u64>,
    vocab_size: Option<u64>,
    activation_function: Option<String>,
    layer_norm_epsilon: Option<f64>,
    tie_word_embeddings: Option<bool>,
    bos_token_id: Option<u64>,
    eos_token_id: Option<u64>,
    scale_attn_weights: Option<bool>,
    scale_attn_by_inverse_layer_idx: Option<bool>,
    add_cross_attention: Option<bool>,
}

impl Gpt2Config {
    /// Channels per head.
    pub fn head_width(&self) -> usize {
        self.width / self.heads
    }

    /// Reads and checks a `config.json`.
    pub fn load(path: &Path) -> Result<Self, ModelError> {
        Self::parse(&files::read_limited(path, MAX_CONFIG_BYTES)?, path)
    }

    /// Checks the bytes of a `config.json`; `path` appears in errors only.
    pub fn parse(json: &[u8], path: &Path) -> Result<Self, ModelError> {
        let raw: RawConfig = serde_json::from_slice(json).map_err(|source| ModelError::Json {
            path: path.into(),
            source,
        })?;
        let bad = |field, expected: &str, got: String| ModelError::Config {
            path: path.into(),
            field,
            expected: expected.into(),
            got,
        };
        match raw.model_type.as_deref() {
            Some("gpt2") => {}
            Some(other) => return Err(bad("model_type", "`gpt2`", format!("`{other}`"))),
            None => return Err(bad("model_type", "`gpt2`", "nothing".into())),
        }
        let size = |field, value: Option<u64>, limit: u64| match value {
            Some(n) if (1..=limit).contains(&n) => Ok(n as usize),
            Some(n) => Err(bad(
                field,
                &format!("a size from 1 to {limit}"),
                n.to_string(),
            )),
            None => Err(bad(
                field,
                &format!("a size from 1 to {limit}"),
                "nothing".into(),
            )),
        };
        let width = size("n_embd", raw.n_embd, 1 << 16)?;
        let layers = size("n_layer", raw.n_layer, 1 << 10)?;
        let heads = size("n_head", raw.n_head, 1 << 10)?;
        let hidden = size("n_inner", raw.n_inner.or(Some(4 * width as u64)), 1 << 20)?;
        let positions = size("n_positions", raw.n_positions, 1 << 20)?;
        let vocabulary = size("vocab_size", raw.vocab_size, 1 << 22)?;
        if !width.is_multiple_of(heads) {
            return Err(bad(
                "n_head",
                &format!("a divisor of n_embd = {width}"),
                heads.to_string(),
            ));
        }
        let activation = match raw.activation_function.as_deref().unwrap_or("gelu_new") {
            "gelu_new" | "gelu_pytorch_tanh" => Activation::GeluTanh,
            "gelu" => Activation::GeluErf,
            other => {
                return Err(bad(
                    "activation_function",
                    "`gelu_new` or `gelu`",
                    format!("`{other}`"),
                ));
            }
        };
        let epsilon = raw.layer_norm_epsilon.unwrap_or(1e-5);
        if !(epsilon > 0.0 && epsilon < 1.0) {
            return Err(bad(
                "layer_norm_epsilon",
                "a number between 0 and 1",
                epsilon.to_string(),
            ));
        }
        for (field, value, needed) in [
            ("scale_attn_weights", raw.scale_attn_weights, true),
            (
                "scale_attn_by_inverse_layer_idx",
                raw.scale_attn_by_inverse_layer_idx,
                false,
            ),
            ("add_cross_attention", raw.add_cross_attention, false),
        ] {
            if let Some(value) = value.filter(|&v| v != needed) {
                return Err(bad(field, &needed.to_string(), value.to_string()));
            }
        }
        let token = |field, id: u64| match u32::try_from(id) {
            Ok(id) if (id as usize) < vocabulary => Ok(id),
            _ => Err(bad(
                field,
                &format!("an id below vocab_size = {vocabulary}"),
                id.to_string(),
            )),
        };
        let bos = raw
            .bos_token_id
            .ok_or_else(|| bad("bos_token_id", "a token id", "nothing".into()))?;
        Ok(Self {
            width,
            layers,
            heads,
            hidden,
            positions,
            vocabulary,
            activation,
            epsilon,
            tied_head: raw.tie_word_embeddings.unwrap_or(true),
            bos: token("bos_token_id", bos)?,
            eos: raw
                .eos_token_id
                .map(|id| token("eos_token_id", id))
                .transpose()?,
        })
    }
}
