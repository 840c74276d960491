//! Constants that keep a softmax's denominator in a narrow interval at no cost under encryption.
//!
//! A softmax does not change when all scores of a query move together. Adding a vector c to every key of a head moves them by
//! `q . c`, and that is a bias of the keys after their rotary embedding: free. A constant beta per head and position is subtracted where the exponential's interval map is
//! added anyway. Both are fitted so that `log sum exp` after the move varies as little as possible over sample text.

use std::f64::consts::PI;

/// Cosines over the context that, with its logarithm, make beta a smooth function of the position.
const COSINES: usize = 24;
/// Fewest samples per cosine.
const FEWEST_SAMPLES: usize = 32;
/// Rounds of reweighting towards the least spread.
const ROUNDS: usize = 40;
/// Most samples used by a fit.
const MAX_SAMPLES: usize = 4096;
/// Ridge relative to the mean squared feature: keeps shifted keys about as large as the model's own, which
/// costs the spread next to nothing.
const RIDGE: f64 = 1e-2;

/// Samples of one head: its queries and the logarithms of its softmax sums.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeadSamples {
    /// `head width` values per sample.
    pub(crate) queries: Vec<f32>,
    /// Position per sample.
    pub(crate) positions: Vec<usize>,
    /// `ln sum exp(score / 2^r)` per sample.
    pub(crate) sums: Vec<f64>,
}

/// What is subtracted from `score / 2^r`: `query . slope + beta[position]`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeadShift {
    /// One value per channel.
    pub(crate) slope: Vec<f64>,
    /// One value per position of the context.
    pub(crate) beta: Vec<f64>,
}

impl HeadShift {
    /// Value at a sample.
    fn at(&self, query: &[f32], position: usize) -> f64 {
        let dot: f64 = self
            .slope
            .iter()
            .zip(query)
            .map(|(s, &q)| s * f64::from(q))
            .sum();
        dot + self.beta[position]
    }

    /// Smallest and largest `sum - shift` over samples.
    pub(crate) fn spread(&self, samples: &HeadSamples) -> (f64, f64) {
        let channels = self.slope.len();
        let left = samples
            .sums
            .iter()
            .zip(&samples.positions)
            .zip(samples.queries.chunks(channels));
        left.map(|((sum, &position), query)| sum - self.at(query, position))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), r| {
                (low.min(r), high.max(r))
            })
    }
}

/// The shift fitted on `fit` with the least spread over `other` samples, such that every `sum - shift` of either is at most `-headroom`.
/// Tries no slope as well, and no fit at all: on few samples a fit may be worse than none.
pub(crate) fn fit_shift(
    fit: &HeadSamples,
    other: &HeadSamples,
    channels: usize,
    context: usize,
    headroom: f64,
) -> HeadShift {
    let constant = HeadShift {
        slope: vec![0.0; channels],
        beta: vec![0.0; context],
    };
    let candidates = [false, true]
        .into_iter()
        .filter_map(|with_slope| fit_linear(fit, channels, context, with_slope));
    let spread = |shift: &HeadShift| {
        let (low, high) = shift.spread(other);
        high - low
    };
    let best = candidates.fold(constant, |best, next| {
        if spread(&next) < spread(&best) {
            next
        } else {
            best
        }
    });
    let high = best.spread(fit).1.max(best.spread(other).1);
    let beta = best.beta.iter().map(|b| b + high + headroom).collect();
    HeadShift { beta, ..best }
}

/// Features of a position, the constant among them: no finer than the context or than the samples can tell.
fn position_features(position: usize, context: usize, samples: usize) -> Vec<f64> {
    let x = position as f64;
    let count = COSINES
        .min(context / 2)
        .min(samples / FEWEST_SAMPLES)
        .max(1);
    let cosines = (0..count).map(|f| (PI * f as f64 * x / context as f64).cos());
    cosines.chain([(x + 1.0).ln()]).collect()
}

/// Iteratively reweighted least squares towards the least spread of the residuals.
fn fit_linear(
    samples: &HeadSamples,
    channels: usize,
    context: usize,
    with_slope: bool,
) -> Option<HeadShift> {
    let slope_width = if with_slope { channels } else { 0 };
    let count = samples.sums.len();
    let step = count.div_ceil(MAX_SAMPLES).max(1);
    let rows: Vec<(Vec<f64>, f64)> = (0..count)
        .step_by(step)
        .map(|k| {
            let query = &samples.queries[k * channels..k * channels + slope_width];
            let mut row: Vec<f64> = query.iter().map(|&q| f64::from(q)).collect();
            row.extend(position_features(samples.positions[k], context, count));
            (row, samples.sums[k])
        })
        .collect();
    let width = rows.first()?.0.len();
    let mut weights = vec![1.0; rows.len()];
    let mut best: Option<(f64, Vec<f64>)> = None;
    for _ in 0..ROUNDS {
        let coefficients = ridge(&rows, &weights, width)?;
        let residuals: Vec<f64> = (rows.iter())
            .map(|(row, y)| {
                y - row
                    .iter()
                    .zip(&coefficients)
                    .map(|(a, c)| a * c)
                    .sum::<f64>()
            })
            .collect();
        let low = residuals.iter().copied().fold(f64::INFINITY, f64::min);
        let high = residuals.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let half = (high - low) / 2.0;
        if best.as_ref().is_none_or(|(spread, _)| half < *spread) {
            best = Some((half, coefficients));
        }
        if half == 0.0 {
            break;
        }
        for (weight, r) in weights.iter_mut().zip(&residuals) {
            *weight *= (r - (low + high) / 2.0).abs() / half + 0.02;
        }
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        weights.iter_mut().for_each(|w| *w /= mean);
    }
    let (_, mut slope) = best?;
    let along = slope.split_off(slope_width);
    slope.resize(channels, 0.0);
    let beta = |position| {
        position_features(position, context, count)
            .iter()
            .zip(&along)
            .map(|(a, c)| a * c)
            .sum()
    };
    Some(HeadShift {
        slope,
        beta: (0..context).map(beta).collect(),
    })
}

/// Weighted ridge regression by Cholesky's factorisation of the normal equations; `None` if they are not positive.
fn ridge(rows: &[(Vec<f64>, f64)], weights: &[f64], width: usize) -> Option<Vec<f64>> {
    let mut normal = vec![vec![0.0; width]; width];
    let mut right = vec![0.0; width];
    for ((row, y), weight) in rows.iter().zip(weights) {
        for i in 0..width {
            let scaled = weight * row[i];
            for (n, a) in normal[i][..=i].iter_mut().zip(row) {
                *n += scaled * a;
            }
            right[i] += scaled * y;
        }
    }
    let trace: f64 = (0..width).map(|i| normal[i][i]).sum();
    for i in 0..width {
        normal[i][i] += RIDGE * trace / width as f64;
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| normal[i][k] * normal[j][k]).sum();
            let value = normal[i][j] - known;
            normal[i][j] = match i == j {
                true if value > 0.0 => value.sqrt(),
                true => return None,
                false => value / normal[j][j],
            };
        }
    }
    for i in 0..width {
        let known: f64 = (0..i).map(|k| normal[i][k] * right[k]).sum();
        right[i] = (right[i] - known) / normal[i][i];
    }
    for i in (0..width).rev() {
        let known: f64 = (i + 1..width).map(|k| normal[k][i] * right[k]).sum();
        right[i] = (right[i] - known) / normal[i][i];
    }
    right.iter().all(|v| v.is_finite()).then_some(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums that are linear in the query and smooth in the position are predicted up to the ridge; the headroom is kept.
    #[test]
    fn a_linear_dependence_disappears() {
        let mut samples = HeadSamples::default();
        for k in 0..400usize {
            let query: Vec<f32> = (0..4)
                .map(|c| ((k * 7 + c * 13) as f32 * 0.37).sin())
                .collect();
            let slope: f64 = query
                .iter()
                .enumerate()
                .map(|(c, &q)| (c as f64 - 1.0) * 5.0 * f64::from(q))
                .sum();
            let position = k % 16;
            samples.sums.push(slope + (position as f64 + 1.0).ln());
            samples.positions.push(position);
            samples.queries.extend(query);
        }
        let shift = fit_shift(&samples, &samples, 4, 16, 0.5);
        let (low, high) = shift.spread(&samples);
        let ends = |ends: (f64, f64), s: &f64| (ends.0.min(*s), ends.1.max(*s));
        let (least, most) = samples.sums.iter().fold((f64::MAX, f64::MIN), ends);
        assert!(
            (high + 0.5).abs() < 1e-9 && high - low < 0.01 * (most - least),
            "[{low}, {high}] of [{least}, {most}]"
        );
    }

    #[test]
    fn no_sample_gives_no_shift() {
        let empty = HeadSamples::default();
        assert!(fit_linear(&empty, 4, 16, true).is_none());
    }
}
