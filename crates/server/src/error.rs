//! What can go wrong on the server.

use taciturn_ckks::CkksError;
use taciturn_graph::RunError;
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
        "step: expected a ciphertext of two polynomials at level {expected} or above, got {got}"
    )]
    Input {
        /// Level that the plan wants.
        expected: u32,
        /// What came.
        got: String,
    },
    /// A plan for another number of slots.
    #[error(
        "session: the plan is for {plan} slots, the parameters have {params}; make the plan with these parameters"
    )]
    Plan {
        /// Slots of the plan.
        plan: usize,
        /// Slots of the parameters.
        params: usize,
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
