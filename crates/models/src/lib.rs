//! Checkpoints and their exact evaluation: a Hugging Face folder becomes checked weights, a clear model, prepared weights
//! for the encrypted step and a calibration table.
//!
//! Builds on `taciturn-approx`. Does no encryption.

mod bounds;
mod calibrate;
mod checkpoint;
mod clear;
mod config;
mod error;
mod files;
mod matrix;
mod observe;
mod prepared;
pub mod random;
mod shift;
mod site;
mod softmax;
mod step;
mod tensors;
mod tokenizer;

pub use bounds::measure_bounds;
pub use calibrate::{
    CALIBRATION_FILE, CalibrationOptions, beta_name, calibrate, key_shift_name, load_calibration,
    overshoot, save_calibration,
};
pub use checkpoint::{BlockWeights, Checkpoint, Gpt2Weights, LinearWeights, NormWeights};
pub use clear::{ClearCache, ClearModel, log_sum_exp};
pub use config::{Activation, Gpt2Config};
pub use error::ModelError;
pub use matrix::Matrix;
pub use observe::denominator_name;
pub use prepared::{LayerPrefix, Prepared, PreparedBlock};
pub use site::{Observer, Site};
pub use step::{StepModel, Witness};
pub use tokenizer::TextTokenizer;
