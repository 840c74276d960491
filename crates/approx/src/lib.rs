//! Polynomial approximations, their intervals and calibration tables. No encryption in this crate.

mod chebyshev;

pub use chebyshev::Chebyshev;
