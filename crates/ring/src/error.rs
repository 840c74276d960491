//! The errors of this crate.

use thiserror::Error;

/// What can be wrong with a ring's description.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum RingError {
    /// A modulus outside the range that the kernels handle.
    #[error("modulus {got}: expected a prime between 2^32 and 2^50; choose one with primes_near")]
    ModulusRange {
        /// The value given.
        got: u64,
    },
    /// A modulus that is not prime.
    #[error("modulus {got} is not prime; choose one with primes_near")]
    NotPrime {
        /// The value given.
        got: u64,
    },
    /// A prime without a `2N`-th root of unity.
    #[error("modulus {got}: expected 1 modulo 2^{} for ring degree 2^{log_n}; choose one with primes_near", log_n + 1)]
    NoRootOfUnity {
        /// The value given.
        got: u64,
        /// Base-2 logarithm of the ring degree.
        log_n: u32,
    },
    /// A ring degree outside the supported range.
    #[error("ring degree 2^{got}: expected 2^4 to 2^17")]
    Degree {
        /// The base-2 logarithm given.
        got: u32,
    },
    /// Too few or too many moduli.
    #[error("a ring of {got} moduli: expected 1 to 64")]
    ModuliCount {
        /// The number given.
        got: usize,
    },
    /// The same modulus twice.
    #[error("modulus {got} occurs twice: expected distinct primes; remove one")]
    Duplicate {
        /// The repeated value.
        got: u64,
    },
    /// No more primes of the wanted shape.
    #[error(
        "primes near {target} for ring degree 2^{log_n}: expected {wanted}, found {found} between 2^32 and 2^50; ask for fewer or move the target"
    )]
    TooFewPrimes {
        /// The wanted size.
        target: f64,
        /// Base-2 logarithm of the ring degree.
        log_n: u32,
        /// The number wanted.
        wanted: usize,
        /// The number found.
        found: usize,
    },
    /// The backend asked for cannot run here.
    #[error(
        "backend {name} needs {needs}, which this machine does not offer; use BackendKind::Auto"
    )]
    BackendUnavailable {
        /// The backend's name.
        name: &'static str,
        /// What it needs.
        needs: &'static str,
    },
}
