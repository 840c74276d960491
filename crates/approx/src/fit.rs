//! Polynomial fits: interpolation in Chebyshev nodes and weighted minimax (Remez' second algorithm).

use std::f64::consts::PI;

use crate::Chebyshev;
use crate::error::{ApproxError, check_interval};

/// Largest degree fitted: beyond it the exchange works below the rounding of double precision.
pub const MAX_DEGREE: usize = 255;

/// Exchanges after which the best reference found is taken: convergence is quadratic, so a dozen is already many.
const MAX_EXCHANGES: usize = 40;

/// The polynomial of that degree which equals `f` in the Chebyshev nodes of the interval.
///
/// Within a factor of about `2 + log(degree)` of the best uniform error, at no cost. Fails on an interval that is empty or
/// not finite and on degrees above [`MAX_DEGREE`].
pub fn interpolate(
    f: impl Fn(f64) -> f64,
    low: f64,
    high: f64,
    degree: usize,
) -> Result<Chebyshev, ApproxError> {
    check(low, high, degree)?;
    let n = degree + 1;
    let angles: Vec<f64> = (0..n).map(|j| PI * (j as f64 + 0.5) / n as f64).collect();
    let values: Vec<f64> = angles
        .iter()
        .map(|a| f(to_interval(low, high, a.cos())))
        .collect();
    let coefficients = (0..n).map(|k| {
        let sum: f64 = angles
            .iter()
            .zip(&values)
            .map(|(a, v)| v * (k as f64 * a).cos())
            .sum();
        sum * if k == 0 { 1.0 } else { 2.0 } / n as f64
    });
    Ok(Chebyshev {
        low,
        high,
        coefficients: coefficients.collect(),
    })
}

/// The polynomial `p` of that degree with the smallest largest value of `weight(x) |p(x) - f(x)|` on the interval.
///
/// `weight` must be positive on the interval: `|_| 1.0` for the absolute error, `|x| 1.0 / f(x)` for the relative one. Fails as
/// [`interpolate`]. Where the error reaches the rounding of double precision the exchange stops early with what it has.
pub fn minimax(
    f: impl Fn(f64) -> f64,
    weight: impl Fn(f64) -> f64,
    low: f64,
    high: f64,
    degree: usize,
) -> Result<Chebyshev, ApproxError> {
    let start = interpolate(&f, low, high, degree)?;
    let samples = Samples::new(&f, &weight, low, high, degree);
    let mut best = (samples.worst(&start), start);
    // Extrema of T_{degree + 1}: the solution's own alternation for many functions, and near it for the others.
    let mut reference: Vec<f64> = (0..degree + 2)
        .map(|j| (PI * j as f64 / (degree + 1) as f64).cos())
        .collect();
    for _ in 0..MAX_EXCHANGES {
        let Some((coefficients, levelled)) = level(&f, &weight, low, high, &reference) else {
            break;
        };
        let candidate = Chebyshev {
            low,
            high,
            coefficients,
        };
        let worst = samples.worst(&candidate);
        if worst < best.0 {
            best = (worst, candidate.clone());
        }
        // The levelled error bounds the optimum from below (de la Vallee Poussin).
        if worst <= levelled.abs() * 1.0005 {
            break;
        }
        match samples.alternation(&candidate, degree + 2) {
            Some(next) => reference = next,
            None => break,
        }
    }
    Ok(best.1)
}

/// As [`minimax`], with `p(0) = f(0)` exactly (up to rounding), for an interval that contains 0: fits `(f(x) - f(0)) / x`
/// with one degree less and the weight `|x| weight(x)`. Slots that hold zero then stay at `f(0)`.
pub fn minimax_through_zero(
    f: impl Fn(f64) -> f64,
    weight: impl Fn(f64) -> f64,
    low: f64,
    high: f64,
    degree: usize,
) -> Result<Chebyshev, ApproxError> {
    let at_zero = f(0.0);
    // The grid may meet 0 itself, where the quotient is the derivative and the weight vanishes.
    let tiny = (high - low) * 1e-7;
    let away = |x: f64| if x.abs() < tiny { tiny } else { x };
    let quotient = minimax(
        |x| (f(away(x)) - at_zero) / away(x),
        |x| away(x).abs() * weight(x),
        low,
        high,
        degree.saturating_sub(1),
    )?;
    let (middle, half) = ((low + high) / 2.0, (high - low) / 2.0);
    let mut coefficients = vec![0.0; quotient.coefficients.len() + 1];
    for (k, &c) in quotient.coefficients.iter().enumerate() {
        // x = middle + half t and t T_k = (T_{k+1} + T_{|k-1|}) / 2.
        coefficients[k] += middle * c;
        coefficients[k + 1] += half * c * if k == 0 { 1.0 } else { 0.5 };
        if k > 0 {
            coefficients[k - 1] += half * c * 0.5;
        }
    }
    coefficients[0] += at_zero;
    Ok(Chebyshev {
        low,
        high,
        coefficients,
    })
}

/// The largest `error(x)` over a grid that is dense at both ends, where fits are worst. `count` points.
pub fn worst_on_grid(low: f64, high: f64, count: usize, error: impl Fn(f64) -> f64) -> f64 {
    (0..=count)
        .map(|j| error(to_interval(low, high, (PI * j as f64 / count as f64).cos())))
        .fold(0.0, |worst: f64, e| {
            // A NaN must not pass for a small error.
            if e.is_nan() {
                f64::INFINITY
            } else {
                worst.max(e.abs())
            }
        })
}

fn check(low: f64, high: f64, degree: usize) -> Result<(), ApproxError> {
    check_interval("fit", "on the real line", (low, high), f64::NEG_INFINITY)?;
    if degree > MAX_DEGREE {
        return Err(ApproxError::Degree {
            limit: MAX_DEGREE,
            got: degree,
        });
    }
    Ok(())
}

fn to_interval(low: f64, high: f64, t: f64) -> f64 {
    // Written so that t = -1 and t = 1 give the ends without rounding.
    0.5 * (low * (1.0 - t) + high * (1.0 + t))
}

/// The function and its weight on a grid, so that an exchange costs evaluations of the polynomial only.
struct Samples {
    nodes: Vec<f64>,
    points: Vec<f64>,
    values: Vec<f64>,
    weights: Vec<f64>,
}

impl Samples {
    fn new(
        f: &impl Fn(f64) -> f64,
        weight: &impl Fn(f64) -> f64,
        low: f64,
        high: f64,
        degree: usize,
    ) -> Self {
        let count = 32 * (degree + 2);
        let nodes: Vec<f64> = (0..=count)
            .map(|j| (PI * j as f64 / count as f64).cos())
            .collect();
        let points: Vec<f64> = nodes.iter().map(|&t| to_interval(low, high, t)).collect();
        let values = points.iter().map(|&x| f(x)).collect();
        let weights = points.iter().map(|&x| weight(x)).collect();
        Self {
            nodes,
            points,
            values,
            weights,
        }
    }

    fn errors(&self, p: &Chebyshev) -> impl Iterator<Item = f64> {
        let samples = self.points.iter().zip(&self.values).zip(&self.weights);
        samples.map(|((&x, value), weight)| weight * (p.evaluate(x) - value))
    }

    fn worst(&self, p: &Chebyshev) -> f64 {
        self.errors(p).fold(0.0, |worst, e| worst.max(e.abs()))
    }

    /// `count` nodes where the error alternates in sign, the largest among their neighbours; `None` if there are fewer.
    fn alternation(&self, p: &Chebyshev, count: usize) -> Option<Vec<f64>> {
        let mut extrema: Vec<(f64, f64)> = Vec::new();
        for (&t, error) in self.nodes.iter().zip(self.errors(p)) {
            match extrema.last_mut() {
                Some(last) if (last.1 > 0.0) == (error > 0.0) => {
                    if error.abs() > last.1.abs() {
                        *last = (t, error);
                    }
                }
                _ => extrema.push((t, error)),
            }
        }
        while extrema.len() > count {
            // Dropping an end keeps the alternation; inside, only two neighbours together do.
            if extrema.len() == count + 1 {
                let drop_first = extrema[0].1.abs() < extrema[count].1.abs();
                extrema.remove(if drop_first { 0 } else { count });
            } else {
                let pair = |k: usize| extrema[k].1.abs().max(extrema[k + 1].1.abs());
                let k = (0..extrema.len() - 1).min_by(|&a, &b| pair(a).total_cmp(&pair(b)))?;
                extrema.drain(k..k + 2);
            }
        }
        (extrema.len() == count).then(|| extrema.into_iter().map(|(t, _)| t).collect())
    }
}

/// Coefficients and error `e` with `weight(x_j) (p(x_j) - f(x_j)) = (-1)^j e` on the reference.
fn level(
    f: &impl Fn(f64) -> f64,
    weight: &impl Fn(f64) -> f64,
    low: f64,
    high: f64,
    reference: &[f64],
) -> Option<(Vec<f64>, f64)> {
    let n = reference.len();
    let mut rows: Vec<Vec<f64>> = Vec::with_capacity(n);
    for (j, &t) in reference.iter().enumerate() {
        let x = to_interval(low, high, t);
        let (mut row, angle) = (Vec::with_capacity(n + 1), t.clamp(-1.0, 1.0).acos());
        row.extend((0..n - 1).map(|k| (k as f64 * angle).cos()));
        row.push(if j % 2 == 0 { -1.0 } else { 1.0 } / weight(x));
        row.push(f(x));
        // Weighted rows keep the pivots comparable where the weight spans many magnitudes.
        let scale = weight(x);
        row.iter_mut().for_each(|v| *v *= scale);
        rows.push(row);
    }
    let mut solution = solve(rows)?;
    let levelled = solution.pop()?;
    Some((solution, levelled))
}

/// Gaussian elimination with partial pivoting on rows `[A | b]`; `None` if singular or not finite.
fn solve(mut rows: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let n = rows.len();
    for k in 0..n {
        let pivot = (k..n).max_by(|&a, &b| rows[a][k].abs().total_cmp(&rows[b][k].abs()))?;
        rows.swap(k, pivot);
        let (done, rest) = rows.split_at_mut(k + 1);
        let row = &done[k];
        if row[k] == 0.0 || !row[k].is_finite() {
            return None;
        }
        for other in rest {
            let factor = other[k] / row[k];
            for (o, r) in other[k..].iter_mut().zip(&row[k..]) {
                *o -= factor * r;
            }
        }
    }
    let mut x = vec![0.0; n];
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| rows[k][j] * x[j]).sum();
        x[k] = (rows[k][n] - known) / rows[k][k];
    }
    x.iter().all(|v| v.is_finite()).then_some(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpolation_reproduces_polynomials() {
        let p = interpolate(|x| 1.0 - 2.0 * x + x * x * x, -1.0, 3.0, 3).unwrap();
        assert!(
            worst_on_grid(-1.0, 3.0, 100, |x| p.evaluate(x)
                - (1.0 - 2.0 * x + x * x * x))
                < 1e-13
        );
    }

    /// The relative error of the best approximation of 1/x has a closed form: `1/T_{n+1}((high + low) / (high - low))`.
    #[test]
    fn minimax_meets_the_closed_form_for_the_inverse() {
        for (low, degree) in [
            (0.1, 7),
            (0.01, 15),
            (1.0 / 16384.0, 31),
            (0.001, 127),
            (0.3, 63),
        ] {
            let p = minimax(|x| 1.0 / x, |x| x, low, 1.0, degree).unwrap();
            let worst = worst_on_grid(low, 1.0, 40_000, |x| x * p.evaluate(x) - 1.0);
            let outside: f64 = (1.0 + low) / (1.0 - low);
            let expected = 1.0 / ((degree + 1) as f64 * outside.acosh()).cosh();
            assert!(
                worst <= expected * 1.01 + 2e-13,
                "{low} {degree}: {worst} against {expected}"
            );
        }
    }

    #[test]
    fn minimax_beats_interpolation_and_its_error_alternates() {
        let f = |x: f64| x.exp();
        let p = minimax(f, |_| 1.0, -2.0, 2.0, 9).unwrap();
        let q = interpolate(f, -2.0, 2.0, 9).unwrap();
        let worst = |p: &Chebyshev| worst_on_grid(-2.0, 2.0, 10_000, |x| p.evaluate(x) - f(x));
        assert!(worst(&p) < worst(&q));
        let samples = Samples::new(&f, &|_| 1.0, -2.0, 2.0, 9);
        let reference = samples.alternation(&p, 11).unwrap();
        for t in reference {
            let x = to_interval(-2.0, 2.0, t);
            assert!((p.evaluate(x) - f(x)).abs() > 0.99 * worst(&p));
        }
    }

    #[test]
    fn a_value_at_zero_can_be_pinned() {
        let f = |x: f64| (x + 1.0).exp();
        let p = minimax_through_zero(f, |_| 1.0, -2.0, 3.0, 11).unwrap();
        assert_eq!(p.degree(), 11);
        assert!((p.evaluate(0.0) - f(0.0)).abs() < 1e-14);
        assert!(worst_on_grid(-2.0, 3.0, 10_000, |x| p.evaluate(x) - f(x)) < 1e-5);
    }

    #[test]
    fn bad_intervals_and_degrees_are_errors() {
        for (low, high) in [
            (1.0, 1.0),
            (2.0, 1.0),
            (f64::NAN, 1.0),
            (0.0, f64::INFINITY),
            (-f64::MAX, f64::MAX),
        ] {
            assert!(
                matches!(
                    interpolate(|x| x, low, high, 3),
                    Err(ApproxError::Interval { .. })
                ),
                "[{low}, {high}]"
            );
        }
        assert!(matches!(
            minimax(|x| x, |_| 1.0, 0.0, 1.0, 5000),
            Err(ApproxError::Degree { .. })
        ));
    }
}
