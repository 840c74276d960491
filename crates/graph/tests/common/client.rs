//! A client: keys for a plan, encryption, decryption.

use std::sync::Arc;
use taciturn_ckks::{Ciphertext, Complex64, Parameters, named};
use taciturn_graph::{CpuMachine, Level, Plan, key_request};
use taciturn_secret::Keyholder;

pub struct Client {
    pub params: Parameters,
    holder: Keyholder,
}

impl Client {
    pub fn new(params: &str) -> Self {
        let params = named(params).unwrap();
        Self {
            holder: Keyholder::new(&params).unwrap(),
            params,
        }
    }

    /// A machine with the keys of a plan and no others.
    pub fn machine(&mut self, plan: &Plan) -> CpuMachine {
        let request = key_request(self.holder.encoder(), plan).unwrap();
        CpuMachine::new(self.holder.evaluator(&request).unwrap())
    }

    pub fn encrypt(&mut self, period: &[f64], level: Level) -> Arc<Ciphertext> {
        let level = taciturn_ckks::Level(level.index());
        let values: Vec<Complex64> = period.iter().map(|&x| Complex64::new(x, 0.0)).collect();
        let seeded = self.holder.encrypt(&values, level).unwrap();
        Arc::new(seeded.expand(&self.params))
    }

    /// All slots.
    pub fn decrypt(&self, value: &Ciphertext) -> Vec<f64> {
        let slots = self.holder.decrypt(value, self.params.slots()).unwrap();
        slots.into_iter().map(|slot| slot.re).collect()
    }
}
