//! Exact activations in double precision.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, PI};

/// The error function, to about 1e-15.
///
/// Small arguments take the series `2/sqrt(pi) exp(-x^2) sum_n 2^n x^(2n+1) / (2n+1)!!`, whose terms all have one sign;
/// large ones the continued fraction of the complement (Abramowitz and Stegun 7.1.6 and 7.1.14).
pub fn erf(x: f64) -> f64 {
    let a = x.abs();
    let value = if a < 3.0 {
        let (mut term, mut sum, mut n) = (a, a, 1.0);
        while term > sum * 1e-17 {
            term *= 2.0 * a * a / (2.0 * n + 1.0);
            sum += term;
            n += 1.0;
        }
        2.0 / PI.sqrt() * (-a * a).exp() * sum
    } else if a < 6.0 {
        let tail = (1..=60)
            .rev()
            .fold(0.0, |tail, k| f64::from(k) / 2.0 / (a + tail));
        1.0 - (-a * a).exp() / PI.sqrt() / (a + tail)
    } else {
        1.0
    };
    value.copysign(x)
}

/// GeLU by the error function: `x Phi(x)`.
pub fn gelu_erf(x: f64) -> f64 {
    0.5 * x * (1.0 + erf(x * FRAC_1_SQRT_2))
}

/// GeLU in the tanh form that GPT-2 was trained with: `x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`.
pub fn gelu_tanh(x: f64) -> f64 {
    0.5 * x * (1.0 + (FRAC_2_PI.sqrt() * (x + 0.044715 * x * x * x)).tanh())
}

/// SiLU: `x / (1 + exp(-x))`.
pub fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from Abramowitz and Stegun, table 7.1, and symmetry.
    #[test]
    fn erf_matches_the_table() {
        for (x, expected) in [
            (0.5, 0.5204998778),
            (1.0, 0.8427007929),
            (2.0, 0.9953222650),
            (3.2, 0.999_993_974_239),
        ] {
            assert!((erf(x) - expected).abs() < 1e-10, "erf({x}) = {}", erf(x));
            assert_eq!(erf(-x), -erf(x));
        }
        // Both branches agree where they meet.
        assert!((erf(3.0 - 1e-12) - erf(3.0)).abs() < 1e-14);
    }

    #[test]
    fn both_gelus_agree_to_three_digits_and_vanish_on_the_left() {
        for k in -80..=80 {
            let x = f64::from(k) / 10.0;
            assert!((gelu_erf(x) - gelu_tanh(x)).abs() < 1e-3);
        }
        assert!(gelu_erf(-40.0).abs() < 1e-12 && gelu_tanh(-40.0).abs() < 1e-12);
    }
}
