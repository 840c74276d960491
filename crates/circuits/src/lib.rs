//! Circuits over RNS-CKKS: linear transforms, polynomials, bootstrapping.
//!
//! Builds on `taciturn-ckks` and uses public material only.

mod bootstrap;
mod diagonals;
mod embedding;
mod eval_mod;
mod linear_transform;
mod polynomial;
mod trace;

pub use bootstrap::{BootstrapShape, Bootstrapper, MESSAGE_RATIO_BITS, slots_to_coeffs_levels};
pub use diagonals::Diagonals;
pub use linear_transform::LinearTransform;
pub use polynomial::{depth_of_degree, evaluate_chebyshev};
