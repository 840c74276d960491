//! Hugging Face `config.json` -> a checked model configuration.

mod gpt2;
mod llama;

use std::path::Path;

use serde::Deserialize;

use crate::error::ModelError;
use crate::files;
use crate::rope::Rope;

/// Largest configuration file read, in bytes.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// The activation of a feed-forward block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// GeLU in its tanh form (`gelu_new`, `gelu_pytorch_tanh`).
    GeluTanh,
    /// GeLU with the error function (`gelu`).
    GeluErf,
    /// `x / (1 + exp(-x))` (`silu`, `swish`).
    Silu,
}

impl Activation {
    /// The function itself.
    pub fn apply(self, x: f64) -> f64 {
        match self {
            Self::GeluTanh => taciturn_approx::gelu_tanh(x),
            Self::GeluErf => taciturn_approx::gelu_erf(x),
            Self::Silu => taciturn_approx::silu(x),
        }
    }
}

/// Which tensors a checkpoint has, and under which names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// GPT-2: LayerNorm, learned positions, biases everywhere.
    Gpt2,
    /// Llama and its kin: RMSNorm, rotary positions, a gated feed-forward block.
    Llama(LlamaTensors),
}

/// In what the checkpoints of the Llama family differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LlamaTensors {
    /// Query, key and value projections have biases.
    pub qkv_bias: bool,
    /// The output projection of attention has a bias.
    pub output_bias: bool,
    /// The feed-forward projections have biases.
    pub mlp_bias: bool,
    /// Queries and keys are normed head by head.
    pub head_norms: bool,
}

/// Shape of a model. Every field is checked: sizes are positive and bounded, `kv_heads` divides `heads`.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// Which tensors the checkpoint has.
    pub architecture: Architecture,
    /// Width d of the residual stream.
    pub width: usize,
    /// Number of decoder blocks.
    pub layers: usize,
    /// Query heads per block.
    pub heads: usize,
    /// Key and value heads per block; a divisor of `heads`. Query heads `k * heads / kv_heads ..` share key head `k`.
    pub kv_heads: usize,
    /// Channels per head.
    pub head_width: usize,
    /// Width of the feed-forward hidden layer.
    pub hidden: usize,
    /// Longest context in tokens.
    pub positions: usize,
    /// Number of token ids.
    pub vocabulary: usize,
    /// Activation of the feed-forward block; of its gate where there is one.
    pub activation: Activation,
    /// Rotary positions, instead of learned ones.
    pub rope: Option<Rope>,
    /// Added to the variance in every norm.
    pub epsilon: f64,
    /// Whether the head shares the token embedding's weights.
    pub tied_head: bool,
    /// The token that begins every text.
    pub bos: u32,
    /// The tokens that end a text.
    pub eos: Vec<u32>,
}

impl ModelConfig {
    /// Entries of all queries, or of what attention gives: `heads * head_width`.
    pub fn query_width(&self) -> usize {
        self.heads * self.head_width
    }

    /// Entries of all keys or values of a token: `kv_heads * head_width`.
    pub fn kv_width(&self) -> usize {
        self.kv_heads * self.head_width
    }

    /// Query heads per key head.
    pub fn queries_per_head(&self) -> usize {
        self.heads / self.kv_heads
    }

    /// Whether norms subtract the mean.
    pub fn layer_norm(&self) -> bool {
        self.architecture == Architecture::Gpt2
    }

    /// Reads and checks a `config.json`.
    pub fn load(path: &Path) -> Result<Self, ModelError> {
        Self::parse(&files::read_limited(path, MAX_CONFIG_BYTES)?, path)
    }

    /// Checks the bytes of a `config.json`; `path` appears in errors only.
    pub fn parse(json: &[u8], path: &Path) -> Result<Self, ModelError> {
        #[derive(Deserialize)]
        struct Kind {
            model_type: Option<String>,
        }
        let fields = Fields { path };
        let kind: Kind = fields.read(json)?;
        match kind.model_type.as_deref() {
            Some("gpt2") => gpt2::parse(json, fields),
            Some("llama") => llama::parse(json, fields, llama::Family::Llama),
            Some("qwen2") => llama::parse(json, fields, llama::Family::Qwen2),
            Some("qwen3") => llama::parse(json, fields, llama::Family::Qwen3),
            other => Err(fields.bad(
                "model_type",
                "`gpt2`, `llama`, `qwen2` or `qwen3`",
                other.map_or("nothing".into(), |kind| format!("`{kind}`")),
            )),
        }
    }
}

/// One token id or a list of them.
#[derive(Deserialize)]
#[serde(untagged)]
enum TokenIds {
    One(u64),
    Many(Vec<u64>),
}

/// Checks of single fields.
#[derive(Clone, Copy)]
struct Fields<'a> {
    path: &'a Path,
}

impl Fields<'_> {
    fn read<'j, T: Deserialize<'j>>(self, json: &'j [u8]) -> Result<T, ModelError> {
        serde_json::from_slice(json).map_err(|source| ModelError::Json {
            path: self.path.into(),
            source,
        })
    }

    fn bad(self, field: &'static str, expected: &str, got: String) -> ModelError {
        ModelError::Config {
            path: self.path.into(),
            field,
            expected: expected.into(),
            got,
        }
    }

    fn size(
        self,
        field: &'static str,
        value: Option<u64>,
        limit: u64,
    ) -> Result<usize, ModelError> {
        match value {
            Some(n) if (1..=limit).contains(&n) => Ok(n as usize),
            other => Err(self.bad(
                field,
                &format!("a size from 1 to {limit}"),
                other.map_or("nothing".into(), |n| n.to_string()),
            )),
        }
    }

    /// A positive number, not too small or large to compute with.
    fn number(
        self,
        field: &'static str,
        value: f64,
        low: f64,
        high: f64,
    ) -> Result<f64, ModelError> {
        match value > low && value < high {
            true => Ok(value),
            false => Err(self.bad(
                field,
                &format!("a number between {low} and {high}"),
                value.to_string(),
            )),
        }
    }

    /// A switch that this version knows in one position only.
    fn only(
        self,
        field: &'static str,
        value: Option<bool>,
        needed: bool,
    ) -> Result<(), ModelError> {
        match value.filter(|&v| v != needed) {
            Some(value) => Err(self.bad(field, &needed.to_string(), value.to_string())),
            None => Ok(()),
        }
    }

    fn activation(self, field: &'static str, name: &str) -> Result<Activation, ModelError> {
        match name {
            "gelu_new" | "gelu_pytorch_tanh" => Ok(Activation::GeluTanh),
            "gelu" => Ok(Activation::GeluErf),
            "silu" | "swish" => Ok(Activation::Silu),
            other => Err(self.bad(field, "`silu`, `gelu_new` or `gelu`", format!("`{other}`"))),
        }
    }

    fn token(self, field: &'static str, id: u64, vocabulary: usize) -> Result<u32, ModelError> {
        match u32::try_from(id) {
            Ok(id) if (id as usize) < vocabulary => Ok(id),
            _ => Err(self.bad(
                field,
                &format!("an id below vocab_size = {vocabulary}"),
                id.to_string(),
            )),
        }
    }

    fn tokens(
        self,
        field: &'static str,
        ids: Option<TokenIds>,
        vocabulary: usize,
    ) -> Result<Vec<u32>, ModelError> {
        let ids = match ids {
            None => Vec::new(),
            Some(TokenIds::One(id)) => vec![id],
            Some(TokenIds::Many(ids)) => ids,
        };
        ids.into_iter()
            .map(|id| self.token(field, id, vocabulary))
            .collect()
    }
}
