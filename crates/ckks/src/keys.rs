//! Evaluation keys: what the server computes with.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use taciturn_ring::{Basis, Form, Poly};

use crate::{CkksError, Gadget, GadgetName, Parameters};

/// Bytes of the seed of a uniform half.
const SEED_BYTES: usize = 32;

/// What a key switches, with which gadget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId {
    /// The gadget.
    pub gadget: GadgetName,
    /// The Galois element of a rotation or conjugation; 1 stands for relinearization (s^2 to s), and for the secret's
    /// change in the gadgets of the encapsulation.
    pub galois: u64,
}

/// The keys to generate, each with the limbs it is used on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyRequest {
    keys: BTreeMap<KeyId, Basis>,
}

impl KeyRequest {
    /// Asks for a key that works on (at least) these limbs.
    pub fn add(&mut self, id: KeyId, limbs: Basis) {
        let entry = self.keys.entry(id).or_default();
        *entry = entry.union(limbs);
    }

    /// Adds everything that another request asks for.
    pub fn merge(&mut self, other: &KeyRequest) {
        for (&id, &limbs) in &other.keys {
            self.add(id, limbs);
        }
    }

    /// All keys asked for.
    pub fn iter(&self) -> impl Iterator<Item = (KeyId, Basis)> + '_ {
        self.keys.iter().map(|(&id, &limbs)| (id, limbs))
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Bytes of all keys in memory, both halves expanded.
    pub fn resident_bytes(&self, params: &Parameters) -> usize {
        let halves = self.digits(params).map(|half| 2 * half);
        halves.sum()
    }

    /// Bytes of all keys when stored: one half and a seed per digit.
    pub fn stored_bytes(&self, params: &Parameters) -> usize {
        let halves = self.digits(params).map(|half| half + SEED_BYTES);
        halves.sum()
    }

    /// Bytes of one half of every digit of every key.
    fn digits(&self, params: &Parameters) -> impl Iterator<Item = usize> {
        let poly = params.ring().n() * 8;
        self.iter().flat_map(move |(id, limbs)| {
            let gadget = params.gadget(id.gadget);
            let half = limbs.union(gadget.special).len() * poly;
            used_digits(gadget, limbs).map(move |_| half)
        })
    }
}

/// The digits of a gadget that meet a set of limbs. They come first in the gadget: `Parameters::new` refuses a set where a basis that
/// occurs leaves a digit out.
pub(crate) fn used_digits(gadget: &Gadget, limbs: Basis) -> impl Iterator<Item = Basis> + '_ {
    gadget
        .digits
        .iter()
        .map(move |d| d.intersection(limbs))
        .take_while(|d| !d.is_empty())
}

/// A key: for each digit a pair (b, a) with b + a s = P g_j s' + e over its limbs and the special limbs.
pub struct EvaluationKey {
    /// What it switches.
    pub id: KeyId,
    /// The ciphertext limbs that it covers.
    pub limbs: Basis,
    /// For each digit the seed that its uniform half `a` was expanded from.
    pub seeds: Vec<[u8; SEED_BYTES]>,
    /// For each digit (b, a).
    pub digits: Vec<(Poly, Poly)>,
}

impl EvaluationKey {
    /// Puts a key together from what is stored of it, expanding the uniform halves. Fails on halves of another shape and on residues that
    /// are not below their primes.
    pub fn from_halves(
        params: &Parameters,
        id: KeyId,
        limbs: Basis,
        halves: Vec<([u8; SEED_BYTES], Poly)>,
    ) -> Result<Self, CkksError> {
        let (ring, gadget) = (params.ring(), params.gadget(id.gadget));
        if !limbs.is_subset(gadget.limbs) {
            return Err(CkksError::Mismatch {
                operation: "evaluation key",
                expected: format!("limbs among those of the {:?} gadget", id.gadget),
                got: format!("limbs {limbs}"),
            });
        }
        let basis = limbs.union(gadget.special);
        let whole = |b: &Poly| {
            let shape = (b.n(), b.form(), b.basis()) == (ring.n(), Form::Evaluation, basis);
            shape && ring.is_canonical(b)
        };
        if let Some(digit) = halves.iter().position(|(_, b)| !whole(b)) {
            return Err(CkksError::Mismatch {
                operation: "evaluation key",
                expected: format!(
                    "halves in evaluation form over {} limbs of {} residues, each below its prime",
                    basis.len(),
                    ring.n()
                ),
                got: format!("another one for digit {digit}"),
            });
        }
        let expand = |(seed, b)| (seed, (b, ring.uniform(&seed, basis)));
        Self::from_digits(params, id, limbs, halves.into_iter().map(expand))
    }

    /// Puts a key together from both halves of every digit, the second being what the seed expands to.
    pub fn from_digits(
        params: &Parameters,
        id: KeyId,
        limbs: Basis,
        digits: impl IntoIterator<Item = ([u8; SEED_BYTES], (Poly, Poly))>,
    ) -> Result<Self, CkksError> {
        let gadget = params.gadget(id.gadget);
        let basis = limbs.union(gadget.special);
        let expected = used_digits(gadget, limbs).count();
        let (seeds, digits): (Vec<_>, Vec<(Poly, Poly)>) = digits.into_iter().unzip();
        let covered = digits
            .iter()
            .all(|(b, a)| b.basis() == basis && a.basis() == basis);
        if !limbs.is_subset(gadget.limbs) || digits.len() != expected || !covered {
            return Err(CkksError::Mismatch {
                operation: "evaluation key",
                expected: format!("{expected} digits over {} limbs", basis.len()),
                got: format!("{} digits", digits.len()),
            });
        }
        Ok(Self {
            id,
            limbs,
            seeds,
            digits,
        })
    }

    /// Bytes when stored: one half and a seed per digit.
    pub fn stored_bytes(&self) -> usize {
        self.digits
            .iter()
            .map(|(b, _)| b.bytes() + SEED_BYTES)
            .sum()
    }

    /// Bytes in memory.
    pub fn resident_bytes(&self) -> usize {
        self.digits.iter().map(|(b, a)| b.bytes() + a.bytes()).sum()
    }
}

/// A set of evaluation keys; cheap to clone.
#[derive(Clone, Default)]
pub struct EvaluationKeys {
    keys: HashMap<KeyId, Arc<EvaluationKey>>,
}

impl EvaluationKeys {
    /// Adds a key, replacing one of the same id.
    pub fn insert(&mut self, key: EvaluationKey) {
        self.keys.insert(key.id, Arc::new(key));
    }

    /// The key, if it exists and covers the limbs.
    pub fn get(&self, id: KeyId, limbs: Basis) -> Result<&EvaluationKey, CkksError> {
        self.find(id, limbs).ok_or_else(|| CkksError::MissingKey {
            what: format!(
                "Galois element {} with the {:?} gadget on {} limbs",
                id.galois,
                id.gadget,
                limbs.len()
            ),
        })
    }

    /// As `get`, but absence is not an error.
    pub fn find(&self, id: KeyId, limbs: Basis) -> Option<&EvaluationKey> {
        self.keys
            .get(&id)
            .filter(|k| limbs.is_subset(k.limbs))
            .map(|k| &**k)
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// All keys.
    pub fn iter(&self) -> impl Iterator<Item = &EvaluationKey> {
        self.keys.values().map(|k| &**k)
    }

    /// Bytes when stored.
    pub fn stored_bytes(&self) -> usize {
        self.iter().map(EvaluationKey::stored_bytes).sum()
    }

    /// Bytes in memory.
    pub fn resident_bytes(&self) -> usize {
        self.iter().map(EvaluationKey::resident_bytes).sum()
    }
}
