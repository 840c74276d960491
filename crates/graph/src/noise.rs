//! Noise of simulated runs.

use std::f64::consts::FRAC_PI_2;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Mean bits of a bootstrap of full slots, on uniform values.
const BOOTSTRAP_BITS: f64 = 19.2;

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

    /// What ciphertexts of a ring degree have at a scale of `2^log_scale`, under a dense ternary secret `s`.
    ///
    /// An operation ends with two divisions, by a key switch's special modulus and by a prime. Each rounds both polynomials, which adds
    /// `e0 + e1 s` with entries uniform on [-1/2, 1/2]: per coefficient a variance of `(1 + 2N/3) / 12`, in a slot's real part `N/2` times
    /// that. The keys' own errors stay below it (`Gadget`'s digits are shorter than the special modulus).
    ///
    /// A bootstrap's noise is measured: the mean error of full slots, those with the most, has [`BOOTSTRAP_BITS`] bits below the bound
    /// (docs/performance.md), and a Gaussian's deviation is `sqrt(pi/2)` times its mean size.
    pub fn of_ciphertexts(ring_degree: usize, log_scale: f64) -> NoiseLevels {
        let n = ring_degree as f64;
        let rounding = (n / 2.0 * (1.0 + 2.0 * n / 3.0) / 12.0).sqrt();
        NoiseLevels {
            operation: (2f64.sqrt() * rounding) * 2f64.powf(-log_scale),
            bootstrap: FRAC_PI_2.sqrt() * 2f64.powf(-BOOTSTRAP_BITS),
        }
    }
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
