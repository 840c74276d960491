//! What can go wrong on the server.

use taciturn_ckks::CkksError;
use taciturn_graph::{Level, RunError};
use taciturn_models::ModelError;
use thiserror::Error;

/// A session that cannot begin or go on.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The session has processed as many tokens as its model was prepared for.
    #[error(
        "step: the session was prepared for {context} tokens and position {position} is past them; \
         begin a session with a longer context"
    )]
    ContextFull {
        /// Position of the token that came.
        position: usize,
        /// Tokens that the session can hold.
        context: usize,
    },
    /// An input that is no ciphertext of this session's parameters.
    #[error(
        "step: the encrypted input: expected {expected}, got {got}; encrypt it under {params} at level {level}"
    )]
    Input {
        /// What the session takes.
        expected: String,
        /// What came.
        got: String,
        /// Name of the parameter set.
        params: String,
        /// Level that the plan wants.
        level: Level,
    },
    /// A plan that these parameters cannot run.
    #[error(
        "session: the plan: {what}: expected {expected}, got {got}; make the plan with these parameters"
    )]
    Plan {
        /// The part of the plan.
        what: String,
        /// What the parameters offer.
        expected: String,
        /// What the plan says.
        got: String,
    },
    /// Evaluation keys that the plan needs and the client did not send.
    #[error(
        "session: {missing} of the {needed} keys that the plan needs are missing; send those of this plan and parameter set"
    )]
    Keys {
        /// Keys that the plan needs.
        needed: usize,
        /// How many of them are missing.
        missing: usize,
        /// The first of them.
        #[source]
        first: CkksError,
    },
    /// Several tokens at once where the session is not ready for them.
    #[error(
        "pass: {what}: expected {expected}; begin with permit_passes, and guess before accepting"
    )]
    Guess {
        /// What was asked for.
        what: &'static str,
        /// What it takes.
        expected: String,
    },
    /// The model cannot be used.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// An operation on ciphertexts failed.
    #[error(transparent)]
    Ckks(#[from] CkksError),
    /// The step failed.
    #[error(transparent)]
    Run(#[from] RunError<CkksError>),
}
