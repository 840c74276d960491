//! A checkpoint folder -> checked weights.
//!
//! Reads `config.json` and either `model.safetensors` or the shards that `model.safetensors.index.json` lists. The files
//! are treated as hostile: sizes are bounded, shapes must be the configuration's, no weight may be infinite or NaN, and a
//! tensor that the configuration does not explain is an error.

mod gpt2;
mod llama;

use std::path::Path;

use crate::config::{Architecture, ModelConfig};
use crate::elements::Elements;
use crate::error::ModelError;
use crate::matrix::Matrix;
use crate::tensors::Tensors;
use crate::weights::Weights;

/// A loaded and checked checkpoint.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Its shape.
    pub config: ModelConfig,
    /// Its weights.
    pub weights: Weights,
    /// BLAKE3 of the configuration's and the weight files' bytes, in hexadecimal. Calibration tables name it.
    pub hash: String,
}

impl Checkpoint {
    /// Loads the checkpoint in `folder`. Cost: the weight files are read twice, once for their hash. Small files are kept in memory, large
    /// ones mapped: these must not be changed or cut off while the checkpoint is in use.
    pub fn load(folder: &Path) -> Result<Self, ModelError> {
        let config = ModelConfig::load(&folder.join("config.json"))?;
        let (mut tensors, hash) = Tensors::load(folder)?;
        let mut source = Source {
            prefix: "",
            tensors: &mut tensors,
        };
        let weights = match config.architecture {
            Architecture::Gpt2 => gpt2::take(&config, &mut source)?,
            Architecture::Llama(tensors) => llama::take(&config, tensors, &mut source)?,
        };
        if let Some(name) = source.tensors.first_name() {
            return Err(ModelError::Tensor {
                name: name.into(),
                expected: format!(
                    "only the tensors of such a model with {} layers",
                    config.layers
                ),
                got: "one more".into(),
            });
        }
        Ok(Self {
            config,
            weights,
            hash,
        })
    }
}

/// Takes tensors by name, under the prefix that the checkpoint uses.
struct Source<'a> {
    tensors: &'a mut Tensors,
    prefix: &'static str,
}

impl Source<'_> {
    /// Names begin with `prefix` if that of `example` does.
    fn set_prefix(&mut self, prefix: &'static str, example: &str) {
        if self.tensors.contains(&format!("{prefix}{example}")) {
            self.prefix = prefix;
        }
    }

    fn take(&mut self, name: &str, shape: &[usize]) -> Result<Elements, ModelError> {
        self.take_named(format!("{}{name}", self.prefix), shape)
    }

    fn take_named(&mut self, name: String, shape: &[usize]) -> Result<Elements, ModelError> {
        let tensor = self.tensors.take(&name).ok_or_else(|| ModelError::Tensor {
            name: name.clone(),
            expected: format!("shape {shape:?}"),
            got: "nothing".into(),
        })?;
        if tensor.shape != shape {
            return Err(ModelError::Tensor {
                name,
                expected: format!("shape {shape:?}"),
                got: format!("shape {:?}", tensor.shape),
            });
        }
        check_finite(&name, &tensor.elements)?;
        Ok(tensor.elements)
    }

    fn matrix(&mut self, name: &str, rows: usize, cols: usize) -> Result<Matrix, ModelError> {
        let elements = self.take(name, &[rows, cols])?;
        Ok(Matrix::stored(rows, cols, elements))
    }

    fn vector(&mut self, name: &str, length: usize) -> Result<Vec<f64>, ModelError> {
        let elements = self.take(name, &[length])?;
        Ok((0..length).map(|i| f64::from(elements.at(i))).collect())
    }

    /// The head, where it is not the token embedding; it never carries the prefix.
    fn head(
        &mut self,
        config: &ModelConfig,
        tokens: &Matrix,
    ) -> Result<Option<Matrix>, ModelError> {
        const NAME: &str = "lm_head.weight";
        let wrong = |expected: &str, got: &str| ModelError::Tensor {
            name: NAME.into(),
            expected: expected.into(),
            got: got.into(),
        };
        if !self.tensors.contains(NAME) {
            return match config.tied_head {
                true => Ok(None),
                false => Err(wrong(
                    "a head, since tie_word_embeddings is false",
                    "nothing",
                )),
            };
        }
        let (rows, cols) = (config.vocabulary, config.width);
        let head = Matrix::stored(rows, cols, self.take_named(NAME.into(), &[rows, cols])?);
        match config.tied_head {
            true if head != *tokens => Err(wrong(
                "the token embedding, since tie_word_embeddings is true",
                "other values",
            )),
            true => Ok(None),
            false => Ok(Some(head)),
        }
    }
}

fn check_finite(name: &str, elements: &Elements) -> Result<(), ModelError> {
    let mut buffer = vec![0.0; elements.len().min(1 << 16)];
    for from in (0..elements.len()).step_by(buffer.len().max(1)) {
        let part = buffer.len().min(elements.len() - from);
        elements.read(from, &mut buffer[..part]);
        if let Some(at) = buffer[..part].iter().position(|v: &f32| !v.is_finite()) {
            return Err(ModelError::Tensor {
                name: name.into(),
                expected: "finite weights".into(),
                got: format!("{} at index {}", buffer[at], from + at),
            });
        }
    }
    Ok(())
}
