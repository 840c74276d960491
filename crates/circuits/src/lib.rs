//! Circuits over RNS-CKKS: linear transforms, polynomials, bootstrapping.
//!
//! Builds on `taciturn-ckks` and uses public material only.

mod bootstrap;
mod diagonals;
mod embedding;
mod eval_mod;
mod halves;
mod linear_transform;
mod polynomial;
mod shape;
mod tables;
mod trace;

pub use bootstrap::Bootstrapper;
pub use diagonals::Diagonals;
pub use linear_transform::LinearTransform;
pub use polynomial::{depth_of_degree, evaluate_chebyshev};
pub use shape::{BootstrapShape, MESSAGE_RATIO_BITS, Values, slots_to_coeffs_levels};
