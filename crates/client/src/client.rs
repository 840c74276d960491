//! The client: keys, encryption and decryption under one secret.

use taciturn_ckks::{Ciphertext, Complex64, EvaluationKeys, KeyRequest, Level, Parameters};
use taciturn_graph::{Plan, key_request};
use taciturn_secret::{Keyholder, SeededCiphertext};
use zeroize::{Zeroize, Zeroizing};

use crate::ClientError;

/// Owns a secret key. It has no copy, no serialization and no `Debug`; the secret is wiped when it goes.
pub struct Client {
    holder: Keyholder,
}

impl Client {
    /// A client with a fresh secret.
    pub fn new(params: &Parameters) -> Result<Self, ClientError> {
        Ok(Client {
            holder: Keyholder::new(params)?,
        })
    }

    /// Every key that steps under a plan need; `progress` hears how many of how many are made.
    pub fn evaluation_keys(
        &mut self,
        plan: &Plan,
        progress: impl FnMut(usize, usize),
    ) -> Result<EvaluationKeys, ClientError> {
        let request = key_request(self.holder.encoder(), plan)?;
        Ok(self.holder.evaluation_keys(&request, progress)?)
    }

    /// The keys of a request: those of several plans together.
    pub fn requested_keys(
        &mut self,
        request: &KeyRequest,
        progress: impl FnMut(usize, usize),
    ) -> Result<EvaluationKeys, ClientError> {
        Ok(self.holder.evaluation_keys(request, progress)?)
    }

    /// One period of slots, encrypted at a level: half a ciphertext and a seed.
    pub fn encrypt(
        &mut self,
        period: &[f64],
        level: taciturn_graph::Level,
    ) -> Result<SeededCiphertext, ClientError> {
        let mut values: Vec<Complex64> = period.iter().map(|&x| Complex64::new(x, 0.0)).collect();
        let encrypted = self.holder.encrypt(&values, Level(level.index()));
        wipe_slots(&mut values);
        Ok(encrypted?)
    }

    /// The real parts of the first `period` slots of a value that repeats with this period; wiped when dropped, since their noise
    /// tells of the secret.
    pub fn decrypt(
        &self,
        ciphertext: &Ciphertext,
        period: usize,
    ) -> Result<Zeroizing<Vec<f64>>, ClientError> {
        let mut slots = self.holder.decrypt(ciphertext, period)?;
        let real = slots.iter().map(|slot| slot.re).collect();
        wipe_slots(&mut slots);
        Ok(Zeroizing::new(real))
    }
}

fn wipe_slots(slots: &mut [Complex64]) {
    for slot in slots {
        slot.re.zeroize();
        slot.im.zeroize();
    }
}
