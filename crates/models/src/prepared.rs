//! Weights as the encrypted step uses them: every norm's scale and offset folded into the next product, every writer of the
//! residual stream centred, so that LayerNorm is RMSNorm and nothing subtracts a mean under encryption.

use taciturn_approx::Calibration;

use crate::calibrate::key_shift_name;
use crate::checkpoint::{Checkpoint, LinearWeights, NormWeights};
use crate::clear::ClearCache;
use crate::config::Gpt2Config;
use crate::error::ModelError;
use crate::matrix::Matrix;

/// One decoder block: products between `x / rms(x)` and the residual stream `x`.
#[derive(Clone, Debug, PartialEq)]
pub struct PreparedBlock {
    /// `width x width`, columns head after head, `1/sqrt(head width)` folded in.
    pub query: LinearWeights,
    /// `width x width`. Its bias shifts all scores of a query alike: any other would do, and a calibrated one does better.
    pub key: LinearWeights,
    /// `width x width`.
    pub value: LinearWeights,
    /// `width x width`, rows head after head, output centred.
    pub output: LinearWeights,
    /// `width x hidden`.
    pub up: LinearWeights,
    /// `hidden x width`, output centred.
    pub down: LinearWeights,
}

/// All weights of a prepared GPT-2 model, in the clear.
///
/// A step is: `x = embed(token, position)`; per block, with `n = x / sqrt(mean(x^2) + epsilon)`, attention over `n query`,
/// `n key`, `n value` and `x += mix output`, then `x += activation(n up) down` with the new `n`; at last `n head`.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The model's shape.
    pub config: Gpt2Config,
    /// The decoder blocks.
    pub blocks: Vec<PreparedBlock>,
    /// `width x vocabulary`.
    pub head: LinearWeights,
    tokens: Matrix,
    positions: Matrix,
    key_shifts: Vec<Vec<f64>>,
}

/// Keys and values of a block for tokens that the server knows, token after token, head after head.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerPrefix {
    /// One key of `width` values per token.
    pub keys: Vec<Vec<f64>>,
    /// One value of `width` values per token.
    pub values: Vec<Vec<f64>>,
}

impl Prepared {
    /// Folds and centres the weights of a checkpoint.
    pub fn new(checkpoint: &Checkpoint) -> Self {
        let (config, weights) = (&checkpoint.config, &checkpoint.weights);
        let d = config.width;
        let scale = 1.0 / (config.head_width() as f64).sqrt();
        let blocks = weights.blocks.iter().map(|block| {
            let qkv = folded(&block.norm1, &block.qkv);
            let part = |k: usize| LinearWeights {
                weight: qkv.weight.columns(k * d, d),
                bias: qkv.bias[k * d..(k + 1) * d].to_vec(),
            };
            let query = part(0);
            PreparedBlock {
                query: LinearWeights {
                    weight: query.weight.map(|_, _, w| w * scale),
                    bias: query.bias.iter().map(|b| b * scale).collect(),
                },
                key: part(1),
                value: part(2),
                output: centred(&block.output),
                up: folded(&block.norm2, &block.up),
                down: centred(&block.down),
            }
        });
        let head = LinearWeights {
            weight: weights.head_rows().transposed(),
            bias: vec![0.0; config.vocabulary],
        };
        Self {
            blocks: blocks.collect(),
            head: folded(&weights.final_norm, &head),
            tokens: centred_rows(&weights.tokens),
            positions: centred_rows(&weights.positions),
            key_shifts: vec![vec![0.0; d]; config.layers],
            config: config.clone(),
        }
    }

    /// Adds the calibrated shift `layer{i}.key_shift` to every key bias. The function computed stays the same; the ranges in
    /// the table hold only with it.
    pub fn shift_keys(&mut self, calibration: &Calibration) -> Result<(), ModelError> {
        let layers = self.blocks.iter_mut().zip(&mut self.key_shifts).enumerate();
        for (layer, (block, total)) in layers {
            let shift = calibration.constant(&key_shift_name(layer), self.config.width)?;
            for ((bias, total), s) in block.key.bias.iter_mut().zip(total).zip(shift) {
                *bias += s;
                *total += s;
            }
        }
        Ok(())
    }

    /// The centred embedding of a token at a position: `width` values.
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
        let rows = self
            .tokens
            .row(token as usize)
            .iter()
            .zip(self.positions.row(position));
        Ok(rows.map(|(&t, &p)| f64::from(t) + f64::from(p)).collect())
    }

    /// Keys and values of the public tokens that the clear model has put into `cache`, per block. Keys carry the shift of this
    /// model's key biases.
    pub fn prefix(&self, cache: &ClearCache) -> Vec<LayerPrefix> {
        let tokens = 0..cache.position();
        let prefix = self.key_shifts.iter().enumerate().map(|(layer, shift)| {
            let shifted = |t| {
                cache
                    .key(layer, t)
                    .iter()
                    .zip(shift)
                    .map(|(k, s)| k + s)
                    .collect()
            };
            LayerPrefix {
                keys: tokens.clone().map(shifted).collect(),
                values: tokens
                    .clone()
                    .map(|t| cache.value(layer, t).to_vec())
                    .collect(),
            }
        });
        prefix.collect()
    }
}

/// The product after a norm: `(n gamma + beta) W + b = n (gamma W) + (beta W + b)`.
fn folded(norm: &NormWeights, linear: &LinearWeights) -> LinearWeights {
    LinearWeights {
        weight: linear.weight.map(|i, _, w| norm.gamma[i] * w),
        bias: folded_bias(norm, linear),
    }
}

fn folded_bias(norm: &NormWeights, linear: &LinearWeights) -> Vec<f64> {
    linear.weight.affine(&norm.beta, &linear.bias)
}

/// The product followed by the subtraction of its output's mean.
fn centred(linear: &LinearWeights) -> LinearWeights {
    let mean = linear.bias.iter().sum::<f64>() / linear.bias.len() as f64;
    LinearWeights {
        weight: centred_rows(&linear.weight),
        bias: linear.bias.iter().map(|b| b - mean).collect(),
    }
}

fn centred_rows(matrix: &Matrix) -> Matrix {
    let mean =
        |i: usize| matrix.row(i).iter().map(|&v| f64::from(v)).sum::<f64>() / matrix.cols() as f64;
    let means: Vec<f64> = (0..matrix.rows()).map(mean).collect();
    matrix.map(|i, _, w| w - means[i])
}
