//! Checkpoints and their exact evaluation: a Hugging Face folder becomes checked weights, a clear model, prepared weights
//! for the encrypted step and a calibration table.
//!
//! Builds on `taciturn-approx`. Does no encryption.

mod checkpoint;
mod clear;
mod config;
mod error;
mod files;
mod matrix;
mod site;
mod tensors;
mod tokenizer;

pub use checkpoint::{BlockWeights, Checkpoint, Gpt2Weights, LinearWeights, NormWeights};
pub use clear::{ClearCache, ClearModel, log_sum_exp};
pub use config::{Activation, Gpt2Config};
pub use error::ModelError;
pub use matrix::Matrix;
pub use site::{Observer, Site};
pub use tokenizer::TextTokenizer;
