//! Polynomial approximations, their intervals and calibration tables. No encryption in this crate.

mod calibration;
mod chebyshev;
mod special;

pub use calibration::{CALIBRATION_VERSION, Calibration, CalibrationError, SiteRange};
pub use chebyshev::Chebyshev;
pub use special::{erf, gelu_erf, gelu_tanh};
