//! The client's role: the secret, the text and the choice of tokens.
//!
//! Builds on `taciturn-secret`. Decrypted numbers never leave this crate's caller towards a server: chosen tokens travel
//! re-encrypted, as fresh embeddings.

mod client;
mod error;
mod sampler;
mod witness;

pub use client::Client;
pub use error::ClientError;
pub use sampler::{Sampler, Sampling};
pub use witness::check_interval;
