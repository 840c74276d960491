//! Distances between the clear model's logits and others.

use anyhow::{Result, bail, ensure};
use serde::Serialize;
use taciturn_models::log_sum_exp;

/// How far logits are from the clear model's.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Distance {
    /// Largest absolute difference of a logit.
    pub max_abs_logit_error: f64,
    /// Kullback-Leibler divergence from the clear distribution to the other, with the natural logarithm.
    pub kl: f64,
}

/// Compares logits of one position; an error where there is nothing to compare, as an infinite or undefined logit.
pub fn distance(clear: &[f64], other: &[f64]) -> Result<Distance> {
    ensure!(
        clear.len() == other.len(),
        "logits: expected {} as the clear model has, got {}",
        clear.len(),
        other.len()
    );
    for (whose, logits) in [("clear", clear), ("compared", other)] {
        if let Some((token, logit)) = logits.iter().enumerate().find(|(_, x)| !x.is_finite()) {
            bail!(
                "{whose} logits: expected finite values, got {logit} for token {token}; recalibrate the model"
            );
        }
    }
    let (clear_sum, other_sum) = (log_sum_exp(clear), log_sum_exp(other));
    let kl = clear
        .iter()
        .zip(other)
        .map(|(c, o)| (c - clear_sum).exp() * ((c - clear_sum) - (o - other_sum)))
        .sum::<f64>();
    let error = clear
        .iter()
        .zip(other)
        .fold(0.0f64, |worst, (c, o)| worst.max((c - o).abs()));
    Ok(Distance {
        max_abs_logit_error: error,
        // The sum's rounding can fall below zero where the two are equal.
        kl: kl.max(0.0),
    })
}

/// Difference of the two largest logits.
pub fn margin(logits: &[f64]) -> f64 {
    let (mut first, mut second) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for &logit in logits {
        if logit > first {
            (first, second) = (logit, first);
        } else if logit > second {
            second = logit;
        }
    }
    first - second
}

/// The largest logit's index; the first where two are equal.
pub fn top(logits: &[f64]) -> u32 {
    let mut best = 0;
    for (id, &logit) in logits.iter().enumerate() {
        if logit > logits[best] {
            best = id;
        }
    }
    best as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_logits_have_no_distance_and_a_shift_moves_no_distribution() {
        let clear = [1.0, -2.0, 0.5];
        let shifted = clear.map(|x| x + 3.0);
        assert_eq!(distance(&clear, &clear).unwrap().kl, 0.0);
        let moved = distance(&clear, &shifted).unwrap();
        assert!(moved.kl < 1e-15);
        assert_eq!(moved.max_abs_logit_error, 3.0);
    }

    #[test]
    fn nothing_is_close_to_what_is_no_number() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(distance(&[1.0, 2.0], &[1.0, bad]).is_err());
            assert!(distance(&[bad, 2.0], &[1.0, 2.0]).is_err());
        }
        assert!(distance(&[1.0, 2.0], &[1.0]).is_err());
    }

    #[test]
    fn divergence_of_two_known_distributions() {
        // From (1/2, 1/2) to (3/4, 1/4): ln(2)/2 * ... = 0.5 ln(2/3) + 0.5 ln 2.
        let got = distance(&[0.0, 0.0], &[3f64.ln(), 0.0]).unwrap().kl;
        let want = 0.5 * (2f64 / 3.0).ln() + 0.5 * 2f64.ln();
        assert!((got - want).abs() < 1e-15, "{got} {want}");
    }

    #[test]
    fn margins_and_tops() {
        assert_eq!(margin(&[1.0, 4.0, 2.5]), 1.5);
        assert_eq!(margin(&[4.0, 4.0]), 0.0);
        assert_eq!(top(&[1.0, 4.0, 4.0]), 1);
    }
}
