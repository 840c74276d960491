//! The choice of a token from logits: greedy, or drawn at a temperature from the most likely tokens.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

use crate::ClientError;

/// How tokens are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// 0 takes the most likely token; above, logits are divided by it before the draw.
    pub temperature: f64,
    /// The draw is among the most likely tokens that together have this probability.
    pub top_p: f64,
    /// Equal seeds give equal draws.
    pub seed: u64,
}

/// Chooses tokens. Every choice takes one draw, so that two distributions can be compared under the same draw.
pub struct Sampler {
    sampling: Sampling,
    random: ChaCha20Rng,
}

impl Sampler {
    /// A sampler; an error where a setting is out of range.
    pub fn new(sampling: Sampling) -> Result<Self, ClientError> {
        let check = |what, expected, got: f64, good: bool| match good {
            true => Ok(()),
            false => Err(ClientError::Sampling {
                what,
                expected,
                got,
            }),
        };
        let Sampling {
            temperature, top_p, ..
        } = sampling;
        let finite = (0.0..=100.0).contains(&temperature);
        check("temperature", "a number from 0 to 100", temperature, finite)?;
        let share = top_p > 0.0 && top_p <= 1.0;
        check("top-p", "a number above 0 and at most 1", top_p, share)?;
        Ok(Sampler {
            sampling,
            random: ChaCha20Rng::seed_from_u64(sampling.seed),
        })
    }

    /// A uniform number in [0, 1) for the next choice.
    pub fn draw(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The token that a draw picks from logits.
    pub fn choose(&self, logits: &[f64], draw: f64) -> u32 {
        let mut order: Vec<usize> = (0..logits.len()).collect();
        // The lower id first where two are equal: the choice is a function of the logits.
        order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
        let Some(&first) = order.first() else {
            return 0;
        };
        if self.sampling.temperature == 0.0 {
            return first as u32;
        }
        let weights: Vec<f64> = order
            .iter()
            .map(|&id| ((logits[id] - logits[first]) / self.sampling.temperature).exp())
            .collect();
        let total: f64 = weights.iter().sum();
        let mut mass = 0.0;
        let kept = weights
            .iter()
            .position(|weight| {
                mass += weight;
                mass >= self.sampling.top_p * total
            })
            .map_or(order.len(), |last| last + 1);
        let kept_mass: f64 = weights[..kept].iter().sum();
        let mut left = draw * kept_mass;
        for (&id, weight) in order[..kept].iter().zip(&weights) {
            left -= weight;
            if left < 0.0 {
                return id as u32;
            }
        }
        order[kept - 1] as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(temperature: f64, top_p: f64) -> Sampler {
        let settings = Sampling {
            temperature,
            top_p,
            seed: 7,
        };
        Sampler::new(settings).expect("settings in range")
    }

    #[test]
    fn greedy_takes_the_largest_whatever_the_draw() {
        let greedy = sampler(0.0, 1.0);
        for draw in [0.0, 0.5, 0.999] {
            assert_eq!(greedy.choose(&[1.0, 3.0, 2.0, 3.0], draw), 1);
        }
    }

    #[test]
    fn draws_follow_the_distribution() {
        let mut sampler = sampler(1.0, 1.0);
        let logits = [0.0, 3f64.ln()];
        let ones = (0..4000)
            .filter(|_| {
                let draw = sampler.draw();
                sampler.choose(&logits, draw) == 1
            })
            .count();
        assert!((2850..3150).contains(&ones), "{ones} of 4000 for 3/4");
    }

    #[test]
    fn top_p_leaves_the_tail_out() {
        let sampler = sampler(1.0, 0.7);
        // Probabilities 0.6, 0.3 and 0.1: the first two reach 0.7.
        let logits = [0.1f64.ln(), 0.6f64.ln(), 0.3f64.ln()];
        let picked: Vec<u32> = [0.0, 0.66, 0.67, 0.9999]
            .iter()
            .map(|&draw| sampler.choose(&logits, draw))
            .collect();
        assert_eq!(picked, [1, 1, 2, 2]);
    }

    #[test]
    fn equal_seeds_draw_alike() {
        let (mut a, mut b) = (sampler(1.0, 1.0), sampler(1.0, 1.0));
        assert!((0..10).all(|_| a.draw() == b.draw()));
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        for (temperature, top_p) in [
            (-1.0, 1.0),
            (f64::NAN, 1.0),
            (f64::INFINITY, 1.0),
            (1.0, 0.0),
            (1.0, 1.1),
            (1.0, f64::NAN),
        ] {
            let settings = Sampling {
                temperature,
                top_p,
                seed: 0,
            };
            assert!(Sampler::new(settings).is_err(), "{temperature} {top_p}");
        }
    }
}
