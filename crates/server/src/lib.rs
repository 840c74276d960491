//! The server's role: a model's steps on ciphertexts, with public material only.
//!
//! Builds on `taciturn-graph`'s machine of ciphertexts and on a prepared model. Nothing here can decrypt: this crate does not
//! reach `taciturn-secret`, and a test over the workspace's metadata proves it.

mod check;
mod error;
mod passes;
mod session;

pub use error::ServerError;
pub use passes::{PassPlan, PassesOutput};
pub use session::{Session, StepOutput};
