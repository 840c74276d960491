//! Checkpoints and their exact evaluation: a Hugging Face folder becomes checked weights, a clear model, prepared weights
//! for the encrypted step and a calibration table.
//!
//! Builds on `taciturn-approx`. Does no encryption.

mod assumed;
mod bounds;
mod calibrate;
mod checkpoint;
mod clear;
mod config;
mod elements;
mod error;
mod files;
mod folded;
mod matrix;
mod observe;
mod prepared;
pub mod random;
mod rope;
mod shift;
mod site;
mod softmax;
mod step;
mod tensors;
mod tokenizer;
mod weights;

pub use assumed::assumed_for;
pub use bounds::measure_bounds;
pub use calibrate::{
    CALIBRATION_FILE, CalibrationOptions, beta_name, calibrate, key_shift_name, load_calibration,
    overshoot, save_calibration,
};
pub use checkpoint::Checkpoint;
pub use clear::{ClearCache, ClearModel, log_sum_exp};
pub use config::{Activation, Architecture, LlamaTensors, ModelConfig};
pub use error::ModelError;
pub use folded::{FoldedLinear, FoldedMatrix};
pub use matrix::Matrix;
pub use observe::denominator_name;
pub use prepared::{LayerPrefix, Prepared, PreparedBlock};
pub use rope::Rope;
pub use site::{Observer, Site};
pub use step::{Pass, Selection, StepModel, StepSite, Witness, plan_over};
pub use tokenizer::TextTokenizer;
pub use weights::{BlockWeights, LinearWeights, NormWeights, Weights};
