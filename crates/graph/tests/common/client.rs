//! A client: keys for a plan, encryption, decryption.

use std::sync::Arc;
use taciturn_ckks::{Ciphertext, Complex64, Encoder, Evaluator, Parameters, named};
use taciturn_graph::{CpuMachine, Level, Plan, key_request};
use taciturn_secret::{Decryptor, KeyGenerator, Randomness, SecretEncryptor, SecretKey};

pub struct Client {
    pub params: Parameters,
    encoder: Encoder,
    secret: SecretKey,
    randomness: Randomness,
}

impl Client {
    pub fn new(params: &str) -> Self {
        let params = named(params).unwrap();
        let mut randomness = Randomness::from_system().unwrap();
        Self {
            encoder: Encoder::new(&params),
            secret: SecretKey::generate(&params, &mut randomness),
            randomness,
            params,
        }
    }

    /// A machine with the keys of a plan and no others.
    pub fn machine(&mut self, plan: &Plan) -> CpuMachine {
        let request = key_request(&self.encoder, plan).unwrap();
        let mut generator = KeyGenerator::new(&self.params, &self.secret);
        let keys = generator
            .evaluation_keys(&request, &mut self.randomness, |_, _| {})
            .unwrap();
        CpuMachine::new(Evaluator::new(&self.params, keys))
    }

    pub fn encrypt(&mut self, period: &[f64], level: Level) -> Arc<Ciphertext> {
        let level = taciturn_ckks::Level(level.index());
        let values: Vec<Complex64> = period.iter().map(|&x| Complex64::new(x, 0.0)).collect();
        let basis = self.params.level_basis(level);
        let plaintext = self
            .encoder
            .encode(&values, self.params.scale(level), basis)
            .unwrap();
        let encryptor = SecretEncryptor::new(&self.params, &self.secret);
        let seeded = encryptor.encrypt(&plaintext, &mut self.randomness).unwrap();
        Arc::new(seeded.expand(&self.params))
    }

    /// All slots.
    pub fn decrypt(&self, value: &Ciphertext) -> Vec<f64> {
        let plaintext = Decryptor::new(&self.params, &self.secret).decrypt(value);
        let slots = self
            .encoder
            .decode(&plaintext, self.params.slots())
            .unwrap();
        slots.into_iter().map(|slot| slot.re).collect()
    }
}
