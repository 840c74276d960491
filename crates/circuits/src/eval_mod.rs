//! EvalMod: the modular reduction as a scaled sine.
//!
//! The slots hold t' = x / K' with x = I + m/q0, I an integer. We evaluate cos(2 pi y / 2^r) at y = x - C - 1/4 for an integer C as a
//! polynomial and double the angle r times, which gives cos(2 pi y) = sin(2 pi x) = sin(2 pi m/q0), close to 2 pi m/q0 (Han and Ki 2020;
//! Bossuat et al. 2021). The cosine is even, so it is a polynomial of half the degree in u = T_2(t), t = y / K': the squaring is the first
//! level, and odd powers never occur.
//!
//! u is flat at y = 0: noise of the squaring counts K'/4|y| times as much as noise of t. With C = 0 it would do so in every fourth slot, as
//! I = 0 is the most likely; C moves it to a rare integer.

use std::{f64::consts::TAU, ops::RangeInclusive};

use taciturn_approx::{Chebyshev, Point, fit_points};
use taciturn_ckks::{Ciphertext, CkksError, Complex64, Evaluator, Scale};

use crate::polynomial::{depth_of_degree, evaluate_chebyshev};

/// What I lies in. With an ephemeral secret of weight 32, I is a sum of 33 uniforms on [-1/2, 1/2], rounded: never above 16, and
/// below -13 with probability 2^-63 over 2^16 coefficients (docs/parameters.md derives it).
const INTEGERS: RangeInclusive<i32> = -13..=16;
/// C, the integer that the cosine is centred at (with 1/4).
const CENTRE: i32 = 3;
/// Double-angle steps.
const DOUBLE_ANGLES: u32 = 3;
/// Degree of the cosine in u = T_2(t); 30 in t.
const DEGREE: usize = 15;

/// The polynomial of EvalMod and the constants around it.
pub(crate) struct EvalMod {
    /// In u on [-1, 1].
    cosine: Chebyshev,
    /// K': |x - C - 1/4| <= K'.
    pub(crate) range: f64,
}

impl EvalMod {
    /// Fits the cosine where the values are: within `1 / ratio` of integers.
    pub(crate) fn new(ratio: f64) -> Self {
        let furthest = (CENTRE - INTEGERS.start()).max(INTEGERS.end() - CENTRE);
        let range = f64::from(furthest) + 0.25 + 1.0 / ratio;
        Self {
            cosine: fit(range, ratio),
            range,
        }
    }

    /// `x` holds t' = x / K' (not yet shifted) in its slots, real; the result holds sin(2 pi x) at exactly `target` scale.
    pub(crate) fn apply(
        &self,
        ev: &Evaluator,
        x: &Ciphertext,
        target: Scale,
    ) -> Result<Ciphertext, CkksError> {
        let mut t = x.clone();
        let shift = -(f64::from(CENTRE) + 0.25) / self.range;
        ev.add_constant_assign(&mut t, Complex64::new(shift, 0.0))?;
        let mut u = double_angle(ev, &t, 1.0)?;

        // Backwards from the target: each double angle squares the scale and divides by its prime.
        let primes: Vec<f64> = u
            .basis()
            .iter()
            .map(|i| ev.params().prime(i) as f64)
            .collect();
        let after_cosine = primes.len() - depth_of_degree(DEGREE);
        let scale = (0..DOUBLE_ANGLES as usize)
            .rev()
            .fold(target.0, |scale, step| {
                (scale * primes[after_cosine - 1 - step]).sqrt()
            });
        u = evaluate_chebyshev(ev, &u, &self.cosine.coefficients, Scale(scale))?;
        for _ in 0..DOUBLE_ANGLES {
            u = double_angle(ev, &u, 1.0)?;
        }
        u.scale = target;
        Ok(u)
    }
}

/// 2 c^2 - a: one limb.
fn double_angle(ev: &Evaluator, c: &Ciphertext, a: f64) -> Result<Ciphertext, CkksError> {
    let mut product = ev.double_square(c)?;
    ev.add_constant_assign(&mut product, Complex64::new(-a, 0.0))?;
    ev.relinearize_rescale(&product)
}

/// Fits cos(2 pi K' t / 2^r), as a polynomial in u = 2t^2 - 1, on the points t = (I - C - 1/4 + e) / K' with
/// |e| <= 1/ratio.
///
/// The weight 1/sin of the angle before doubling is how much an error of the cosine grows through the double angles, so that the error
/// of the sine, which counts, comes out level.
fn fit(range: f64, ratio: f64) -> Chebyshev {
    let points: Vec<Point> = INTEGERS
        .flat_map(|integer| (-3..=3).map(move |step| (integer, step)))
        .map(|(integer, step)| {
            let y = f64::from(integer - CENTRE) - 0.25 + f64::from(step) / 3.0 / ratio;
            let angle = TAU * y / 2f64.powi(DOUBLE_ANGLES as i32);
            Point {
                x: 2.0 * (y / range).powi(2) - 1.0,
                value: angle.cos(),
                weight: 1.0 / angle.sin().abs(),
            }
        })
        .collect();
    fit_points(&points, -1.0, 1.0, DEGREE).expect("more points than coefficients, all in [-1, 1]")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole of EvalMod in the clear with the bootstrap's slope, as error of m / Delta for |m / Delta| <= 1.
    #[test]
    fn reduces_modulo_one_to_nineteen_bits() {
        let ratio = 1024.0;
        let eval_mod = EvalMod::new(ratio);
        let unit = TAU / ratio;
        let unit = unit * (1.0 - unit * unit / 8.0);
        let mut worst = 0f64;
        for integer in INTEGERS {
            for step in -50..=50 {
                let value = f64::from(step) / 50.0;
                let y = f64::from(integer - CENTRE) - 0.25 + value / ratio;
                let mut c = eval_mod
                    .cosine
                    .evaluate(2.0 * (y / eval_mod.range).powi(2) - 1.0);
                for _ in 0..DOUBLE_ANGLES {
                    c = 2.0 * c * c - 1.0;
                }
                worst = worst.max((c / unit - value).abs());
            }
        }
        eprintln!("worst error 2^{:.2}", worst.log2());
        assert!(worst.log2() < -19.0, "worst error 2^{:.2}", worst.log2());
    }
}
