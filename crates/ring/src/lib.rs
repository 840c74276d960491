//! Arithmetic of RNS polynomials in `Z_Q[X]/(X^N + 1)`, the ground floor of the CKKS engine.
//!
//! A [`Ring`] fixes the degree `N = 2^log_n` and a list of NTT primes below 2^50. A [`Poly`] holds residues modulo
//! any *set* of those primes (a [`Basis`]), as coefficients or as evaluations. Every operation takes and returns
//! canonical residues in `[0, q)`, so that two backends agree exactly when their words are equal.
//!
//! Built on nothing but `rayon` and ChaCha20. It knows no keys, scales or levels: those live in the crates above.
//!
//! ```
//! use taciturn_ring::{Basis, Form, Ring, primes_near};
//! let primes = primes_near(2f64.powi(40), 10, 3, &[])?;
//! let ring = Ring::new(10, &primes)?;
//! let basis = Basis::range(0..3);
//! let mut x = ring.from_signed(&vec![2; ring.n()], basis);
//! ring.ntt(&mut x);
//! let square = ring.mul_new(&x, &x);
//! assert_eq!((square.basis(), square.form()), (basis, Form::Evaluation));
//! # Ok::<(), taciturn_ring::RingError>(())
//! ```
//!
//! # Slot order
//! In [`Form::Evaluation`] index `k` holds the value at `psi^e(k)` with `e(k) = 2·bitrev(k) + 1` over `log_n` bits, `psi`
//! a primitive `2N`-th root of unity of the prime: see [`exponent`].
//!
//! # Contracts
//! Operands of the wrong form or basis are mistakes of the calling code, never of its input, and panic; the condition is
//! part of each function's documentation. Everything that may come from outside (degrees, primes) returns [`RingError`].

mod attachment;
mod automorphism;
mod backend;
mod basis;
mod buffer;
mod conversion;
mod cpu;
mod error;
mod hoisting;
mod integers;
mod kernels;
mod modulus;
mod poly;
mod primes;
mod queue;
mod ring;
pub mod sample;
mod seed;
mod sparse;
mod tables;
mod words;

pub use attachment::Attachment;
pub use automorphism::Automorphism;
pub use backend::{Backend, BackendKind, MAX_DIGITS};
pub use basis::Basis;
pub use buffer::{pool_bytes, set_pool_limit, trim_pool};
pub use conversion::BaseConversion;
pub use error::RingError;
pub use hoisting::{Hoisted, Rotation, Step, Terms, Weight};
pub use integers::{Coefficients, IntegerPoly};
pub use modulus::{MAX_MODULUS_BITS, MIN_MODULUS_BITS, Modulus};
pub use poly::{Form, Poly};
pub use primes::{is_prime, primes_near};
pub use queue::{Clock, DeviceLimits, KernelTime, Queue, Recorded, Recording, Submitted, Work};
pub use ring::Ring;
pub use seed::Seed;
pub use sparse::SparsePoly;
pub use tables::{MAX_LOG_N, MIN_LOG_N, Tables, exponent};
pub use words::DeviceMemory;
