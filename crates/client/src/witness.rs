//! Witnesses: decrypted arguments of the approximated functions, checked before anything is made of a result.

use taciturn_graph::EDGE_SLACK;

use crate::ClientError;

/// An error where a decrypted argument of an approximation is outside the interval that it was fitted on.
pub fn check_interval(site: &str, low: f64, high: f64, values: &[f64]) -> Result<(), ClientError> {
    let slack = EDGE_SLACK * (high - low) / 2.0;
    // Written so that a value that is no number counts as outside.
    let inside = |value: &f64| *value >= low - slack && *value <= high + slack;
    if values.iter().all(inside) {
        return Ok(());
    }
    Err(ClientError::LeftInterval {
        site: site.to_owned(),
        low,
        high,
        least: values.iter().copied().fold(f64::INFINITY, f64::min),
        greatest: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_on_the_edge_is_inside_and_a_real_excess_is_not() {
        assert!(check_interval("x", -1.0, 1.0, &[-1.00005, 0.0, 1.00005]).is_ok());
        assert!(check_interval("x", -1.0, 1.0, &[0.0, 1.001]).is_err());
        assert!(check_interval("x", -1.0, 1.0, &[-1.001]).is_err());
        assert!(check_interval("x", -1.0, 1.0, &[f64::NAN]).is_err());
    }
}
