//! Encryption, with the public key or (half the size) with the secret key and a seed.

use taciturn_ckks::{Ciphertext, CkksError, Parameters, Plaintext, Scale};
use taciturn_ring::{Basis, Poly, sample};
use zeroize::Zeroizing;

use crate::{
    Randomness, SecretKey,
    keygen::{add_error, encrypt_zero},
    secret_key::wipe,
};

/// A public encryption key.
pub struct PublicKey {
    pub(crate) b: Poly,
    pub(crate) a: Poly,
}

/// Encrypts with a public key.
pub struct PublicEncryptor<'a> {
    params: &'a Parameters,
    key: &'a PublicKey,
}

impl<'a> PublicEncryptor<'a> {
    /// An encryptor for this key.
    pub fn new(params: &'a Parameters, key: &'a PublicKey) -> Self {
        Self { params, key }
    }

    /// A fresh encryption on the plaintext's limbs, which must be among the model's levels.
    pub fn encrypt(
        &self,
        plaintext: &Plaintext,
        randomness: &mut Randomness,
    ) -> Result<Ciphertext, CkksError> {
        let ring = self.params.ring();
        let basis = plaintext.poly.basis();
        check_basis(basis, self.key.b.basis())?;
        let mask = Zeroizing::new(sample::ternary(randomness.private(), ring.n()));
        let mut u = ring.from_signed(&mask, basis);
        ring.ntt(&mut u);
        let mut c0 = ring.mul_new(&u, &self.key.b);
        let mut c1 = ring.mul_new(&u, &self.key.a);
        wipe(&mut u);
        add_error(self.params, &mut c0, randomness);
        add_error(self.params, &mut c1, randomness);
        ring.add_assign(&mut c0, &plaintext.poly);
        Ok(Ciphertext {
            polys: vec![c0, c1],
            scale: plaintext.scale,
        })
    }
}

/// A secret-key encryption whose uniform half is a seed: what a client sends.
pub struct SeededCiphertext {
    /// The half that carries the message.
    pub c0: Poly,
    /// Expands to the other half.
    pub seed: [u8; 32],
    /// The scale.
    pub scale: Scale,
}

impl SeededCiphertext {
    /// The ciphertext, its uniform half expanded. Needs no secret.
    pub fn expand(self, params: &Parameters) -> Ciphertext {
        let c1 = params.ring().uniform(&self.seed, self.c0.basis());
        Ciphertext {
            polys: vec![self.c0, c1],
            scale: self.scale,
        }
    }
}

/// Encrypts with the secret key.
pub struct SecretEncryptor<'a> {
    params: &'a Parameters,
    secret: &'a SecretKey,
}

impl<'a> SecretEncryptor<'a> {
    /// An encryptor under this secret.
    pub fn new(params: &'a Parameters, secret: &'a SecretKey) -> Self {
        Self { params, secret }
    }

    /// A fresh encryption on the plaintext's limbs, which must not include special limbs.
    pub fn encrypt(
        &self,
        plaintext: &Plaintext,
        randomness: &mut Randomness,
    ) -> Result<SeededCiphertext, CkksError> {
        let basis = plaintext.poly.basis();
        check_basis(basis, Basis::range(0..self.params.limb_counts().0))?;
        let seed = randomness.public_seed();
        let c1 = self.params.ring().uniform(&seed, basis);
        let mut c0 = encrypt_zero(self.params, self.secret, &c1, randomness);
        self.params.ring().add_assign(&mut c0, &plaintext.poly);
        Ok(SeededCiphertext {
            c0,
            seed,
            scale: plaintext.scale,
        })
    }
}

fn check_basis(basis: Basis, allowed: Basis) -> Result<(), CkksError> {
    if basis.is_subset(allowed) && !basis.is_empty() {
        return Ok(());
    }
    Err(CkksError::Mismatch {
        operation: "encryption",
        expected: format!("a plaintext on some of {} limbs", allowed.len()),
        got: format!("{} limbs", basis.len()),
    })
}
