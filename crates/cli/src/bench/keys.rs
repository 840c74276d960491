//! A client of its own for benches: keys, encryption and decryption of test vectors.

use anyhow::Result;
use taciturn_ckks::{
    Ciphertext, Complex64, Encoder, Evaluator, KeyRequest, Level, Parameters, Scale,
};
use taciturn_ring::Basis;
use taciturn_secret::{Decryptor, KeyGenerator, Randomness, SecretEncryptor, SecretKey};

/// A secret with everything around it.
pub struct Client {
    /// The parameters.
    pub params: Parameters,
    /// Their encoder.
    pub encoder: Encoder,
    secret: SecretKey,
    randomness: Randomness,
}

impl Client {
    /// A fresh secret.
    pub fn new(params: &Parameters) -> Result<Self> {
        let mut randomness = Randomness::from_system()?;
        let secret = SecretKey::generate(params, &mut randomness);
        Ok(Self {
            params: params.clone(),
            encoder: Encoder::new(params),
            secret,
            randomness,
        })
    }

    /// An evaluator with the keys asked for.
    pub fn evaluator(&mut self, request: &KeyRequest) -> Result<Evaluator> {
        let mut keygen = KeyGenerator::new(&self.params, &self.secret);
        let keys = keygen.evaluation_keys(request, &mut self.randomness, |_, _| {})?;
        Ok(Evaluator::new(&self.params, keys))
    }

    /// Encrypts at a level.
    pub fn encrypt(&mut self, values: &[Complex64], level: Level) -> Result<Ciphertext> {
        self.encrypt_on(
            values,
            self.params.scale(level),
            self.params.level_basis(level),
        )
    }

    /// Encrypts at a scale, on any limbs but the special ones.
    pub fn encrypt_on(
        &mut self,
        values: &[Complex64],
        scale: Scale,
        basis: Basis,
    ) -> Result<Ciphertext> {
        let plaintext = self.encoder.encode(values, scale, basis)?;
        let encryptor = SecretEncryptor::new(&self.params, &self.secret);
        Ok(encryptor
            .encrypt(&plaintext, &mut self.randomness)?
            .expand(&self.params))
    }

    /// Decrypts d distinct slots.
    pub fn decrypt(&self, ct: &Ciphertext, d: usize) -> Result<Vec<Complex64>> {
        Ok(self
            .encoder
            .decode(&Decryptor::new(&self.params, &self.secret).decrypt(ct), d)?)
    }
}
