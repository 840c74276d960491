//! Numbers on the command line, refused in words that say what is expected.

use std::num::NonZeroUsize;
use std::str::FromStr;

/// A whole number that is not negative.
pub fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| "expected a whole number that is not negative".to_owned())
}

/// A whole number of at least one.
pub fn positive(text: &str) -> Result<NonZeroUsize, String> {
    text.parse()
        .map_err(|_| "expected a whole number of at least 1".to_owned())
}

/// A number, fractions allowed.
pub fn real(text: &str) -> Result<f64, String> {
    text.parse()
        .map_err(|_| "expected a number as 0.7".to_owned())
}
