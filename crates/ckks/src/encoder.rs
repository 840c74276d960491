//! The canonical embedding: slot vectors to integer polynomials and back.

use std::cell::Cell;

use num_complex::Complex64;
use taciturn_ring::{Basis, IntegerPoly, Modulus, Poly};

use crate::embedding::{Embedding, Parts};
use crate::{CkksError, IntegerPlaintext, Parameters, Plaintext, Scale};

/// Encodes vectors of 1 to N/2 complex values (a power of two). A shorter vector of d values stands for its periodic repetition:
/// slot i holds value i mod d, and the polynomial lies in the subring of X^(N/2d).
pub struct Encoder {
    params: Parameters,
    embedding: Embedding,
}

thread_local! {
    /// Where vectors are transformed.
    static SCRATCH: Cell<Parts> = const {
        Cell::new(Parts {
            re: Vec::new(),
            im: Vec::new(),
        })
    };
}

/// Added to a number below 2^51 it leaves the nearest integer in the low bits, of two the even one.
const ROUNDING: f64 = 1.5 * (1u64 << 52) as f64;
/// Coefficients are below this.
const LIMIT: f64 = (1u64 << 62) as f64;

impl Encoder {
    /// Tables for the parameters' ring degree.
    pub fn new(params: &Parameters) -> Self {
        Self {
            params: params.clone(),
            embedding: Embedding::new(params.slots()),
        }
    }

    /// The parameters that the tables were made for.
    pub fn parameters(&self) -> &Parameters {
        &self.params
    }

    /// Encodes at a scale, over a set of limbs, ready for products.
    pub fn encode(
        &self,
        values: &[Complex64],
        scale: Scale,
        basis: Basis,
    ) -> Result<Plaintext, CkksError> {
        Ok(self.to_plaintext(&self.encode_integers(values, scale)?, basis))
    }

    /// Encodes at a scale to the nearest integer coefficients, of two the even one.
    pub fn encode_integers(
        &self,
        values: &[Complex64],
        scale: Scale,
    ) -> Result<IntegerPlaintext, CkksError> {
        let d = values.len();
        self.check_length("encode", d)?;
        // Taken out rather than borrowed, and used again: new memory of this size comes page by page.
        let mut w = SCRATCH.take();
        w.fill(values.iter().copied());
        self.embedding.slots_to_coefficients(&mut w);
        // d is a power of two: the division is exact.
        let largest = self.embedding.scale(&mut w, scale.0 / d as f64);
        // False for what is not a number.
        let coefficients = if largest < f64::from(i32::MAX) {
            let rounded = |x: f64| (x + ROUNDING).to_bits() as i32;
            Ok(self.in_order(&w, rounded).into())
        } else if largest < LIMIT {
            let rounded = |x: f64| x.round_ties_even() as i64;
            Ok(IntegerPoly::new(self.in_order(&w, rounded)))
        } else {
            Err(CkksError::TooLarge {
                operation: "encode",
                value: largest / scale.0,
                log_scale: scale.log2(),
                limit: "2^62",
            })
        };
        SCRATCH.set(w);
        coefficients.map(|coefficients| IntegerPlaintext {
            coefficients,
            scale,
        })
    }

    /// Coefficients in their order, rounded, from parts in bit-reversed order.
    fn in_order<T: Copy + Default>(&self, w: &Parts, rounded: impl Fn(f64) -> T) -> Vec<T> {
        let d = w.re.len();
        let mut out = vec![T::default(); 2 * d];
        let (re, im) = out.split_at_mut(d);
        for ((re, im), place) in re.iter_mut().zip(im).zip(self.embedding.reversed(d)) {
            (*re, *im) = (rounded(w.re[place]), rounded(w.im[place]));
        }
        out
    }

    /// Reduces an integer plaintext modulo a set of limbs and transforms it.
    pub fn to_plaintext(&self, integers: &IntegerPlaintext, basis: Basis) -> Plaintext {
        let ring = self.params.ring();
        Plaintext {
            poly: ring.transform_integers(&integers.coefficients, basis),
            scale: integers.scale,
        }
    }

    /// Decodes the first `d` slots' values of a periodic plaintext (any number d, a power of two, whose subring it lies in; the
    /// coefficients outside the subring are noise and are left out).
    pub fn decode(&self, plaintext: &Plaintext, d: usize) -> Result<Vec<Complex64>, CkksError> {
        self.check_length("decode", d)?;
        let ring = self.params.ring();
        // Two limbs (80 bits and more) hold every value that a scale of 40 or 50 bits is meant for.
        let basis = plaintext.poly.basis();
        let low: Basis = basis.iter().take(2).collect();
        let mut poly = ring.restrict(&plaintext.poly, low);
        ring.intt(&mut poly);
        let centered = Centered::new(ring.moduli(), low);
        let coefficient = |i: usize| centered.at(&poly, i) as f64 / plaintext.scale.0;
        let stride = ring.n() / (2 * d);
        let mut w = Parts {
            re: vec![0.0; d],
            im: vec![0.0; d],
        };
        for (i, place) in self.embedding.reversed(d).enumerate() {
            w.re[place] = coefficient(i * stride);
            w.im[place] = coefficient(i * stride + ring.n() / 2);
        }
        // The buffer goes back to a pool that every crate draws from, and with a ciphertext a decrypted value gives the secret away.
        poly.wipe();
        self.embedding.coefficients_to_slots(&mut w);
        let values = w.re.iter().zip(&w.im);
        Ok(values.map(|(&re, &im)| Complex64::new(re, im)).collect())
    }

    fn check_length(&self, operation: &'static str, d: usize) -> Result<(), CkksError> {
        if d.is_power_of_two() && d <= self.params.slots() {
            return Ok(());
        }
        let expected = format!("a power of two of at most {} values", self.params.slots());
        Err(CkksError::Mismatch {
            operation,
            expected,
            got: format!("{d}"),
        })
    }

    /// The twiddle factor of butterfly `j` in the layer of blocks of `len` slots of the embedding's fast transform.
    ///
    /// Layer by layer, for len = 2, 4, ..., d, (u, v) at distance len/2 becomes (u + w v, u - w v): this takes
    /// bit-reversed coefficients to slots. (Cheon et al. 2018, "Bootstrapping for approximate homomorphic encryption", 5.)
    pub fn twiddle(&self, len: usize, j: usize) -> Complex64 {
        self.embedding.twiddle(len, j)
    }
}

/// Representatives nearest to zero, from one or two limbs.
struct Centered {
    first: (usize, Modulus),
    /// With the inverse of the first limb's prime modulo the second's.
    second: Option<(usize, Modulus, u64)>,
}

impl Centered {
    /// Contract: the basis has one or two limbs.
    fn new(moduli: &[Modulus], basis: Basis) -> Self {
        let mut limbs = basis.iter().map(|i| (i, moduli[i]));
        let first = limbs.next().expect("at least one limb");
        let second = limbs
            .next()
            .map(|(i, q)| (i, q, q.inv(first.1.value() % q.value())));
        Self { first, second }
    }

    /// That of coefficient `i`.
    fn at(&self, poly: &Poly, i: usize) -> i128 {
        let (limb, q0) = self.first;
        let x0 = poly.limb(limb)[i];
        let Some((limb, q1, inverse)) = self.second else {
            return q0.centered(x0).into();
        };
        let digit = q1.mul(q1.sub(poly.limb(limb)[i], x0 % q1.value()), inverse);
        let modulus = q0.value() as i128 * q1.value() as i128;
        let value = x0 as i128 + q0.value() as i128 * digit as i128;
        if value > modulus / 2 {
            value - modulus
        } else {
            value
        }
    }
}
