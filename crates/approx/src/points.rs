//! Fits on given points in place of an interval: where a function is only ever met there, the polynomial is free between them.

use crate::Chebyshev;
use crate::error::{ApproxError, check_interval};
use crate::fit::MAX_DEGREE;

/// Rounds of reweighting. The worst error converges linearly; the best round is kept.
const ROUNDS: usize = 60;
/// Least weight of a point in a round, where all add up to one: it keeps a point alive that happens to fit well in one round.
const LEAST_SHARE: f64 = 1e-6;

/// A point that a polynomial should meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Argument.
    pub x: f64,
    /// Value there.
    pub value: f64,
    /// How much an error there counts; positive.
    pub weight: f64,
}

/// The polynomial of that degree whose largest `weight |p(x) - value|` over the points is about the least, on an interval that holds
/// them all: iteratively reweighted least squares (Lawson 1961).
///
/// Fails on an interval that is empty, not finite or does not hold every point, on degrees above [`MAX_DEGREE`] and on fewer points than
/// coefficients.
pub fn fit_points(
    points: &[Point],
    low: f64,
    high: f64,
    degree: usize,
) -> Result<Chebyshev, ApproxError> {
    check_interval("fit", "on the real line", (low, high), f64::NEG_INFINITY)?;
    if !points.iter().all(|point| (low..=high).contains(&point.x)) {
        return Err(ApproxError::Interval {
            function: "fit",
            domain: "around all points",
            low,
            high,
        });
    }
    if degree > MAX_DEGREE {
        return Err(ApproxError::Degree {
            limit: MAX_DEGREE,
            got: degree,
        });
    }
    if points.len() <= degree {
        return Err(ApproxError::Points {
            degree,
            got: points.len(),
        });
    }
    let mut shares = vec![1.0; points.len()];
    let mut best: Option<(f64, Chebyshev)> = None;
    for _ in 0..ROUNDS {
        let poly = Chebyshev {
            low,
            high,
            coefficients: least_squares(points, &shares, (low, high), degree),
        };
        let errors: Vec<f64> = points
            .iter()
            .map(|p| ((poly.evaluate(p.x) - p.value) * p.weight).abs())
            .collect();
        let worst = errors.iter().copied().fold(0.0, f64::max);
        if best.as_ref().is_none_or(|(least, _)| worst < *least) {
            best = Some((worst, poly));
        }
        let total: f64 = shares.iter().zip(&errors).map(|(s, e)| s * e).sum();
        if total == 0.0 {
            break;
        }
        for (share, error) in shares.iter_mut().zip(&errors) {
            *share = (*share * error / total).max(LEAST_SHARE);
        }
    }
    let (_, poly) = best.expect("at least one round ran");
    Ok(poly)
}

/// Chebyshev coefficients that minimise the sum of `share (weight error)^2`, by modified Gram-Schmidt with one reorthogonalisation.
fn least_squares(
    points: &[Point],
    shares: &[f64],
    (low, high): (f64, f64),
    degree: usize,
) -> Vec<f64> {
    let unknowns = degree + 1;
    let weights: Vec<f64> = points
        .iter()
        .zip(shares)
        .map(|(point, share)| share.sqrt() * point.weight)
        .collect();
    let mut columns: Vec<Vec<f64>> = vec![Vec::new(); unknowns];
    for (point, w) in points.iter().zip(&weights) {
        let t = (2.0 * point.x - low - high) / (high - low);
        let (mut a, mut b) = (1.0, t);
        for column in &mut columns {
            column.push(a * w);
            (a, b) = (b, 2.0 * t * b - a);
        }
    }
    let mut rhs: Vec<f64> = points
        .iter()
        .zip(&weights)
        .map(|(point, w)| point.value * w)
        .collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let mut r = vec![vec![0.0; unknowns]; unknowns];
    let mut projected = vec![0.0; unknowns];
    for k in 0..unknowns {
        let (done, rest) = columns.split_at_mut(k);
        let current = &mut rest[0];
        for _ in 0..2 {
            for (j, q) in done.iter().enumerate() {
                let c = dot(q, current);
                r[j][k] += c;
                current.iter_mut().zip(q).for_each(|(x, y)| *x -= c * y);
            }
        }
        let norm = dot(current, current).sqrt();
        r[k][k] = norm;
        current.iter_mut().for_each(|x| *x /= norm);
        let c = dot(current, &rhs);
        projected[k] = c;
        rhs.iter_mut()
            .zip(current.iter())
            .for_each(|(x, y)| *x -= c * y);
    }
    let mut out = vec![0.0; unknowns];
    for k in (0..unknowns).rev() {
        let tail: f64 = (k + 1..unknowns).map(|j| r[k][j] * out[j]).sum();
        out[k] = (projected[k] - tail) / r[k][k];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::minimax;

    fn points(f: impl Fn(f64) -> f64, low: f64, high: f64, count: usize) -> Vec<Point> {
        (0..=count)
            .map(|i| {
                let x = low + (high - low) * i as f64 / count as f64;
                Point {
                    x,
                    value: f(x),
                    weight: 1.0,
                }
            })
            .collect()
    }

    fn worst(p: &Chebyshev, points: &[Point]) -> f64 {
        points
            .iter()
            .map(|point| ((p.evaluate(point.x) - point.value) * point.weight).abs())
            .fold(0.0, f64::max)
    }

    #[test]
    fn on_many_points_it_is_close_to_the_minimax_of_the_interval() {
        for (low, high, degree) in [(-1.0, 1.0, 5), (-2.0, 3.0, 9), (0.5, 4.0, 12)] {
            let many = points(f64::exp, low, high, 400);
            let fitted = fit_points(&many, low, high, degree).unwrap();
            let best = minimax(f64::exp, |_| 1.0, low, high, degree).unwrap();
            let (got, least) = (worst(&fitted, &many), worst(&best, &many));
            assert!(got < 1.1 * least, "degree {degree}: {got:e} of {least:e}");
        }
    }

    #[test]
    fn on_few_points_it_is_better_than_the_minimax_of_the_interval() {
        let f = |x: f64| (3.0 * x).cos();
        let few: Vec<Point> = points(f, -1.0, 1.0, 12);
        let fitted = fit_points(&few, -1.0, 1.0, 8).unwrap();
        let whole = minimax(f, |_| 1.0, -1.0, 1.0, 8).unwrap();
        assert!(worst(&fitted, &few) < 0.9 * worst(&whole, &few));
    }

    #[test]
    fn as_many_coefficients_as_points_interpolate() {
        let few = points(f64::sin, -1.0, 2.0, 6);
        let fitted = fit_points(&few, -1.0, 2.0, 6).unwrap();
        assert!(worst(&fitted, &few) < 1e-12);
    }

    #[test]
    fn impossible_fits_are_errors() {
        let few = points(f64::sin, -1.0, 1.0, 4);
        assert!(matches!(
            fit_points(&few, -1.0, 1.0, 5),
            Err(ApproxError::Points { degree: 5, got: 5 })
        ));
        assert!(matches!(
            fit_points(&few, -0.5, 1.0, 2),
            Err(ApproxError::Interval { .. })
        ));
        assert!(matches!(
            fit_points(&few, -1.0, 1.0, 1000),
            Err(ApproxError::Degree { .. })
        ));
    }
}
