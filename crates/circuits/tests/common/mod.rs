//! A client and an evaluator for tests.

use taciturn_ckks::{
    Ciphertext, Complex64, Encoder, Evaluator, GadgetName, KeyId, KeyRequest, Level, Parameters,
    named,
};
use taciturn_secret::{Decryptor, KeyGenerator, Randomness, SecretEncryptor, SecretKey};

pub struct Client {
    pub params: Parameters,
    pub encoder: Encoder,
    pub secret: SecretKey,
    pub randomness: Randomness,
}

impl Client {
    pub fn new(params: &str) -> Self {
        let params = named(params).unwrap();
        let mut randomness = Randomness::from_system().unwrap();
        let secret = SecretKey::generate(&params, &mut randomness);
        Self {
            encoder: Encoder::new(&params),
            secret,
            randomness,
            params,
        }
    }

    /// An evaluator with keys for these requests.
    pub fn evaluator(&mut self, request: &KeyRequest) -> Evaluator {
        let mut keygen = KeyGenerator::new(&self.params, &self.secret);
        let keys = keygen
            .evaluation_keys(request, &mut self.randomness, |_, _| {})
            .unwrap();
        Evaluator::new(&self.params, keys)
    }

    pub fn encrypt(&mut self, values: &[Complex64], level: Level) -> Ciphertext {
        let basis = self.params.level_basis(level);
        let plaintext = self
            .encoder
            .encode(values, self.params.scale(level), basis)
            .unwrap();
        let encryptor = SecretEncryptor::new(&self.params, &self.secret);
        encryptor
            .encrypt(&plaintext, &mut self.randomness)
            .unwrap()
            .expand(&self.params)
    }

    pub fn decrypt(&self, ct: &Ciphertext, d: usize) -> Vec<Complex64> {
        self.encoder
            .decode(&Decryptor::new(&self.params, &self.secret).decrypt(ct), d)
            .unwrap()
    }
}

/// Requests for rotations (and relinearization) at the model's levels.
#[allow(
    dead_code,
    reason = "each test binary uses its own part of this module"
)]
pub fn model_keys(params: &Parameters, rotations: &[i64], level: Level) -> KeyRequest {
    let mut request = KeyRequest::default();
    let limbs = params.level_basis(level);
    request.add(
        KeyId {
            gadget: GadgetName::Model,
            galois: 1,
        },
        limbs,
    );
    let conjugation = Evaluator::galois_of_conjugation(params);
    request.add(
        KeyId {
            gadget: GadgetName::Model,
            galois: conjugation,
        },
        limbs,
    );
    for &k in rotations {
        request.add(
            KeyId {
                gadget: GadgetName::Model,
                galois: Evaluator::galois_of_rotation(params, k),
            },
            limbs,
        );
    }
    request
}

/// A fixed sequence of uniform reals in [-1, 1].
#[allow(
    dead_code,
    reason = "each test binary uses its own part of this module"
)]
pub fn uniform(seed: u64, count: usize) -> Vec<f64> {
    let mut x = seed.wrapping_mul(2).wrapping_add(1);
    (0..count)
        .map(|_| {
            x = x
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (x >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
        .collect()
}

/// (worst, mean) error in bits.
pub fn precision(have: &[Complex64], want: &[Complex64]) -> (f64, f64) {
    let errors: Vec<f64> = have.iter().zip(want).map(|(a, b)| (a - b).norm()).collect();
    let worst = errors.iter().fold(0f64, |a, &b| a.max(b));
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    (-worst.log2(), -mean.log2())
}
