//! The ring: checks operands, keeps tables, hands the work to a backend.

mod arithmetic;
mod input;
mod rns;

use crate::{
    Automorphism, Backend, BackendKind, BaseConversion, Basis, Form, Modulus, Poly, Queue,
    RingError, Tables, cpu::CpuBackend, kernels::portable::Portable, words::Words,
};
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock};

/// `Z_Q[X]/(X^N + 1)` for every set of the given primes, with a backend.
///
/// Shared by reference between threads; each operation spreads its limbs over the current rayon pool.
pub struct Ring {
    pub(crate) tables: Tables,
    pub(crate) backend: Arc<dyn Backend>,
    automorphisms: Cache<u64, Automorphism>,
    conversions: Cache<Basis, BaseConversion>,
}

impl Ring {
    /// A ring of degree `2^log_n` with the fastest backend of this machine.
    ///
    /// `moduli` are up to 64 distinct primes `q = 1 (mod 2^(log_n + 1))` with `2^32 < q < 2^50`; `4 <= log_n <= 17`. Memory: `8·N`
    /// bytes per prime.
    pub fn new(log_n: u32, moduli: &[u64]) -> Result<Self, RingError> {
        Self::with_backend(log_n, moduli, BackendKind::Auto)
    }

    /// As [`new`](Self::new), with a choice of backend.
    pub fn with_backend(log_n: u32, moduli: &[u64], kind: BackendKind) -> Result<Self, RingError> {
        Self::from_backend(log_n, moduli, backend(kind)?)
    }

    /// As [`new`](Self::new), with a backend from elsewhere.
    pub fn from_backend(
        log_n: u32,
        moduli: &[u64],
        backend: Arc<dyn Backend>,
    ) -> Result<Self, RingError> {
        let tables = Tables::new(log_n, moduli)?;
        Ok(Self {
            tables,
            backend,
            automorphisms: Cache::default(),
            conversions: Cache::default(),
        })
    }

    /// The ring degree `N`.
    #[inline]
    pub fn n(&self) -> usize {
        self.tables.n()
    }

    /// Base-2 logarithm of the ring degree.
    #[inline]
    pub fn log_n(&self) -> u32 {
        self.tables.log_n()
    }

    /// The primes, by limb index.
    #[inline]
    pub fn moduli(&self) -> &[Modulus] {
        self.tables.moduli()
    }

    /// All limbs.
    pub fn full_basis(&self) -> Basis {
        Basis::range(0..self.moduli().len())
    }

    /// The primitive `2N`-th root of unity modulo prime `i` that defines the slot order.
    pub fn psi(&self, i: usize) -> u64 {
        self.tables.psi(i)
    }

    /// [`exponent`](crate::exponent) for this ring's degree: index `k` of an evaluation form holds the value at `psi^exponent(k)`.
    #[inline]
    pub fn exponent(&self, k: usize) -> u64 {
        crate::exponent(self.log_n(), k)
    }

    /// Waits until results are there: a backend may return before it has computed. For measurements; reading words waits by itself.
    pub fn synchronize(&self) {
        self.backend.synchronize();
    }

    /// The queue of a backend that has one.
    pub fn queue(&self) -> Option<&dyn Queue> {
        self.backend.queue()
    }

    /// The backend at work.
    pub fn backend_name(&self) -> &'static str {
        self.backend.name()
    }

    /// The index table of `X -> X^galois`, made at first use. Contract: `galois` is odd.
    pub fn automorphism_table(&self, galois: u64) -> Arc<Automorphism> {
        let galois = galois % (2 * self.n() as u64);
        self.automorphisms
            .get_or_insert(galois, || Automorphism::new(self.log_n(), galois))
    }

    /// A polynomial whose words may hold old data, where the backend wants its results, for operations that write all of them.
    pub(crate) fn stale(&self, basis: Basis, form: Form) -> Poly {
        let words = self.n() * basis.len();
        Poly {
            basis,
            form,
            n: self.n(),
            data: match self.backend.allocate(words) {
                Some(memory) => Words::on_device(memory, words),
                None => Words::stale(words),
            },
        }
    }

    /// The constants of the base conversion from `source`, made at first use.
    fn conversion(&self, source: Basis) -> Arc<BaseConversion> {
        self.conversions
            .get_or_insert(source, || BaseConversion::new(&self.tables, source))
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moduli: Vec<u64> = self.moduli().iter().map(|q| q.value()).collect();
        f.debug_struct("Ring")
            .field("log_n", &self.log_n())
            .field("moduli", &moduli)
            .field("backend", &self.backend_name())
            .finish()
    }
}

fn backend(kind: BackendKind) -> Result<Arc<dyn Backend>, RingError> {
    let portable = std::env::var_os("TACITURN_BACKEND").is_some_and(|value| value == "portable");
    match kind {
        BackendKind::Portable => Ok(Arc::new(CpuBackend(Portable))),
        BackendKind::Auto if portable => Ok(Arc::new(CpuBackend(Portable))),
        BackendKind::Auto => Ok(avx512().unwrap_or_else(|| Arc::new(CpuBackend(Portable)))),
        BackendKind::Avx512 => avx512().ok_or(RingError::BackendUnavailable {
            name: "avx512",
            needs: "AVX-512 F and IFMA",
        }),
    }
}

#[cfg(target_arch = "x86_64")]
fn avx512() -> Option<Arc<dyn Backend>> {
    let kernels = crate::kernels::avx512::Avx512::detect()?;
    Some(Arc::new(CpuBackend(kernels)))
}

#[cfg(not(target_arch = "x86_64"))]
fn avx512() -> Option<Arc<dyn Backend>> {
    None
}

/// Values made once per key and shared.
struct Cache<K, V>(RwLock<HashMap<K, Arc<V>>>);

impl<K, V> Default for Cache<K, V> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<K: Hash + Eq, V> Cache<K, V> {
    fn get_or_insert(&self, key: K, make: impl FnOnce() -> V) -> Arc<V> {
        if let Some(value) = self
            .0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
        {
            return value.clone();
        }
        // Made outside the lock: two threads may both do the work, and the first to finish wins.
        let value = Arc::new(make());
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(key)
            .or_insert(value)
            .clone()
    }
}
