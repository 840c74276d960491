//! RNS polynomials.

use crate::{Basis, DeviceMemory, Seed, words::Words};
use std::fmt;

/// How a polynomial's words are to be read.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub enum Form {
    /// Word `k` is the coefficient of `X^k`.
    Coefficient,
    /// Word `k` is the value at `psi^e(k)`, see [`exponent`](crate::exponent).
    Evaluation,
}

/// A polynomial modulo a set of primes: one limb of `N` canonical residues per prime.
///
/// Limbs lie one after the other in ascending order of their index. They are in host memory, or in that of the device whose
/// backend computed them; reading words on the host brings them over, once. The memory is recycled when the polynomial is dropped
/// and keeps its contents until then reused: [`wipe`](Self::wipe) secrets first.
#[derive(Clone)]
pub struct Poly {
    pub(crate) basis: Basis,
    pub(crate) form: Form,
    pub(crate) n: usize,
    pub(crate) data: Words,
}

impl Poly {
    /// A polynomial whose words may hold old data, for operations that write all of them.
    pub(crate) fn stale(n: usize, basis: Basis, form: Form) -> Self {
        Self {
            basis,
            form,
            n,
            data: Words::stale(n * basis.len()),
        }
    }

    /// For backends: a polynomial whose words are in device memory. Contract: it has `n` words per limb of the basis, canonical ones.
    pub fn in_device_memory(
        n: usize,
        basis: Basis,
        form: Form,
        memory: Box<dyn DeviceMemory>,
    ) -> Self {
        Self {
            basis,
            form,
            n,
            data: Words::on_device(memory, n * basis.len()),
        }
    }

    /// The primes that this polynomial is known modulo.
    #[inline]
    pub fn basis(&self) -> Basis {
        self.basis
    }

    /// Coefficients or evaluations.
    #[inline]
    pub fn form(&self) -> Form {
        self.form
    }

    /// The ring degree `N`: words per limb.
    #[inline]
    pub fn n(&self) -> usize {
        self.n
    }

    /// The residues modulo prime `i` of the ring. Contract: `i` is in the basis.
    #[inline]
    pub fn limb(&self, i: usize) -> &[u64] {
        let at = self.position(i) * self.n;
        &self.data[at..at + self.n]
    }

    /// The residues modulo prime `i` of the ring, which must stay canonical. Contract: `i` is in the basis.
    #[inline]
    pub fn limb_mut(&mut self, i: usize) -> &mut [u64] {
        let at = self.position(i) * self.n;
        &mut self.data[at..at + self.n]
    }

    /// All limbs, ascending, `N` words each.
    pub fn words(&self) -> &[u64] {
        &self.data
    }

    /// All limbs, ascending, `N` words each; they must stay canonical.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.data
    }

    /// Bytes of all limbs, wherever they are.
    pub fn bytes(&self) -> usize {
        self.data.len() * size_of::<u64>()
    }

    /// Whether the words are in a device's memory only.
    pub fn is_on_device(&self) -> bool {
        self.data.is_away()
    }

    /// Overwrites all words with zeros, in every memory that holds them.
    pub fn wipe(&mut self) {
        self.data.wipe();
    }

    /// For backends: the words in device memory, brought there by `upload` if they are not there yet. Contract: one type of memory.
    pub fn device<M: DeviceMemory>(&self, upload: impl FnOnce(&[u64]) -> M) -> &M {
        self.data.device(upload)
    }

    /// For backends: as [`device`](Self::device), with words made in another way than from the host's.
    pub fn device_or<M: DeviceMemory>(&self, make: impl FnOnce() -> M) -> &M {
        self.data.device_or(make)
    }

    /// Whether a device has the words.
    pub fn has_device_copy(&self) -> bool {
        self.data.has_device()
    }

    /// The seed that the words stand for, as long as nobody has written them.
    pub fn seed(&self) -> Option<&Seed> {
        self.data.seed()
    }

    /// For backends: as [`device`](Self::device), to write there.
    pub fn device_mut<M: DeviceMemory>(&mut self, upload: impl FnOnce(&[u64]) -> M) -> &mut M {
        self.data.device_mut(upload)
    }

    /// For backends: says how the words are to be read from now on.
    pub fn set_form(&mut self, form: Form) {
        self.form = form;
    }

    fn position(&self, i: usize) -> usize {
        assert!(
            self.basis.contains(i),
            "limb {i} is not in {:?}",
            self.basis
        );
        self.basis.rank(i)
    }
}

impl PartialEq for Poly {
    fn eq(&self, other: &Self) -> bool {
        self.basis == other.basis && self.form == other.form && self.data[..] == other.data[..]
    }
}

impl Eq for Poly {}

/// Shows the shape only: polynomials are long, and some are secret.
impl fmt::Debug for Poly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poly")
            .field("n", &self.n)
            .field("basis", &self.basis)
            .field("form", &self.form)
            .finish()
    }
}
