//! Rotary position embedding (Su et al., RoFormer, section 3.2) as Hugging Face has it: channel `c` is paired with channel `c + width / 2`.

use std::f64::consts::TAU;

/// How frequencies are changed for contexts longer than those of training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RopeScaling {
    None,
    /// All frequencies divided.
    Linear {
        factor: f64,
    },
    /// Llama 3.1: low frequencies divided, high ones kept, those between interpolated. `low` and `high` are numbers of turns within the
    /// trained context.
    Llama3 {
        factor: f64,
        low: f64,
        high: f64,
        trained: f64,
    },
}

impl RopeScaling {
    fn apply(self, frequency: f64) -> f64 {
        match self {
            Self::None => frequency,
            Self::Linear { factor } => frequency / factor,
            Self::Llama3 {
                factor,
                low,
                high,
                trained,
            } => {
                let turns = trained * frequency / TAU;
                let kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                (1.0 - kept) * frequency / factor + kept * frequency
            }
        }
    }
}

/// The angles by which pairs of channels turn from one position to the next.
#[derive(Clone, Debug, PartialEq)]
pub struct Rope {
    frequencies: Vec<f64>,
}

impl Rope {
    /// Frequencies `theta^(-2 i / width)` of the pairs `i < width / 2`, scaled.
    pub(crate) fn new(theta: f64, width: usize, scaling: RopeScaling) -> Self {
        let frequency = |i: usize| theta.powf(-2.0 * i as f64 / width as f64);
        Self {
            frequencies: (0..width / 2)
                .map(|i| scaling.apply(frequency(i)))
                .collect(),
        }
    }

    /// Factors of channel `c` itself and of its partner, for every channel: `y[c] = x[c] cos[c] + x[partner] sin[c]`.
    pub fn factors(&self, position: usize) -> (Vec<f64>, Vec<f64>) {
        let angles = || self.frequencies.iter().map(|f| f * position as f64);
        let cos = angles().map(f64::cos);
        let sin = angles().map(f64::sin);
        (
            cos.clone().chain(cos).collect(),
            sin.clone().map(|s| -s).chain(sin).collect(),
        )
    }

    /// Turns the channels of every head.
    pub fn turn(&self, heads: &mut [f64], position: usize) {
        let half = self.frequencies.len();
        let (cos, sin) = self.factors(position);
        for head in heads.chunks_mut(2 * half) {
            for c in 0..half {
                let (a, b) = (head[c], head[c + half]);
                head[c] = a * cos[c] + b * sin[c];
                head[c + half] = b * cos[c + half] + a * sin[c + half];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_depend_on_the_distance_only() {
        let rope = Rope::new(10_000.0, 8, RopeScaling::None);
        let turned = |x: &[f64], position| {
            let mut x = x.to_vec();
            rope.turn(&mut x, position);
            x
        };
        let q = [0.3, -1.0, 0.7, 0.2, 1.1, -0.4, 0.9, 0.5];
        let k = [1.0, 0.1, -0.6, 0.8, 0.2, 0.3, -0.9, 0.4];
        let score = |m, n| -> f64 {
            let (q, k) = (turned(&q, m), turned(&k, n));
            q.iter().zip(&k).map(|(a, b)| a * b).sum()
        };
        assert!((score(9, 4) - score(105, 100)).abs() < 1e-12);
        assert!((score(9, 4) - score(9, 5)).abs() > 1e-3);
        assert_eq!(turned(&q, 0), q);
    }

    /// Values by Hugging Face's `_compute_llama3_parameters` for the configuration of Llama 3.1 8B (theta 500,000, 128 channels).
    #[test]
    fn llama3_scaling_keeps_high_and_divides_low_frequencies() {
        let scaling = RopeScaling::Llama3 {
            factor: 8.0,
            low: 1.0,
            high: 4.0,
            trained: 8192.0,
        };
        let plain = Rope::new(500_000.0, 128, RopeScaling::None);
        let scaled = Rope::new(500_000.0, 128, scaling);
        let ratio = |i: usize| scaled.frequencies[i] / plain.frequencies[i];
        assert_eq!(ratio(0), 1.0);
        assert_eq!(ratio(28), 1.0);
        assert!((ratio(63) - 0.125).abs() < 1e-15);
        assert!(ratio(31) > 0.125 && ratio(31) < 1.0);
    }
}
