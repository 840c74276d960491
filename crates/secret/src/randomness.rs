//! Two independent generators: one for what is published, one for what must stay private.

use chacha20::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use thiserror::Error;
use zeroize::Zeroizing;

/// The operating system gave no randomness.
#[derive(Debug, Error)]
#[error("the operating system's random generator failed ({0}); nothing was generated, try again")]
pub struct RandomnessError(getrandom::Error);

/// Source of all randomness of a client.
///
/// Public seeds and private randomness come from generators that were seeded apart, so that a published seed says nothing
/// about a private stream. Both wipe their state when dropped.
pub struct Randomness {
    public: ChaCha20Rng,
    private: ChaCha20Rng,
}

impl Randomness {
    /// Seeds both generators from the operating system.
    pub fn from_system() -> Result<Self, RandomnessError> {
        let seed = || -> Result<Zeroizing<[u8; 32]>, RandomnessError> {
            let mut seed = Zeroizing::new([0u8; 32]);
            getrandom::fill(&mut seed[..]).map_err(RandomnessError)?;
            Ok(seed)
        };
        Ok(Self {
            public: ChaCha20Rng::from_seed(*seed()?),
            private: ChaCha20Rng::from_seed(*seed()?),
        })
    }

    /// A seed for a uniform polynomial that will be published; never the same twice.
    pub fn public_seed(&mut self) -> [u8; 32] {
        let mut seed = [0; 32];
        self.public.fill_bytes(&mut seed);
        seed
    }

    /// The generator for secrets and errors.
    pub(crate) fn private(&mut self) -> &mut ChaCha20Rng {
        &mut self.private
    }
}
