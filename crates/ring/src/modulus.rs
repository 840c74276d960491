//! One prime modulus and scalar arithmetic modulo it.

use crate::{RingError, primes::is_prime};

/// Every modulus lies above 2^32, so that the 32 fractional bits of a base conversion's correction fit.
pub const MIN_MODULUS_BITS: u32 = 32;
/// Every modulus lies below 2^50, so that `4q` fits the 52-bit multiplier.
pub const MAX_MODULUS_BITS: u32 = 50;

/// The width of the multiplier of AVX-512 IFMA, and the logarithm of the Montgomery radix `R`.
pub(crate) const WORD: u32 = 52;
pub(crate) const WORD_MASK: u64 = (1 << WORD) - 1;

/// A prime `q` with `2^32 < q < 2^50` and the constants that its arithmetic needs.
///
/// All operations take and return canonical residues in `[0, q)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modulus {
    q: u64,
    bits: u32,
    /// `floor(2^(2·bits + 1) / q)`, for reducing a product of two residues.
    barrett: u64,
    /// `q^-1 mod 2^52`.
    q_inverse: u64,
    /// `2^52 mod q` and `2^104 mod q`: into Montgomery form by a plain and by a Montgomery product.
    r: u64,
    r2: u64,
}

impl Modulus {
    /// Checks range and primality of `q`.
    pub fn new(q: u64) -> Result<Self, RingError> {
        if q <= 1 << MIN_MODULUS_BITS || q >= 1 << MAX_MODULUS_BITS {
            return Err(RingError::ModulusRange { got: q });
        }
        if !is_prime(q) {
            return Err(RingError::NotPrime { got: q });
        }
        let bits = 64 - q.leading_zeros();
        // Each Newton step doubles the number of right bits; q·q = 1 modulo 8 for odd q.
        let mut q_inverse = q;
        for _ in 0..5 {
            q_inverse = q_inverse.wrapping_mul(2u64.wrapping_sub(q.wrapping_mul(q_inverse)));
        }
        let barrett = ((1u128 << (2 * bits + 1)) / q as u128) as u64;
        let mut modulus = Self {
            q,
            bits,
            barrett,
            q_inverse: q_inverse & WORD_MASK,
            r: (1 << WORD) % q,
            r2: 0,
        };
        modulus.r2 = modulus.mul(modulus.r, modulus.r);
        Ok(modulus)
    }

    /// The prime `q`.
    #[inline]
    pub const fn value(self) -> u64 {
        self.q
    }

    /// The bit length of `q`.
    #[inline]
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// `a + b`.
    #[inline]
    pub const fn add(self, a: u64, b: u64) -> u64 {
        self.correct(a + b)
    }

    /// `a - b`.
    #[inline]
    pub const fn sub(self, a: u64, b: u64) -> u64 {
        self.correct(a + self.q - b)
    }

    /// `-a`.
    #[inline]
    pub const fn neg(self, a: u64) -> u64 {
        self.correct(self.q - a)
    }

    /// `a·b`, by Barrett reduction.
    #[inline]
    pub const fn mul(self, a: u64, b: u64) -> u64 {
        let x = a as u128 * b as u128;
        let top = (x >> (self.bits - 2)) as u64;
        let quotient = (top as u128 * self.barrett as u128) >> (self.bits + 3);
        // The quotient is right or one too small.
        self.correct((x - quotient * self.q as u128) as u64)
    }

    /// `a^exponent`.
    pub fn pow(self, a: u64, mut exponent: u64) -> u64 {
        let (mut base, mut result) = (a, 1);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = self.mul(result, base);
            }
            base = self.mul(base, base);
            exponent >>= 1;
        }
        result
    }

    /// `a^-1`; zero for zero.
    pub fn inv(self, a: u64) -> u64 {
        self.pow(a, self.q - 2)
    }

    /// The residue of a signed integer.
    #[inline]
    pub const fn from_i64(self, x: i64) -> u64 {
        let magnitude = x.unsigned_abs();
        let residue = if magnitude < self.q {
            magnitude
        } else {
            magnitude % self.q
        };
        if x < 0 { self.neg(residue) } else { residue }
    }

    /// The residue of a wide signed integer.
    pub const fn from_i128(self, x: i128) -> u64 {
        let residue = self.reduce_u128(x.unsigned_abs());
        if x < 0 { self.neg(residue) } else { residue }
    }

    /// `x mod q`.
    pub const fn reduce_u128(self, x: u128) -> u64 {
        if x >> 64 == 0 {
            x as u64 % self.q
        } else {
            (x % self.q as u128) as u64
        }
    }

    /// The representative of a residue in `(-q/2, q/2)`.
    #[inline]
    pub const fn centered(self, a: u64) -> i64 {
        if a > self.q / 2 {
            a as i64 - self.q as i64
        } else {
            a as i64
        }
    }

    /// `a·2^52`, the constant that [`montgomery_mul`](Self::montgomery_mul) expects as second factor.
    #[inline]
    pub(crate) const fn to_montgomery(self, a: u64) -> u64 {
        self.mul(a, self.r)
    }

    pub(crate) const fn q_inverse(self) -> u64 {
        self.q_inverse
    }

    pub(crate) const fn r2(self) -> u64 {
        self.r2
    }

    /// `a·w·2^-52` in `(0, 2q)`, for any `a < 2^52` and `w < q`.
    #[inline]
    pub(crate) const fn montgomery_mul_lazy(self, a: u64, w: u64) -> u64 {
        // Shifted by 12 bits, a 52-bit product's high word is that of the 64-bit multiplier.
        let m = a.wrapping_mul(w).wrapping_mul(self.q_inverse) << (64 - WORD);
        high_word(a << (64 - WORD), w) + self.q - high_word(m, self.q)
    }

    /// `a·w·2^-52` in `[0, q)`, for any `a < 2^52` and `w < q`.
    #[inline]
    pub(crate) const fn montgomery_mul(self, a: u64, w: u64) -> u64 {
        self.correct(self.montgomery_mul_lazy(a, w))
    }

    /// `x·2^-52` modulo q, in `(0, q + x·2^-52]`.
    ///
    /// The low words of `x` and of `m·q` are equal, so their difference needs no borrow.
    #[inline]
    pub(crate) const fn montgomery_reduce(self, x: u128) -> u64 {
        let m = (x as u64).wrapping_mul(self.q_inverse) & WORD_MASK;
        let subtrahend = ((m as u128 * self.q as u128) >> WORD) as u64;
        (x >> WORD) as u64 + self.q - subtrahend
    }

    /// From `[0, 2q)` to `[0, q)`.
    #[inline]
    pub(crate) const fn correct(self, a: u64) -> u64 {
        reduce_once(a, self.q)
    }
}

/// `floor(a·b / 2^64)`.
#[inline]
const fn high_word(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

/// `a - bound` where that is not negative, else `a`: without a branch, for which random residues would be bad luck.
#[inline]
pub(crate) const fn reduce_once(a: u64, bound: u64) -> u64 {
    let (difference, borrow) = a.overflowing_sub(bound);
    difference.wrapping_add(bound & (borrow as u64).wrapping_neg())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PRIMES: [u64; 4] = [
        (1 << 33) - 9,
        1_099_511_480_321,
        (1 << 50) - 27,
        (1 << 32) + 15,
    ];

    fn modulus() -> impl Strategy<Value = Modulus> {
        prop::sample::select(PRIMES.to_vec()).prop_map(|q| Modulus::new(q).unwrap())
    }

    proptest! {
        #[test]
        fn scalar_arithmetic_is_exact(m in modulus(), a: u64, b: u64, edge in 0usize..6) {
            let q = m.value();
            let b = [b % q, 0, 1, q - 1, q / 2, q / 2 + 1][edge];
            let a = a % q;
            prop_assert_eq!(m.mul(a, b), (a as u128 * b as u128 % q as u128) as u64);
            prop_assert_eq!(m.add(a, b), (a + b) % q);
            prop_assert_eq!(m.sub(a, b), (a + q - b) % q);
            prop_assert_eq!(m.add(m.neg(a), a), 0);
            prop_assert_eq!(m.montgomery_mul(a, m.to_montgomery(b)), m.mul(a, b));
            prop_assert_eq!(m.montgomery_mul(m.montgomery_mul(a, m.r2()), 1), a);
            prop_assert_eq!(m.mul(b, m.inv(b)), u64::from(b != 0));
            prop_assert_eq!(m.from_i64(m.centered(a)), a);
        }

        #[test]
        fn wide_integers_reduce(m in modulus(), x: i128) {
            prop_assert_eq!(m.from_i128(x) as i128, x.rem_euclid(m.value() as i128));
            prop_assert_eq!(m.from_i64(x as i64) as i128, (x as i64 as i128).rem_euclid(m.value() as i128));
        }
    }

    #[test]
    fn bad_moduli_are_refused() {
        assert_eq!(Modulus::new(97), Err(RingError::ModulusRange { got: 97 }));
        assert_eq!(
            Modulus::new(1 << 50),
            Err(RingError::ModulusRange { got: 1 << 50 })
        );
        assert_eq!(
            Modulus::new((1 << 40) + 1),
            Err(RingError::NotPrime { got: (1 << 40) + 1 })
        );
    }
}
