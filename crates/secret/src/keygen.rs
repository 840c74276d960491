//! Generation of evaluation and public keys.

use taciturn_ckks::{
    CkksError, EvaluationKey, EvaluationKeys, Gadget, GadgetName, KeyId, KeyRequest, Parameters,
    bound_bits,
};
use taciturn_ring::{Basis, Poly, sample};
use zeroize::Zeroizing;

use crate::{PublicKey, Randomness, SecretKey, secret_key::wipe};

/// Generates keys for one secret.
pub struct KeyGenerator<'a> {
    params: &'a Parameters,
    secret: &'a SecretKey,
    /// The ephemeral secret of the encapsulation, made when a bootstrap's keys are first asked for. All of its keys must come from
    /// one generator.
    sparse: Option<SecretKey>,
}

impl<'a> KeyGenerator<'a> {
    /// A generator for this secret.
    pub fn new(params: &'a Parameters, secret: &'a SecretKey) -> Self {
        Self {
            params,
            secret,
            sparse: None,
        }
    }

    /// The public encryption key, over all limbs of the model's levels.
    pub fn public_key(&mut self, randomness: &mut Randomness) -> PublicKey {
        let basis = self.params.level_basis(self.params.max_level());
        let seed = randomness.public_seed();
        let a = self.params.ring().uniform(&seed, basis);
        let b = encrypt_zero(self.params, self.secret, &a, randomness);
        PublicKey { b, a }
    }

    /// Every key that is asked for; `progress` hears how many of how many are done.
    pub fn evaluation_keys(
        &mut self,
        request: &KeyRequest,
        randomness: &mut Randomness,
        mut progress: impl FnMut(usize, usize),
    ) -> Result<EvaluationKeys, CkksError> {
        let mut keys = EvaluationKeys::default();
        for (done, (id, limbs)) in request.iter().enumerate() {
            progress(done, request.len());
            keys.insert(self.evaluation_key(id, limbs, randomness)?);
        }
        progress(request.len(), request.len());
        Ok(keys)
    }

    /// One key, on the limbs where it is used.
    pub fn evaluation_key(
        &mut self,
        id: KeyId,
        limbs: Basis,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKey, CkksError> {
        let params = self.params;
        let ring = params.ring();
        let gadget = params.gadget(id.gadget);
        let limbs = limbs.intersection(gadget.limbs);
        if matches!(id.gadget, GadgetName::Encapsulate | GadgetName::Decapsulate)
            && self.sparse.is_none()
        {
            self.sparse = Some(SecretKey::generate_sparse(params, randomness));
        }
        let sparse = self.sparse.as_ref();
        // The secret that is switched from, and the one that the key is encrypted under.
        let (mut from, under) = match id.gadget {
            GadgetName::Encapsulate => (self.secret.poly().clone(), sparse.expect("made above")),
            // Of the sparse secret's automorphism: a rotation and the change of secret in one.
            GadgetName::Decapsulate => {
                let sparse = sparse.expect("made above").poly();
                (ring.automorphism(sparse, id.galois), self.secret)
            }
            _ if id.galois == 1 => (
                ring.mul_new(self.secret.poly(), self.secret.poly()),
                self.secret,
            ),
            _ => (
                ring.automorphism(self.secret.poly(), id.galois),
                self.secret,
            ),
        };
        let within = check_bound(params, limbs.union(gadget.special), under);
        let digits =
            within.map(|()| switching_key(params, gadget, limbs, &from, under, randomness));
        wipe(&mut from);
        EvaluationKey::from_digits(params, id, limbs, digits?)
    }
}

/// A key over these limbs must stay within the security bound of the secret that it is encrypted under, whatever gadget it is for.
fn check_bound(params: &Parameters, limbs: Basis, under: &SecretKey) -> Result<(), CkksError> {
    let got = params.bits(limbs);
    let bound = bound_bits(params.literal().log_n, under.distribution());
    if params.literal().insecure || bound.is_some_and(|bound| got <= bound) {
        return Ok(());
    }
    Err(CkksError::Mismatch {
        operation: "key generation",
        expected: format!(
            "at most {} bits of modulus under a {:?} secret",
            bound.unwrap_or(0.0),
            under.distribution()
        ),
        got: format!("{got:.1} bits"),
    })
}

/// For each digit that meets `limbs`: a seed, b = -a s + e + P g_j s', and the a that the seed expands to.
fn switching_key(
    params: &Parameters,
    gadget: &Gadget,
    limbs: Basis,
    from: &Poly,
    under: &SecretKey,
    randomness: &mut Randomness,
) -> Vec<([u8; 32], (Poly, Poly))> {
    let ring = params.ring();
    let basis = limbs.union(gadget.special);
    let mut digits = Vec::new();
    for digit in gadget
        .digits
        .iter()
        .map(|d| d.intersection(limbs))
        .take_while(|d| !d.is_empty())
    {
        let seed = randomness.public_seed();
        let a = ring.uniform(&seed, basis);
        let mut b = encrypt_zero(params, under, &a, randomness);
        let mut message = ring.restrict(from, digit);
        ring.mul_scalar_assign(&mut message, &|limb| {
            let q = ring.moduli()[limb];
            gadget
                .special
                .iter()
                .fold(1, |acc, i| q.mul(acc, params.prime(i) % q.value()))
        });
        ring.add_to_limbs(&mut b, &message);
        wipe(&mut message);
        digits.push((seed, (b, a)));
    }
    digits
}

/// -a s + e.
pub(crate) fn encrypt_zero(
    params: &Parameters,
    under: &SecretKey,
    a: &Poly,
    randomness: &mut Randomness,
) -> Poly {
    let ring = params.ring();
    let mut b = ring.mul_new(a, under.poly());
    ring.neg_assign(&mut b);
    add_error(params, &mut b, randomness);
    b
}

/// Adds a fresh error polynomial.
pub(crate) fn add_error(params: &Parameters, poly: &mut Poly, randomness: &mut Randomness) {
    let ring = params.ring();
    let errors = Zeroizing::new(sample::gaussian(randomness.private(), ring.n()));
    let mut e = ring.from_signed(&errors, poly.basis());
    ring.ntt(&mut e);
    ring.add_assign(poly, &e);
    wipe(&mut e);
}

#[cfg(test)]
mod tests {
    use super::*;
    use taciturn_ckks::named;

    #[test]
    fn a_key_past_its_secrets_bound_is_refused() {
        let params = named("n16-128").unwrap();
        let mut randomness = Randomness::from_system().unwrap();
        let dense = SecretKey::generate(&params, &mut randomness);
        let sparse = SecretKey::generate_sparse(&params, &mut randomness);
        let all = params.ring().full_basis();
        assert!(check_bound(&params, all, &dense).is_ok());
        // The base limb and one special limb are what the ephemeral secret bears; one more is too many.
        let two = Basis::range(0..2);
        assert!(check_bound(&params, two, &sparse).is_ok());
        assert!(check_bound(&params, two.with(2), &sparse).is_err());
        // A gadget made for the dense secret cannot be used with a sparse one.
        let id = KeyId {
            gadget: GadgetName::Model,
            galois: 5,
        };
        let made = KeyGenerator::new(&params, &sparse).evaluation_key(id, all, &mut randomness);
        assert!(matches!(made, Err(CkksError::Mismatch { .. })));
    }
}
