//! Polynomial approximations, their intervals and calibration tables. No encryption in this crate.
//!
//! Every approximation knows its interval, its worst error there (measured on a dense grid), its multiplicative depth and its
//! ciphertext products; each has a `choose` that finds the cheapest one for an interval and a precision.
//!
//! ```
//! use taciturn_approx::InverseSqrt;
//!
//! let norm = InverseSqrt::choose(1.5, 15.0, 16.0)?;
//! assert!(norm.worst_error_bits() >= 16.0);
//! assert!((norm.evaluate(4.0) - 0.5).abs() < 1e-4);
//! # Ok::<(), taciturn_approx::ApproxError>(())
//! ```

mod approximation;
mod calibration;
mod candidates;
mod catalogue;
mod chebyshev;
mod composite;
mod cost;
mod error;
mod exp;
mod fit;
mod gate;
mod gelu;
mod goldschmidt;
mod inverse;
mod named;
mod piecewise;
mod points;
mod sign;
mod silu;
mod special;
mod taylor;
mod through_zero;

pub use approximation::{Approximation, LEAST_DIFFERENCE};
pub use calibration::{CALIBRATION_VERSION, Calibration, CalibrationError, SiteRange};
pub use candidates::{ENOUGH_BITS, candidates};
pub use catalogue::{Entry, Row, Target, catalogue, grid};
pub use chebyshev::Chebyshev;
pub use composite::Composite;
pub use cost::DEGREES;
pub use error::ApproxError;
pub use exp::Exp;
pub use fit::{MAX_DEGREE, interpolate, minimax, minimax_through_zero, worst_on_grid};
pub use gate::Gate;
pub use gelu::{Gelu, GeluForm};
pub use goldschmidt::{GoldschmidtInverse, GoldschmidtInverseSqrt};
pub use inverse::{Inverse, InverseSqrt};
pub use named::Named;
pub use piecewise::PiecewiseGelu;
pub use points::{Point, fit_points};
pub use sign::Sign;
pub use silu::Silu;
pub use special::{erf, gelu_erf, gelu_tanh, silu};
