//! Decryption.

use taciturn_ckks::{Ciphertext, Parameters, Plaintext};

use std::ops::Deref;

use crate::{SecretKey, secret_key::wipe};

/// A decrypted plaintext; wiped when dropped, since with its ciphertext it gives the secret away.
pub struct Decrypted(Plaintext);

impl Deref for Decrypted {
    type Target = Plaintext;

    fn deref(&self) -> &Plaintext {
        &self.0
    }
}

impl Drop for Decrypted {
    fn drop(&mut self) {
        wipe(&mut self.0.poly);
    }
}

/// Decrypts under one secret.
///
/// A decrypted CKKS value carries noise that depends on the secret (Li and Micciancio 2021): what it returns must not reach
/// anyone who may choose ciphertexts; see `docs/security.md`.
pub struct Decryptor<'a> {
    params: &'a Parameters,
    secret: &'a SecretKey,
}

impl<'a> Decryptor<'a> {
    /// A decryptor under this secret.
    pub fn new(params: &'a Parameters, secret: &'a SecretKey) -> Self {
        Self { params, secret }
    }

    /// The plaintext, on the two lowest limbs at most: decoding needs no more.
    pub fn decrypt(&self, ciphertext: &Ciphertext) -> Decrypted {
        let ring = self.params.ring();
        let low = ciphertext.basis().iter().take(2).collect();
        // Horner's rule over the powers of the secret.
        let mut polys = ciphertext.polys.iter().rev();
        let mut acc = ring.restrict(polys.next().expect("a ciphertext has polynomials"), low);
        for p in polys {
            ring.mul_assign(&mut acc, self.secret.poly());
            ring.add_assign(&mut acc, &ring.restrict(p, low));
        }
        Decrypted(Plaintext {
            poly: acc,
            scale: ciphertext.scale,
        })
    }
}
