//! Noise of simulated runs.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// How much noise operations add, as standard deviations per slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseLevels {
    /// Of a key switch or a rescale.
    pub operation: f64,
    /// Of a bootstrap, relative to the value's bound.
    pub bootstrap: f64,
}

impl NoiseLevels {
    /// No noise at all.
    pub const NONE: NoiseLevels = NoiseLevels {
        operation: 0.0,
        bootstrap: 0.0,
    };
}

/// Gaussian noise from a seed.
#[derive(Clone, Debug)]
pub(crate) struct Noise {
    pub(crate) levels: NoiseLevels,
    random: ChaCha8Rng,
}

impl Noise {
    pub(crate) fn new(levels: NoiseLevels, seed: u64) -> Self {
        Noise {
            levels,
            random: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    /// Adds noise of the given standard deviation.
    pub(crate) fn add(&mut self, values: &mut [f64], deviation: f64) {
        if deviation > 0.0 {
            values
                .iter_mut()
                .for_each(|value| *value += deviation * self.gaussian());
        }
    }

    /// Box and Muller's transform; one of its two results is enough here.
    fn gaussian(&mut self) -> f64 {
        let mut uniform = || ((self.random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let (u, v) = (uniform(), uniform());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}
