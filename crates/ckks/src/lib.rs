//! RNS-CKKS, the public half: parameters, encoding, ciphertexts, evaluation keys and the evaluator.
//!
//! Builds on `taciturn-ring`. Nothing here can decrypt: secret keys, encryption under them and decryption live in
//! `taciturn-secret`, which depends on this crate and never the other way round.

mod ciphertext;
mod embedding;
mod encoder;
mod error;
mod evaluator;
mod gadget;
mod key_switch;
mod keys;
mod parameters;
mod presets;
mod recorded;
mod scale;
mod security;

pub use ciphertext::{Ciphertext, IntegerPlaintext, Plaintext};
pub use encoder::Encoder;
pub use error::CkksError;
pub use evaluator::Evaluator;
pub use gadget::{Gadget, GadgetName};
pub use key_switch::{Decomposed, Extended, HoistedValue};
pub use keys::{EvaluationKey, EvaluationKeys, KeyId, KeyRequest};
pub use num_complex::Complex64;
pub use parameters::{Parameters, ParametersLiteral};
pub use presets::{ParameterSet, named, names};
pub use recorded::CircuitId;
pub use scale::{Level, Scale};
pub use security::{SecretDistribution, SecurityEstimate, bound_bits};
