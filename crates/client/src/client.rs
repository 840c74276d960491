//! The client: keys, encryption and decryption under one secret.

use taciturn_ckks::{Ciphertext, Complex64, Encoder, EvaluationKeys, Level, Parameters};
use taciturn_graph::{Plan, key_request};
use taciturn_secret::{
    Decryptor, KeyGenerator, Randomness, SecretEncryptor, SecretKey, SeededCiphertext, wipe,
};

use zeroize::{Zeroize, Zeroizing};

use crate::ClientError;

/// Owns a secret key. It has no copy, no serialization and no `Debug`; the secret is wiped when it goes.
pub struct Client {
    params: Parameters,
    encoder: Encoder,
    secret: SecretKey,
    randomness: Randomness,
}

impl Client {
    /// A client with a fresh secret.
    pub fn new(params: &Parameters) -> Result<Self, ClientError> {
        let mut randomness = Randomness::from_system()?;
        Ok(Client {
            params: params.clone(),
            encoder: Encoder::new(params),
            secret: SecretKey::generate(params, &mut randomness),
            randomness,
        })
    }

    /// Every key that steps under a plan need; `progress` hears how many of how many are made.
    pub fn evaluation_keys(
        &mut self,
        plan: &Plan,
        progress: impl FnMut(usize, usize),
    ) -> Result<EvaluationKeys, ClientError> {
        let request = key_request(&self.encoder, plan)?;
        let mut generator = KeyGenerator::new(&self.params, &self.secret);
        Ok(generator.evaluation_keys(&request, &mut self.randomness, progress)?)
    }

    /// One period of slots, encrypted at a level: half a ciphertext and a seed.
    pub fn encrypt(
        &mut self,
        period: &[f64],
        level: taciturn_graph::Level,
    ) -> Result<SeededCiphertext, ClientError> {
        let level = Level(level.index());
        let mut values: Vec<Complex64> = period.iter().map(|&x| Complex64::new(x, 0.0)).collect();
        let plaintext = self.encoder.encode(
            &values,
            self.params.scale(level),
            self.params.level_basis(level),
        );
        wipe_slots(&mut values);
        let mut plaintext = plaintext?;
        let encryptor = SecretEncryptor::new(&self.params, &self.secret);
        let encrypted = encryptor.encrypt(&plaintext, &mut self.randomness);
        wipe(&mut plaintext.poly);
        Ok(encrypted?)
    }

    /// The real parts of the first `period` slots of a value that repeats with this period; wiped when dropped, since their noise
    /// tells of the secret.
    pub fn decrypt(
        &self,
        ciphertext: &Ciphertext,
        period: usize,
    ) -> Result<Zeroizing<Vec<f64>>, ClientError> {
        let plaintext = Decryptor::new(&self.params, &self.secret).decrypt(ciphertext);
        let mut slots = self.encoder.decode(&plaintext, period)?;
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
