//! Weights as the encrypted step uses them: every norm's scale and offset folded into the next product; where norms subtract the mean, every
//! writer of the residual stream centred, so that LayerNorm is RMSNorm and nothing subtracts a mean under encryption.

use taciturn_approx::Calibration;

use crate::calibrate::key_shift_name;
use crate::checkpoint::Checkpoint;
use crate::clear::ClearCache;
use crate::config::ModelConfig;
use crate::error::ModelError;
use crate::folded::{self, FoldedLinear, FoldedMatrix};
use crate::matrix::Matrix;
use crate::weights::{LinearWeights, NormWeights};

/// One decoder block: products between `x / rms(x)` and the residual stream `x`.
#[derive(Clone, Debug)]
pub struct PreparedBlock {
    /// Columns head after head; `1/sqrt(head width)` is folded in, unless there is a norm after it.
    pub query: FoldedLinear,
    /// Columns head after head.
    pub key: FoldedLinear,
    /// Columns head after head.
    pub value: FoldedLinear,
    /// Scale per channel after the norm of every head's query, `1/sqrt(head width)` folded in.
    pub query_norm: Option<Vec<f64>>,
    /// Scale per channel after the norm of every head's key.
    pub key_norm: Option<Vec<f64>>,
    /// For every query head what is added to the keys that it meets, after their rotary embedding. It shifts all scores of a query
    /// alike: any would do, and a calibrated one does better than none.
    pub key_shift: Vec<f64>,
    /// Rows head after head.
    pub output: FoldedLinear,
    /// First product of the feed-forward block.
    pub up: FoldedLinear,
    /// Product whose result goes through the activation and multiplies the first.
    pub gate: Option<FoldedLinear>,
    /// Second product of the feed-forward block.
    pub down: FoldedLinear,
}

/// All weights of a prepared model, in the clear.
///
/// A step is: `x = embed(token, position)`; per block, with `n = x / sqrt(mean(x^2) + epsilon)`, attention over `n query`, `n key`, `n value`
/// (queries and keys normed head by head and turned by their rotary embedding, where the model has these) and `x += mix output`, then
/// `x += activation(n up) down`, or `x += (activation(n gate) * (n up)) down`, with the new `n`; at last `n head`.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The model's shape.
    pub config: ModelConfig,
    /// The decoder blocks.
    pub blocks: Vec<PreparedBlock>,
    /// `width x vocabulary`.
    pub head: FoldedLinear,
    tokens: FoldedMatrix,
    positions: Option<FoldedMatrix>,
}

/// Keys and values of a block for tokens that the server knows, token after token, head after head.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerPrefix {
    /// One key per token, without shifts.
    pub keys: Vec<Vec<f64>>,
    /// One value per token.
    pub values: Vec<Vec<f64>>,
}

impl Prepared {
    /// Folds and centres the weights of a checkpoint. Cost: where norms subtract a mean, one pass over what writes the residual stream.
    pub fn new(checkpoint: &Checkpoint) -> Self {
        let (config, weights) = (&checkpoint.config, &checkpoint.weights);
        let scale = 1.0 / (config.head_width as f64).sqrt();
        let centre = config.layer_norm();
        let writer = |linear: &LinearWeights| match centre {
            true => FoldedLinear::centred(linear),
            false => FoldedLinear::plain(linear),
        };
        let after = FoldedLinear::after_norm;
        let blocks = weights.blocks.iter().map(|block| {
            let query = after(&block.norm1, &block.query);
            let gamma = block.query_norm.as_ref();
            PreparedBlock {
                query: match gamma {
                    Some(_) => query,
                    None => query.scaled(scale),
                },
                key: after(&block.norm1, &block.key),
                value: after(&block.norm1, &block.value),
                query_norm: gamma.map(|gamma| gamma.iter().map(|g| g * scale).collect()),
                key_norm: block.key_norm.clone(),
                key_shift: vec![0.0; config.query_width()],
                output: writer(&block.output),
                up: after(&block.norm2, &block.up),
                gate: block.gate.as_ref().map(|gate| after(&block.norm2, gate)),
                down: writer(&block.down),
            }
        });
        Self {
            blocks: blocks.collect(),
            head: head(&weights.final_norm, weights.head_rows()),
            tokens: folded::rows(&weights.tokens, centre),
            positions: weights
                .positions
                .as_ref()
                .map(|rows| folded::rows(rows, centre)),
            config: config.clone(),
        }
    }

    /// Adds the calibrated shift `layer{i}.key_shift` to the keys. The function computed stays the same; the ranges in the table hold only
    /// with it.
    pub fn shift_keys(&mut self, calibration: &Calibration) -> Result<(), ModelError> {
        for (layer, block) in self.blocks.iter_mut().enumerate() {
            let shift = calibration.constant(&key_shift_name(layer), self.config.query_width())?;
            let shifts = block.key_shift.iter_mut().zip(shift);
            shifts.for_each(|(total, s)| *total += s);
        }
        Ok(())
    }

    /// The embedding of a token at a position as it enters the first block: `width` values.
    pub fn embed(&self, token: u32, position: usize) -> Result<Vec<f64>, ModelError> {
        if token as usize >= self.config.vocabulary {
            return Err(ModelError::Token {
                token,
                vocabulary: self.config.vocabulary,
            });
        }
        if position >= self.config.positions {
            return Err(ModelError::ContextFull {
                position,
                context: self.config.positions,
            });
        }
        let mut x = self.tokens.row(token as usize);
        if let Some(positions) = &self.positions {
            let learned = positions.row(position);
            x.iter_mut().zip(learned).for_each(|(x, p)| *x += p);
        }
        Ok(x)
    }

    /// Keys and values of the public tokens that the clear model has put into `cache`, per block.
    pub fn prefix(&self, cache: &ClearCache) -> Vec<LayerPrefix> {
        let tokens = 0..cache.position();
        let prefix = (0..self.blocks.len()).map(|layer| LayerPrefix {
            keys: tokens
                .clone()
                .map(|t| cache.key(layer, t).to_vec())
                .collect(),
            values: (tokens.clone())
                .map(|t| cache.value(layer, t).to_vec())
                .collect(),
        });
        prefix.collect()
    }
}

fn head(norm: &NormWeights, rows: &Matrix) -> FoldedLinear {
    let linear = LinearWeights {
        weight: rows.transposed(),
        bias: vec![0.0; rows.rows()],
    };
    FoldedLinear::after_norm(norm, &linear)
}
