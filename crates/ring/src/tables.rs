//! Constants that every operation of a ring shares: moduli and roots of unity.

use crate::{Attachment, Modulus, RingError, buffer::Buffer};
use rayon::prelude::*;

/// The smallest ring degree is `2^MIN_LOG_N`.
pub const MIN_LOG_N: u32 = 4;
/// The largest ring degree is `2^MAX_LOG_N`.
pub const MAX_LOG_N: u32 = 17;

pub(crate) fn check_degree(log_n: u32) -> Result<(), RingError> {
    if (MIN_LOG_N..=MAX_LOG_N).contains(&log_n) {
        Ok(())
    } else {
        Err(RingError::Degree { got: log_n })
    }
}

/// The lowest `bits` bits of `k`, reversed.
#[inline]
pub(crate) fn bit_reverse(k: usize, bits: u32) -> usize {
    k.reverse_bits() >> (usize::BITS - bits)
}

/// The odd exponent `e(k) = 2·bitrev(k) + 1` such that index `k` of a polynomial in evaluation form holds its value at
/// `psi^e(k)`. Contract: `k < 2^log_n`.
#[inline]
pub fn exponent(log_n: u32, k: usize) -> u64 {
    2 * bit_reverse(k, log_n) as u64 + 1
}

/// The moduli of a ring and the powers of their roots of unity.
///
/// One table of `N` words per prime serves the forward and the inverse transform of every backend: the inverse reads
/// each stage's powers backwards, since `psi^-e = -psi^(N-e)`.
pub struct Tables {
    log_n: u32,
    moduli: Vec<Modulus>,
    psi: Vec<u64>,
    roots: Buffer,
    /// `N^-1` and `N^-1·(-psi^(N/2))`, in Montgomery form: the factors of the last inverse stage.
    last_inverse: Vec<[u64; 2]>,
    attachment: Attachment,
}

/// What a number-theoretic transform modulo one prime needs.
#[derive(Clone, Copy)]
pub struct NttTable<'a> {
    pub(crate) modulus: Modulus,
    /// `psi^bitrev(k)·2^52` at index `k`.
    pub(crate) roots: &'a [u64],
    pub(crate) last_inverse: [u64; 2],
}

impl<'a> NttTable<'a> {
    /// For forward transforms of a smaller degree `n`, with the root `psi^(N/n)`.
    pub(crate) fn of_degree(self, n: usize) -> NttTable<'a> {
        NttTable {
            roots: &self.roots[..n],
            ..self
        }
    }
}

impl NttTable<'_> {
    /// For inverse transforms that end in a factor, in Montgomery form.
    pub(crate) fn scaled(self, factor: u64) -> Self {
        Self {
            last_inverse: self
                .last_inverse
                .map(|last| self.modulus.montgomery_mul(last, factor)),
            ..self
        }
    }
}

impl Tables {
    pub(crate) fn new(log_n: u32, moduli: &[u64]) -> Result<Self, RingError> {
        check_degree(log_n)?;
        if moduli.is_empty() || moduli.len() > 64 {
            return Err(RingError::ModuliCount { got: moduli.len() });
        }
        for (i, &q) in moduli.iter().enumerate() {
            if moduli[..i].contains(&q) {
                return Err(RingError::Duplicate { got: q });
            }
        }
        let moduli: Vec<Modulus> = moduli
            .iter()
            .map(|&q| Modulus::new(q))
            .collect::<Result<_, _>>()?;
        let psi: Vec<u64> = moduli
            .iter()
            .map(|&q| root_of_unity(q, log_n))
            .collect::<Result<_, _>>()?;
        let n = 1usize << log_n;
        let mut roots = Buffer::stale(n * moduli.len());
        roots
            .par_chunks_mut(n)
            .zip(moduli.par_iter().zip(&psi))
            .for_each(|(roots, (&q, &psi))| {
                let mut power = q.to_montgomery(1);
                for k in 0..n {
                    roots[bit_reverse(k, log_n)] = power;
                    power = q.mul(power, psi);
                }
            });
        let last_inverse = moduli
            .iter()
            .zip(&psi)
            .map(|(&q, &psi)| {
                let inverse = q.inv(n as u64);
                let imaginary = q.pow(psi, n as u64 / 2);
                [
                    q.to_montgomery(inverse),
                    q.to_montgomery(q.mul(inverse, imaginary)),
                ]
            })
            .collect();
        Ok(Self {
            log_n,
            moduli,
            psi,
            roots,
            last_inverse,
            attachment: Attachment::default(),
        })
    }

    /// The ring degree `N`.
    #[inline]
    pub fn n(&self) -> usize {
        1 << self.log_n
    }

    /// Base-2 logarithm of the ring degree.
    #[inline]
    pub fn log_n(&self) -> u32 {
        self.log_n
    }

    /// The moduli, by limb index.
    #[inline]
    pub fn moduli(&self) -> &[Modulus] {
        &self.moduli
    }

    /// The primitive `2N`-th root of unity modulo prime `i`.
    pub fn psi(&self, i: usize) -> u64 {
        self.psi[i]
    }

    /// Where a backend keeps what it derives from these tables.
    pub fn attachment(&self) -> &Attachment {
        &self.attachment
    }

    #[inline]
    pub(crate) fn ntt(&self, i: usize) -> NttTable<'_> {
        let n = self.n();
        NttTable {
            modulus: self.moduli[i],
            roots: &self.roots[i * n..(i + 1) * n],
            last_inverse: self.last_inverse[i],
        }
    }
}

/// The primitive `2N`-th root of unity that the smallest suitable base yields, so that it depends on nothing but the prime.
fn root_of_unity(modulus: Modulus, log_n: u32) -> Result<u64, RingError> {
    let q = modulus.value();
    if !(q - 1).is_multiple_of(1 << (log_n + 1)) {
        return Err(RingError::NoRootOfUnity { got: q, log_n });
    }
    // Half of all bases are not squares, and those give a root of full order: a prime has one among the first few.
    (2..q)
        .map(|base| modulus.pow(base, (q - 1) >> (log_n + 1)))
        .find(|&root| modulus.pow(root, 1 << log_n) == q - 1)
        .ok_or(RingError::NotPrime { got: q })
}
