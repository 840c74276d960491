//! A secret key with everything around it.

use taciturn_ckks::{
    Ciphertext, CkksError, Complex64, Encoder, EvaluationKeys, Evaluator, KeyRequest, Level,
    Parameters, Scale,
};
use taciturn_ring::Basis;

use crate::{
    Decryptor, KeyGenerator, Randomness, RandomnessError, SecretEncryptor, SecretKey,
    SeededCiphertext, secret_key::wipe,
};

/// Owns a secret key and works with slot values under it. Like the key it has no copy, no serialization and no `Debug`.
pub struct Keyholder {
    params: Parameters,
    encoder: Encoder,
    secret: SecretKey,
    randomness: Randomness,
}

impl Keyholder {
    /// With a fresh secret.
    pub fn new(params: &Parameters) -> Result<Self, RandomnessError> {
        let mut randomness = Randomness::from_system()?;
        Ok(Self {
            params: params.clone(),
            encoder: Encoder::new(params),
            secret: SecretKey::generate(params, &mut randomness),
            randomness,
        })
    }

    /// The parameters.
    pub fn params(&self) -> &Parameters {
        &self.params
    }

    /// Their encoder.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// The keys asked for; `progress` hears how many of how many are made.
    pub fn evaluation_keys(
        &mut self,
        request: &KeyRequest,
        progress: impl FnMut(usize, usize),
    ) -> Result<EvaluationKeys, CkksError> {
        let mut generator = KeyGenerator::new(&self.params, &self.secret);
        generator.evaluation_keys(request, &mut self.randomness, progress)
    }

    /// An evaluator with the keys asked for.
    pub fn evaluator(&mut self, request: &KeyRequest) -> Result<Evaluator, CkksError> {
        let keys = self.evaluation_keys(request, |_, _| {})?;
        Ok(Evaluator::new(&self.params, keys))
    }

    /// Encrypts slot values at a level and its canonical scale, as [`Encoder::encode`] takes them.
    pub fn encrypt(
        &mut self,
        values: &[Complex64],
        level: Level,
    ) -> Result<SeededCiphertext, CkksError> {
        let (scale, basis) = (self.params.scale(level), self.params.level_basis(level));
        self.encrypt_on(values, scale, basis)
    }

    /// Encrypts slot values at a scale, on any limbs but the special ones.
    pub fn encrypt_on(
        &mut self,
        values: &[Complex64],
        scale: Scale,
        basis: Basis,
    ) -> Result<SeededCiphertext, CkksError> {
        let mut plaintext = self.encoder.encode(values, scale, basis)?;
        let encryptor = SecretEncryptor::new(&self.params, &self.secret);
        let encrypted = encryptor.encrypt(&plaintext, &mut self.randomness);
        wipe(&mut plaintext.poly);
        encrypted
    }

    /// The first `d` slots of a value that repeats with this period. They carry noise that tells of the secret ([`Decryptor`]).
    pub fn decrypt(&self, ciphertext: &Ciphertext, d: usize) -> Result<Vec<Complex64>, CkksError> {
        let plaintext = Decryptor::new(&self.params, &self.secret).decrypt(ciphertext);
        self.encoder.decode(&plaintext, d)
    }
}
