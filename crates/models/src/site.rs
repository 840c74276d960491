//! Names of the places in a model whose values are observed and calibrated.

use std::fmt;

/// A place in the model's step. `Display` gives the key used in calibration tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// What enters the first block, centred where norms subtract the mean: `width` values.
    Embedding,
    /// Mean of squares of the residual stream plus epsilon, before attention: one value.
    Norm1Variance(usize),
    /// Mean of squares plus epsilon of every head's query, where queries are normed: `heads` values.
    QueryVariance(usize),
    /// The same of every head's key: `kv_heads` values.
    KeyVariance(usize),
    /// Queries as they meet the keys, rotary embedding and `1/sqrt(head width)` applied, head after head: `heads * head_width` values.
    Queries(usize),
    /// Keys of this token as they are cached: `kv_heads * head_width` values.
    Keys(usize),
    /// Values of this token: `kv_heads * head_width` values.
    Values(usize),
    /// Scores before the softmax, per head the tokens 0..=position: `heads * (position + 1)` values.
    Scores(usize),
    /// Logarithm of each head's sum of exponentials of its scores: `heads` values.
    LogSumExp(usize),
    /// Weighted sums of the values, head after head: `heads * head_width` values.
    Attention(usize),
    /// Residual stream after attention, centred as the embedding: `width` values.
    ResidualMiddle(usize),
    /// As [`Site::Norm1Variance`], before the feed-forward block.
    Norm2Variance(usize),
    /// Input of the activation: `hidden` values.
    Hidden(usize),
    /// Residual stream after the block, centred as the embedding: `width` values.
    Residual(usize),
    /// As [`Site::Norm1Variance`], before the head.
    FinalVariance,
    /// Logits: `vocabulary` values.
    Logits,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (layer, part) = match *self {
            Self::Embedding => return f.write_str("embedding"),
            Self::FinalVariance => return f.write_str("final.variance"),
            Self::Logits => return f.write_str("logits"),
            Self::Norm1Variance(layer) => (layer, "norm1.variance"),
            Self::QueryVariance(layer) => (layer, "query_norm.variance"),
            Self::KeyVariance(layer) => (layer, "key_norm.variance"),
            Self::Queries(layer) => (layer, "queries"),
            Self::Keys(layer) => (layer, "keys"),
            Self::Values(layer) => (layer, "values"),
            Self::Scores(layer) => (layer, "scores"),
            Self::LogSumExp(layer) => (layer, "log_sum_exp"),
            Self::Attention(layer) => (layer, "attention"),
            Self::ResidualMiddle(layer) => (layer, "residual_middle"),
            Self::Norm2Variance(layer) => (layer, "norm2.variance"),
            Self::Hidden(layer) => (layer, "hidden"),
            Self::Residual(layer) => (layer, "residual"),
        };
        write!(f, "layer{layer}.{part}")
    }
}

/// Sees the values at every site while a model runs. `()` looks away.
pub trait Observer {
    /// Called once per site and token, in the order of computation.
    fn observe(&mut self, site: Site, values: &[f64]);
}

impl Observer for () {
    fn observe(&mut self, _: Site, _: &[f64]) {}
}
