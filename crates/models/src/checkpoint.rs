//! A checkpoint folder -> checked GPT-2 weights.
//!
//! Reads `config.json` and either `model.safetensors` or the shards that `model.safetensors.index.json` lists. The files
//! are treated as hostile: sizes are bounded, shapes must be the configuration's, no weight may be infinite or NaN, and a
//! tensor that the configuration does not explain is an error.

use std::path::Path;

use crate::config::Gpt2Config;
use crate::error::ModelError;
use crate::matrix::Matrix;
use crate::tensors::{Tensor, Tensors};

/// Scale and offset of a norm.
#[derive(Clone, Debug, PartialEq)]
pub struct NormWeights {
    /// Scale per channel.
    pub gamma: Vec<f64>,
    /// Offset per channel.
    pub beta: Vec<f64>,
}

/// A matrix with its bias.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearWeights {
    /// Input width x output width.
    pub weight: Matrix,
    /// One value per output.
    pub bias: Vec<f64>,
}

/// One decoder block as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockWeights {
    /// Norm before attention.
    pub norm1: NormWeights,
    /// Query, key and value projections side by side: `width x 3 width`.
    pub qkv: LinearWeights,
    /// Output projection of attention.
    pub output: LinearWeights,
    /// Norm before the feed-forward block.
    pub norm2: NormWeights,
    /// `width x hidden`.
    pub up: LinearWeights,
    /// `hidden x width`.
    pub down: LinearWeights,
}

/// All weights of a GPT-2 model as stored (no folding, no centring).
#[derive(Clone, Debug, PartialEq)]
pub struct Gpt2Weights {
    /// `vocabulary x width`.
    pub tokens: Matrix,
    /// `positions x width`.
    pub positions: Matrix,
    /// The decoder blocks.
    pub blocks: Vec<BlockWeights>,
    /// Norm before the head.
    pub final_norm: NormWeights,
    /// `vocabulary x width`; `None` if tied to the token embedding.
    pub head: Option<Matrix>,
}

impl Gpt2Weights {
    /// Rows of the head: `vocabulary x width`.
    pub fn head_rows(&self) -> &Matrix {
        self.head.as_ref().unwrap_or(&self.tokens)
    }
}

/// A loaded and checked checkpoint.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Its shape.
    pub config: Gpt2Config,
    /// Its weights.
    pub weights: Gpt2Weights,
    /// BLAKE3 of the configuration's and the weight files' bytes, in hexadecimal. Calibration tables name it.
    pub hash: String,
}

impl Checkpoint {
    /// Loads the checkpoint in `folder`. Cost: the weight files are read once; memory holds one file and its f32 weights.
    pub fn load(folder: &Path) -> Result<Self, ModelError> {
        let config = Gpt2Config::load(&folder.join("config.json"))?;
        let (mut tensors, hash) = Tensors::load(folder)?;
        let weights = take_weights(&config, &mut tensors)?;
        Ok(Self {
            config,
            weights,
            hash,
        })
    }
}

fn take_weights(config: &Gpt2Config, tensors: &mut Tensors) -> Result<Gpt2Weights, ModelError> {
    let (d, hidden) = (config.width, config.hidden);
    let mut source = Source {
        prefix: if tensors.contains("transformer.wte.weight") {
            "transformer."
        } else {
            ""
        },
        tensors,
    };
    let tokens = source.matrix("wte.weight", config.vocabulary, d)?;
    let positions = source.matrix("wpe.weight", config.positions, d)?;
    let blocks = (0..config.layers)
        .map(|layer| {
            let name = |part: &str| format!("h.{layer}.{part}");
            Ok(BlockWeights {
                norm1: source.norm(&name("ln_1"), d)?,
                qkv: source.linear(&name("attn.c_attn"), d, 3 * d)?,
                output: source.linear(&name("attn.c_proj"), d, d)?,
                norm2: source.norm(&name("ln_2"), d)?,
                up: source.linear(&name("mlp.c_fc"), d, hidden)?,
                down: source.linear(&name("mlp.c_proj"), hidden, d)?,
            })
        })
        .collect::<Result<Vec<_>, ModelError>>()?;
    let final_norm = source.norm("ln_f", d)?;
    let head = match source.tensors.take("lm_head.weight") {
        // The head never carries the prefix: it sits beside the transformer.
        Some(head) => Some(shaped(
            "lm_head.weight".into(),
            head,
            &[config.vocabulary, d],
        )?),
        None if config.tied_head => None,
        None => {
            return Err(ModelError::Tensor {
                name: "lm_head.weight".into(),
                expected: "a head, since tie_word_embeddings is false".into(),
                got: "nothing".into(),
            });
        }
    };
    let head = head.map(|data| Matrix::new(config.vocabulary, d, data));
    if config.tied_head && head.as_ref().is_some_and(|head| *head != tokens) {
        return Err(ModelError::Tensor {
            name: "lm_head.weight".into(),
            expected: "the token embedding, since tie_word_embeddings is true".into(),
            got: "other values".into(),
        });
    }
    if let Some(name) = source.tensors.first_name() {
        return Err(ModelError::Tensor {
            name: name.into(),
            expected: format!(
                "only the tensors of a GPT-2 model with {} layers",
                config.layers
            ),
            got: "one more".into(),
        });
    }
    Ok(Gpt2Weights {
        tokens,
        positions,
        blocks,
        final_norm,
        head: head.filter(|_| !config.tied_head),
    })
}

/// Takes tensors by name, under the prefix that the checkpoint uses.
struct Source<'a> {
    tensors: &'a mut Tensors,
    prefix: &'static str,
}

impl Source<'_> {
    fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let name = format!("{}{name}", self.prefix);
        let tensor = self.tensors.take(&name).ok_or_else(|| ModelError::Tensor {
            name: name.clone(),
            expected: format!("shape {shape:?}"),
            got: "nothing".into(),
        })?;
        shaped(name, tensor, shape)
    }

    fn matrix(&mut self, name: &str, rows: usize, cols: usize) -> Result<Matrix, ModelError> {
        Ok(Matrix::new(rows, cols, self.take(name, &[rows, cols])?))
    }

    fn vector(&mut self, name: &str, length: usize) -> Result<Vec<f64>, ModelError> {
        Ok(self
            .take(name, &[length])?
            .into_iter()
            .map(f64::from)
            .collect())
    }

    fn norm(&mut self, name: &str, width: usize) -> Result<NormWeights, ModelError> {
        let gamma = self.vector(&format!("{name}.weight"), width)?;
        Ok(NormWeights {
            gamma,
            beta: self.vector(&format!("{name}.bias"), width)?,
        })
    }

    /// GPT-2 stores its projections as `Conv1D`: input width x output width.
    fn linear(
        &mut self,
        name: &str,
        rows: usize,
        cols: usize,
    ) -> Result<LinearWeights, ModelError> {
        let weight = self.matrix(&format!("{name}.weight"), rows, cols)?;
        Ok(LinearWeights {
            weight,
            bias: self.vector(&format!("{name}.bias"), cols)?,
        })
    }
}

fn shaped(name: String, tensor: Tensor, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
    if tensor.shape != shape {
        let (expected, got) = (
            format!("shape {shape:?}"),
            format!("shape {:?}", tensor.shape),
        );
        return Err(ModelError::Tensor {
            name,
            expected,
            got,
        });
    }
    if let Some(at) = tensor.data.iter().position(|v| !v.is_finite()) {
        return Err(ModelError::Tensor {
            name,
            expected: "finite weights".into(),
            got: format!("{} at index {at}", tensor.data[at]),
        });
    }
    Ok(tensor.data)
}
