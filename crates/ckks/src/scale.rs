//! Levels and scales as types.

use std::fmt;

/// Number of rescalings by a model prime that a ciphertext still has in it; level 0 keeps the base limb only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(pub usize);

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "level {}", self.0)
    }
}

/// The factor between a slot's value and its integer representation.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Scale(pub f64);

impl Scale {
    /// Whether two scales may be added: equal up to the rounding of their own computation.
    ///
    /// The tolerance 2^-36 stays far below the noise of one rescaling (about 2^-26 relative to a 40-bit scale), so that
    /// a mismatch which it lets through is invisible, and one by a prime's deviation (2^-20 and more) is refused.
    pub fn matches(self, other: Scale) -> bool {
        (self.0 / other.0 - 1.0).abs() < 2f64.powi(-36)
    }

    /// log2 of the scale.
    pub fn log2(self) -> f64 {
        self.0.log2()
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "2^{:.6}", self.0.log2())
    }
}
