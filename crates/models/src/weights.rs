//! The weights of a model as stored, whatever its architecture: no folding, no centring.

use crate::matrix::Matrix;

/// Scale and offset of a norm.
#[derive(Clone, Debug, PartialEq)]
pub struct NormWeights {
    /// Scale per channel.
    pub gamma: Vec<f64>,
    /// Offset per channel; zero where the norm has none.
    pub beta: Vec<f64>,
}

/// A matrix with its bias.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearWeights {
    /// Input width x output width.
    pub weight: Matrix,
    /// One value per output; zero where there is none.
    pub bias: Vec<f64>,
}

/// One decoder block.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockWeights {
    /// Norm before attention.
    pub norm1: NormWeights,
    /// Query projection, columns head after head: `width x query width`.
    pub query: LinearWeights,
    /// Key projection: `width x key width`.
    pub key: LinearWeights,
    /// Value projection: `width x key width`.
    pub value: LinearWeights,
    /// Scale per channel of the norm of every head's query.
    pub query_norm: Option<Vec<f64>>,
    /// Scale per channel of the norm of every head's key.
    pub key_norm: Option<Vec<f64>>,
    /// Output projection of attention: `query width x width`.
    pub output: LinearWeights,
    /// Norm before the feed-forward block.
    pub norm2: NormWeights,
    /// `width x hidden`.
    pub up: LinearWeights,
    /// `width x hidden`: where there is a gate, the activation is applied to it and multiplies the other.
    pub gate: Option<LinearWeights>,
    /// `hidden x width`.
    pub down: LinearWeights,
}

/// All weights of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// `vocabulary x width`.
    pub tokens: Matrix,
    /// `positions x width`, where positions are learned.
    pub positions: Option<Matrix>,
    /// The decoder blocks.
    pub blocks: Vec<BlockWeights>,
    /// Norm before the head.
    pub final_norm: NormWeights,
    /// `vocabulary x width`; `None` if tied to the token embedding.
    pub head: Option<Matrix>,
}

impl Weights {
    /// No weight is needed for a while: pages of mapped files go.
    pub(crate) fn release(&self) {
        self.head_rows().release();
        // Any matrix of a file stands for all of it.
        for block in &self.blocks {
            let linears = [&block.query, &block.output, &block.up, &block.down];
            linears.iter().for_each(|linear| linear.weight.release());
        }
    }

    /// Rows of the head: `vocabulary x width`.
    pub fn head_rows(&self) -> &Matrix {
        self.head.as_ref().unwrap_or(&self.tokens)
    }
}
