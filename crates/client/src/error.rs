//! What can go wrong on the client.

use taciturn_ckks::CkksError;
use taciturn_graph::PlanError;
use taciturn_models::ModelError;
use taciturn_secret::RandomnessError;
use thiserror::Error;

/// A failure on the client's side. Nothing decrypted is in a message but the rounded extremes of a witness.
#[derive(Debug, Error)]
pub enum ClientError {
    /// A value left the interval that it was calibrated for: what was computed from it means nothing.
    #[error(
        "{site}: a value left its calibrated interval: expected [{low:.4}, {high:.4}], \
         got [{least:.4}, {greatest:.4}]; the result means nothing and no token was chosen from it"
    )]
    LeftInterval {
        /// The approximated function.
        site: String,
        /// Lower end of the interval.
        low: f64,
        /// Upper end of the interval.
        high: f64,
        /// Least decrypted value.
        least: f64,
        /// Greatest decrypted value.
        greatest: f64,
    },
    /// The server's answer lacks an output.
    #[error(
        "the server's answer has no output {name}; expected one of the plan's outputs by that name"
    )]
    MissingOutput {
        /// The output.
        name: String,
    },
    /// A sampling setting that is out of range.
    #[error("{what}: expected {expected}, got {got}")]
    Sampling {
        /// The setting.
        what: &'static str,
        /// Accepted values.
        expected: &'static str,
        /// What came.
        got: f64,
    },
    /// No randomness.
    #[error(transparent)]
    Randomness(#[from] RandomnessError),
    /// Key generation, encryption or decoding failed.
    #[error(transparent)]
    Ckks(#[from] CkksError),
    /// The plan does not fit.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The model or tokenizer refused.
    #[error(transparent)]
    Model(#[from] ModelError),
}
