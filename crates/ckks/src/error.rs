//! What can go wrong in the public half of the scheme.

use taciturn_ring::RingError;
use thiserror::Error;

/// A failed operation: what was asked, what was expected, what came, and what to do.
#[derive(Debug, Error)]
pub enum CkksError {
    /// A parameter set that is inconsistent or beyond its security bound.
    #[error("parameter set {name}: {what}")]
    Parameters {
        /// Name of the set.
        name: String,
        /// What is wrong with it and what to change.
        what: String,
    },
    /// A name that no parameter set has.
    #[error("unknown parameter set '{got}': expected one of {known}")]
    UnknownParameters {
        /// The name that came.
        got: String,
        /// The names that exist.
        known: String,
    },
    /// Two operands that do not fit together.
    #[error("{operation}: expected {expected}, got {got}")]
    Mismatch {
        /// The operation that refused.
        operation: &'static str,
        /// What it needs.
        expected: String,
        /// What it was given.
        got: String,
    },
    /// A value that does not fit the modulus or the integer type at the scale asked for.
    #[error(
        "{operation}: value {value:e} at scale 2^{log_scale:.2} exceeds {limit}; lower the scale or the value"
    )]
    TooLarge {
        /// The operation that refused.
        operation: &'static str,
        /// The offending value.
        value: f64,
        /// log2 of the scale.
        log_scale: f64,
        /// The limit that it exceeds.
        limit: &'static str,
    },
    /// An evaluation key that was never generated.
    #[error("no evaluation key for {what}; add it to the key requests before key generation")]
    MissingKey {
        /// Which key.
        what: String,
    },
    /// An error of the ring underneath.
    #[error(transparent)]
    Ring(#[from] RingError),
}
