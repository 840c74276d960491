//! The canonical embedding: slot vectors to integer polynomials and back.

use num_complex::Complex64;
use taciturn_ring::{Basis, IntegerPoly, Poly};

use crate::{CkksError, IntegerPlaintext, Parameters, Plaintext, Scale};

/// Encodes vectors of 1 to N/2 complex values (a power of two). A shorter vector of d values stands for its periodic repetition:
/// slot i holds value i mod d, and the polynomial lies in the subring of X^(N/2d).
pub struct Encoder {
    params: Parameters,
    /// exp(2 pi i k / 2N), k = 0..2N.
    roots: Vec<Complex64>,
    /// 5^j modulo 2N: slot j is the value at the root of that exponent.
    exponents: Vec<usize>,
    /// [`twiddle`](Encoder::twiddle) of butterflies 0 to len/2 from place len/2 on, for len = 2, 4, ... to the number of slots.
    twiddles: Vec<Complex64>,
}

impl Encoder {
    /// Tables for the parameters' ring degree.
    pub fn new(params: &Parameters) -> Self {
        let order = 2 * params.ring().n();
        let angle = std::f64::consts::TAU / order as f64;
        let roots = (0..order)
            .map(|k| Complex64::cis(angle * k as f64))
            .collect();
        let exponents: Vec<usize> = std::iter::successors(Some(1), |e| Some(e * 5 % order))
            .take(params.slots())
            .collect();
        let mut encoder = Self {
            params: params.clone(),
            roots,
            exponents,
            twiddles: Vec::new(),
        };
        let layers = std::iter::successors(Some(2), |len| Some(2 * len));
        let factors = layers
            .take_while(|&len| len <= params.slots())
            .flat_map(|len| (0..len / 2).map(move |j| (len, j)))
            .map(|(len, j)| encoder.twiddle(len, j));
        encoder.twiddles = std::iter::once(Complex64::ZERO).chain(factors).collect();
        encoder
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

    /// Encodes at a scale to integer coefficients.
    pub fn encode_integers(
        &self,
        values: &[Complex64],
        scale: Scale,
    ) -> Result<IntegerPlaintext, CkksError> {
        let d = values.len();
        self.check_length("encode", d)?;
        let mut w = values.to_vec();
        self.slots_to_coefficients(&mut w);
        let mut coefficients = vec![0i64; 2 * d];
        const LIMIT: f64 = (1u64 << 62) as f64;
        for (i, z) in w.iter().enumerate() {
            for (at, part) in [(i, z.re), (d + i, z.im)] {
                let scaled = rounded(part * scale.0);
                if !scaled.is_finite() || scaled.abs() >= LIMIT {
                    return Err(CkksError::TooLarge {
                        operation: "encode",
                        value: part,
                        log_scale: scale.log2(),
                        limit: "2^62",
                    });
                }
                coefficients[at] = scaled as i64;
            }
        }
        Ok(IntegerPlaintext {
            coefficients: IntegerPoly::new(coefficients),
            scale,
        })
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
        let coefficient =
            |i: usize| centered(ring.moduli(), &poly, low, i) as f64 / plaintext.scale.0;
        let stride = ring.n() / (2 * d);
        let mut w: Vec<_> = (0..d)
            .map(|i| {
                Complex64::new(
                    coefficient(i * stride),
                    coefficient(i * stride + ring.n() / 2),
                )
            })
            .collect();
        // The buffer goes back to a pool that every crate draws from, and with a ciphertext a decrypted value gives the secret away.
        poly.wipe();
        self.coefficients_to_slots(&mut w);
        Ok(w)
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
        let order = self.roots.len();
        self.roots[self.exponents[j] % (4 * len) * (order / (4 * len))]
    }

    /// In place: w_i = c_i + i c_{i+d} from slot values (inverse transform, 1/d included).
    fn slots_to_coefficients(&self, values: &mut [Complex64]) {
        let d = values.len();
        let mut len = d;
        while len >= 2 {
            for block in values.chunks_exact_mut(len) {
                let (lower, upper) = block.split_at_mut(len / 2);
                let pairs = lower.iter_mut().zip(upper);
                for ((a, b), w) in pairs.zip(&self.twiddles[len / 2..len]) {
                    (*a, *b) = (*a + *b, (*a - *b) * w.conj());
                }
            }
            len /= 2;
        }
        bit_reverse(values);
        let inverse = 1.0 / d as f64;
        values.iter_mut().for_each(|v| *v *= inverse);
    }

    /// In place: slot values from w_i = c_i + i c_{i+d}.
    fn coefficients_to_slots(&self, values: &mut [Complex64]) {
        bit_reverse(values);
        let mut len = 2;
        while len <= values.len() {
            for block in values.chunks_exact_mut(len) {
                let (lower, upper) = block.split_at_mut(len / 2);
                let pairs = lower.iter_mut().zip(upper);
                for ((a, b), w) in pairs.zip(&self.twiddles[len / 2..len]) {
                    let v = *b * w;
                    (*a, *b) = (*a + v, *a - v);
                }
            }
            len *= 2;
        }
    }
}

/// The nearest whole number, without a call for those of usual size.
fn rounded(x: f64) -> f64 {
    // Beside a number of 2^52 no fraction has room.
    const WHOLE: f64 = 1.5 * (1u64 << 52) as f64;
    match x.abs() < (1u64 << 51) as f64 {
        true => (x + WHOLE) - WHOLE,
        false => x.round(),
    }
}

fn bit_reverse(values: &mut [Complex64]) {
    if values.len() < 2 {
        return;
    }
    let shift = usize::BITS - values.len().trailing_zeros();
    for i in 0..values.len() {
        let j = i.reverse_bits() >> shift;
        if i < j {
            values.swap(i, j);
        }
    }
}

/// The representative of coefficient `i` nearest to zero, from one or two limbs.
fn centered(moduli: &[taciturn_ring::Modulus], poly: &Poly, basis: Basis, i: usize) -> i128 {
    let limbs: Vec<usize> = basis.iter().collect();
    let first = moduli[limbs[0]];
    let x0 = poly.limb(limbs[0])[i];
    let (value, modulus) = match limbs.get(1) {
        None => (x0 as i128, first.value() as i128),
        Some(&second) => {
            let q1 = moduli[second];
            let x1 = poly.limb(second)[i];
            let difference = q1.sub(x1, x0 % q1.value());
            let inverse = q1.inv(first.value() % q1.value());
            let digit = q1.mul(difference, inverse);
            let modulus = first.value() as i128 * q1.value() as i128;
            (x0 as i128 + first.value() as i128 * digit as i128, modulus)
        }
    };
    if value > modulus / 2 {
        value - modulus
    } else {
        value
    }
}
