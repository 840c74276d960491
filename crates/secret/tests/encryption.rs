//! Encryption and keys: right results, and nothing that repeats.

use std::collections::HashSet;

use taciturn_ckks::{
    Ciphertext, CkksError, Complex64, Encoder, EvaluationKey, GadgetName, KeyId, KeyRequest, Level,
    Parameters, Plaintext, named,
};
use taciturn_ring::{Basis, Poly};
use taciturn_secret::{
    Decryptor, KeyGenerator, PublicEncryptor, Randomness, SecretEncryptor, SecretKey,
};

struct Fixture {
    params: Parameters,
    encoder: Encoder,
    secret: SecretKey,
    randomness: Randomness,
}

impl Fixture {
    fn new() -> Self {
        let params = named("insecure-n11").unwrap();
        let mut randomness = Randomness::from_system().unwrap();
        let secret = SecretKey::generate(&params, &mut randomness);
        Self {
            encoder: Encoder::new(&params),
            secret,
            randomness,
            params,
        }
    }

    fn plaintext(&self, d: usize) -> (Vec<Complex64>, Plaintext) {
        let values: Vec<_> = (0..d)
            .map(|i| Complex64::new((i as f64).sin(), (i as f64 * 0.7).cos()))
            .collect();
        let level = Level(3);
        let basis = self.params.level_basis(level);
        let plaintext = self
            .encoder
            .encode(&values, self.params.scale(level), basis)
            .unwrap();
        (values, plaintext)
    }

    fn error(&self, ct: &Ciphertext, want: &[Complex64]) -> f64 {
        let plaintext = Decryptor::new(&self.params, &self.secret).decrypt(ct);
        let have = self.encoder.decode(&plaintext, want.len()).unwrap();
        have.iter()
            .zip(want)
            .map(|(a, b)| (a - b).norm())
            .fold(0.0, f64::max)
    }
}

#[test]
fn both_encryptions_decrypt_at_every_size() {
    let mut f = Fixture::new();
    let key = KeyGenerator::new(&f.params, &f.secret).public_key(&mut f.randomness);
    for d in [1, 2, 16, 1024] {
        let (values, plaintext) = f.plaintext(d);
        let seeded = SecretEncryptor::new(&f.params, &f.secret)
            .encrypt(&plaintext, &mut f.randomness)
            .unwrap();
        let error = f.error(&seeded.expand(&f.params), &values);
        assert!(error < 1e-8, "secret key, {d} values: {error:e}");
        let public = PublicEncryptor::new(&f.params, &key)
            .encrypt(&plaintext, &mut f.randomness)
            .unwrap();
        let error = f.error(&public, &values);
        assert!(error < 1e-6, "public key, {d} values: {error:e}");
    }
}

#[test]
fn two_encryptions_of_one_message_differ_in_every_part() {
    let mut f = Fixture::new();
    let (_, plaintext) = f.plaintext(16);
    let key = KeyGenerator::new(&f.params, &f.secret).public_key(&mut f.randomness);
    let mut pair = |public: bool| -> [Ciphertext; 2] {
        [(); 2].map(|()| {
            if public {
                PublicEncryptor::new(&f.params, &key)
                    .encrypt(&plaintext, &mut f.randomness)
                    .unwrap()
            } else {
                let encryptor = SecretEncryptor::new(&f.params, &f.secret);
                encryptor
                    .encrypt(&plaintext, &mut f.randomness)
                    .unwrap()
                    .expand(&f.params)
            }
        })
    };
    for public in [false, true] {
        let [a, b] = pair(public);
        for part in 0..2 {
            for limb in a.basis().iter() {
                let (x, y) = (a.polys[part].limb(limb), b.polys[part].limb(limb));
                let equal = x.iter().zip(y).filter(|(x, y)| x == y).count();
                assert!(
                    equal < 4,
                    "public {public}, part {part}, limb {limb}: {equal} equal words"
                );
                // A sampler that returns a constant would expose the secret.
                let distinct: HashSet<_> = x.iter().collect();
                assert!(
                    distinct.len() > x.len() - 4,
                    "public {public}, part {part}, limb {limb} repeats itself"
                );
            }
        }
    }
}

#[test]
fn seeds_are_never_used_twice() {
    let mut f = Fixture::new();
    let mut request = KeyRequest::default();
    let limbs = f.params.level_basis(Level(6));
    for galois in [1, 5, 25, 125] {
        request.add(
            KeyId {
                gadget: GadgetName::Model,
                galois,
            },
            limbs,
        );
    }
    request.add(
        KeyId {
            gadget: GadgetName::Encapsulate,
            galois: 1,
        },
        Basis::single(0),
    );
    request.add(
        KeyId {
            gadget: GadgetName::Decapsulate,
            galois: 1,
        },
        limbs,
    );
    let mut keygen = KeyGenerator::new(&f.params, &f.secret);
    let keys = keygen
        .evaluation_keys(&request, &mut f.randomness, |_, _| {})
        .unwrap();
    let seeds: Vec<_> = keys.iter().flat_map(|k| k.seeds.clone()).collect();
    let distinct: HashSet<_> = seeds.iter().collect();
    assert_eq!(distinct.len(), seeds.len());
    // Half of what is in memory is stored, and a seed per digit.
    assert_eq!(
        keys.stored_bytes(),
        keys.resident_bytes() / 2 + 32 * seeds.len()
    );
}

#[test]
fn the_ephemeral_secrets_key_stays_within_its_bound() {
    let f = Fixture::new();
    let gadget = f.params.gadget(GadgetName::Encapsulate);
    assert!(f.params.bits(gadget.limbs.union(gadget.special)) <= 121.0);
    assert_eq!(gadget.limbs, Basis::single(0));
    // Asked for more limbs, the generator makes the key on those of the gadget only.
    let mut f = f;
    let id = KeyId {
        gadget: GadgetName::Encapsulate,
        galois: 1,
    };
    let mut keygen = KeyGenerator::new(&f.params, &f.secret);
    let key = keygen
        .evaluation_key(id, f.params.level_basis(Level(9)), &mut f.randomness)
        .unwrap();
    assert_eq!(key.limbs, Basis::single(0));
}

#[test]
fn a_key_is_restored_from_its_seeds_and_one_half() {
    let mut f = Fixture::new();
    let id = KeyId {
        gadget: GadgetName::Model,
        galois: 5,
    };
    let limbs = f.params.level_basis(Level(8));
    let key = KeyGenerator::new(&f.params, &f.secret)
        .evaluation_key(id, limbs, &mut f.randomness)
        .unwrap();
    let halves: Vec<_> = key
        .seeds
        .iter()
        .copied()
        .zip(key.digits.iter().map(|(b, _)| b.clone()))
        .collect();
    let restored = |halves| EvaluationKey::from_halves(&f.params, id, limbs, halves);
    assert!(restored(halves.clone()).unwrap().digits == key.digits);
    assert!(restored(Vec::new()).is_err());
    assert!(restored(halves[..1].to_vec()).is_err());
    let spoilt = |spoil: &dyn Fn(&mut Poly)| {
        let mut halves = halves.clone();
        spoil(&mut halves[1].1);
        restored(halves).is_err()
    };
    let prime = f.params.prime(8);
    assert!(spoilt(&|b| b.limb_mut(8)[5] = prime));
    assert!(spoilt(&|b| f.params.ring().intt(b)));
    assert!(spoilt(&|b| *b = f.params.ring().restrict(b, limbs)));
    // Limbs that the gadget, and even the ring, does not have.
    for beyond in [20, 63] {
        let limbs = limbs.with(beyond);
        let restored = EvaluationKey::from_halves(&f.params, id, limbs, halves.clone());
        assert!(matches!(restored, Err(CkksError::Mismatch { .. })));
    }
}
