//! What an operation does, counted: a backend that computes nothing and adds up what each call would take.
//!
//! Operations on ciphertexts do not depend on values, so that one run on this backend counts a whole bootstrap.

use std::ops::Sub;
use std::sync::Mutex;
use std::sync::PoisonError;

use serde::Serialize;
use taciturn_ring::{
    Automorphism, Backend, BaseConversion, Coefficients, Form, Hoisted, IntegerPoly, Poly, Ring,
    Step, Tables, Terms, Weight,
};

const WORD: f64 = 8.0;
/// Multiply-adds of a product with a prepared factor: low and high word, and the quotient times the prime.
const FIXED_PRODUCT: f64 = 3.0;
/// Of a product of two variable factors (Barrett).
const PRODUCT: f64 = 4.0;
/// Of a reduction of a sum of products: to one word, and out of Montgomery form.
const SUM_REDUCTION: f64 = 5.0;
/// Of one product in such a sum: low and high word.
const TERM: f64 = 2.0;

/// Integer work and memory traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Work {
    /// 52-bit multiply-adds, each of one word: a low or a high half of a product.
    pub multiply_adds: f64,
    /// Every operand of a call of the ring read once, every result written once, tables of roots included.
    pub bytes: f64,
}

impl Sub for Work {
    type Output = Work;

    fn sub(self, other: Work) -> Work {
        Work {
            multiply_adds: self.multiply_adds - other.multiply_adds,
            bytes: self.bytes - other.bytes,
        }
    }
}

/// The backend.
pub struct Counter {
    /// For polynomials of zeros in either form.
    ring: Ring,
    total: Mutex<Work>,
}

impl Counter {
    /// For polynomials of this ring's degree and primes.
    pub fn new(ring: &Ring) -> Result<Self, taciturn_ring::RingError> {
        let primes: Vec<u64> = ring.moduli().iter().map(|q| q.value()).collect();
        Ok(Self {
            ring: Ring::new(ring.log_n(), &primes)?,
            total: Mutex::default(),
        })
    }

    /// Everything so far.
    pub fn total(&self) -> Work {
        *self.total.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds multiply-adds and words of traffic, each a number per coefficient.
    fn add(&self, multiply_adds: f64, words: f64) {
        let n = self.ring.n() as f64;
        let mut total = self.total.lock().unwrap_or_else(PoisonError::into_inner);
        total.multiply_adds += n * multiply_adds;
        total.bytes += n * WORD * words;
    }

    /// Multiply-adds of a transform per coefficient: N/2 butterflies in each of log N stages.
    fn transform(&self) -> f64 {
        FIXED_PRODUCT * f64::from(self.ring.log_n()) / 2.0
    }

    /// Of an integer polynomial, per coefficient of the ring: multiply-adds of its reduction and of its transform, and words that it takes.
    fn integers(&self, integers: &IntegerPoly) -> (f64, f64, f64) {
        let coefficients = integers.coefficients();
        let n = self.ring.n() as f64;
        let count = coefficients.len() as f64;
        let reduction = match coefficients {
            Coefficients::Narrow(_) => 0.0,
            Coefficients::Wide(_) => SUM_REDUCTION,
        };
        (
            reduction * count / n,
            FIXED_PRODUCT * count.log2() / 2.0 * count / n,
            coefficients.bytes() as f64 / WORD / n,
        )
    }

    /// A conversion between numbers of limbs: a product and a quotient's share per source; per target a sum over sources and quotient.
    fn conversion(sources: f64, targets: f64) -> f64 {
        let target = TERM * (sources + 1.0) + SUM_REDUCTION - FIXED_PRODUCT;
        sources * (FIXED_PRODUCT + 1.0) + targets * target
    }

    /// Both halves of a sum of products.
    fn key_product_of(terms: f64) -> f64 {
        2.0 * (TERM * terms + SUM_REDUCTION)
    }
}

fn limbs(p: &Poly) -> f64 {
    p.basis().len() as f64
}

impl Backend for Counter {
    fn name(&self) -> &'static str {
        "counter"
    }

    fn reduce_signed(&self, _: &Tables, out: &mut Poly, _: &[i64]) {
        self.add(limbs(out) * SUM_REDUCTION, limbs(out) + 1.0);
    }

    fn reduce_integers(&self, _: &Tables, out: &mut Poly, integers: &IntegerPoly) {
        let (reduction, _, words) = self.integers(integers);
        self.add(limbs(out) * reduction, limbs(out) + words);
    }

    fn transform_integers(&self, _: &Tables, out: &mut Poly, integers: &IntegerPoly) {
        let (reduction, transform, words) = self.integers(integers);
        self.add(
            limbs(out) * (reduction + transform),
            2.0 * limbs(out) + words,
        );
        *out = self.ring.zero(out.basis(), Form::Evaluation);
    }

    fn ntt(&self, _: &Tables, a: &mut Poly) {
        self.add(limbs(a) * self.transform(), 3.0 * limbs(a));
        *a = self.ring.zero(a.basis(), Form::Evaluation);
    }

    fn intt(&self, _: &Tables, a: &mut Poly) {
        self.add(limbs(a) * self.transform(), 3.0 * limbs(a));
        *a = self.ring.zero(a.basis(), Form::Coefficient);
    }

    fn add(&self, _: &Tables, a: &mut Poly, _: &Poly) {
        self.add(0.0, 3.0 * limbs(a));
    }

    fn add_to_limbs(&self, _: &Tables, _: &mut Poly, b: &Poly) {
        self.add(0.0, 3.0 * limbs(b));
    }

    fn sub(&self, _: &Tables, a: &mut Poly, _: &Poly) {
        self.add(0.0, 3.0 * limbs(a));
    }

    fn neg(&self, _: &Tables, a: &mut Poly) {
        self.add(0.0, 2.0 * limbs(a));
    }

    fn mul(&self, _: &Tables, a: &mut Poly, _: &Poly) {
        self.add(PRODUCT * limbs(a), 3.0 * limbs(a));
    }

    fn mul_add(&self, _: &Tables, acc: &mut Poly, _: &Poly, _: &Poly) {
        self.add(PRODUCT * limbs(acc), 4.0 * limbs(acc));
    }

    fn mul_into(&self, _: &Tables, out: &mut Poly, _: &Poly, _: &Poly) {
        self.add(PRODUCT * limbs(out), 3.0 * limbs(out));
    }

    fn scale(&self, _: &Tables, a: &mut Poly, _: &[[u64; 2]]) {
        self.add(FIXED_PRODUCT * limbs(a), 2.0 * limbs(a));
    }

    fn shift(&self, _: &Tables, a: &mut Poly, _: &[[u64; 2]]) {
        self.add(0.0, 2.0 * limbs(a));
    }

    fn automorphism(&self, _: &Tables, out: &mut Poly, _: &Poly, _: &Automorphism) {
        self.add(0.0, 2.0 * limbs(out));
    }

    fn add_automorphism(&self, _: &Tables, _: &mut Poly, a: &Poly, _: &Automorphism) {
        self.add(0.0, 3.0 * limbs(a));
    }

    fn add_scaled(&self, _: &Tables, _: &mut Poly, a: &Poly, _: &[u64]) {
        self.add(FIXED_PRODUCT * limbs(a), 3.0 * limbs(a));
    }

    fn convert(&self, _: &Tables, out: &mut Poly, a: &Poly, _: &BaseConversion) {
        let copied = out.basis().intersection(a.basis()).len() as f64;
        let conversion = Self::conversion(limbs(a), limbs(out) - copied);
        self.add(conversion, limbs(a) + limbs(out));
    }

    fn extend_digit(
        &self,
        _: &Tables,
        out: &mut Poly,
        _: &Poly,
        _: &Poly,
        conversion: &BaseConversion,
    ) {
        let source = conversion.source();
        let copied = out.basis().intersection(source).len() as f64;
        let (sources, made) = (source.len() as f64, limbs(out) - copied);
        let multiply_adds = Self::conversion(sources, made) + made * self.transform();
        self.add(multiply_adds, sources + copied + limbs(out) + made);
    }

    fn key_product(
        &self,
        _: &Tables,
        out: (&mut Poly, &mut Poly),
        digits: &[Poly],
        _: &[(Poly, Poly)],
        _: Option<&Automorphism>,
        accumulate: bool,
    ) {
        let (count, limbs) = (digits.len() as f64, limbs(out.0));
        let written = if accumulate { 4.0 } else { 2.0 };
        self.add(
            limbs * Self::key_product_of(count),
            limbs * (3.0 * count + written),
        );
    }

    fn dot_integers(
        &self,
        _: &Tables,
        out: (&mut Poly, &mut Poly),
        terms: &[([&Poly; 2], &IntegerPoly)],
    ) {
        let limbs = limbs(out.0);
        for (_, integers) in terms {
            let (reduction, transform, words) = self.integers(integers);
            self.add(limbs * (reduction + transform), limbs * 3.0 + words);
        }
        let count = terms.len() as f64;
        self.add(limbs * 2.0 * PRODUCT * count, limbs * 2.0);
    }

    fn hoisted_sums(
        &self,
        _: &Tables,
        outs: &mut [(Poly, Poly)],
        hoisted: Hoisted<'_>,
        steps: &[Step<'_>],
        sums: &[Terms<'_>],
    ) {
        let Some((first, _)) = outs.first() else {
            return;
        };
        let limbs = limbs(first);
        let digits = hoisted.digits.len() as f64;
        let rotations = steps.iter().filter(|step| !step.is_identity()).count() as f64;
        let mut multiply_adds = rotations * Self::key_product_of(digits);
        let mut words = 2.0 + digits + 2.0 * digits * rotations + 2.0 * outs.len() as f64;
        let mut shared = 0.0;
        for terms in sums {
            multiply_adds += Self::key_product_of(terms.len() as f64);
            for (_, weight) in terms {
                match weight {
                    Weight::Sparse(weight) => {
                        shared += weight.bytes() as f64 / WORD / self.ring.n() as f64
                            * (limbs / weight.basis().len() as f64);
                    }
                    Weight::Integers(integers) => {
                        let (reduction, transform, words) = self.integers(integers);
                        multiply_adds += reduction + transform;
                        shared += words;
                    }
                }
            }
        }
        let transforms = sums
            .iter()
            .flatten()
            .any(|(_, weight)| matches!(weight, Weight::Integers(_)));
        words += if transforms { 1.0 } else { 0.0 };
        self.add(limbs * multiply_adds, limbs * words + shared);
    }

    fn sum_of_rotations(
        &self,
        _: &Tables,
        out: (&mut Poly, &mut Poly),
        hoisted: Hoisted<'_>,
        steps: &[Step<'_>],
    ) {
        let (digits, rotations) = (hoisted.digits.len() as f64, steps.len() as f64);
        let words = 4.0 + digits + 2.0 * digits * rotations;
        self.add(
            limbs(out.0) * rotations * Self::key_product_of(digits),
            limbs(out.0) * words,
        );
    }

    fn mod_down(&self, _: &Tables, out: &mut Poly, a: &Poly, conversion: &BaseConversion) {
        let (dropped, kept) = (conversion.source().len() as f64, limbs(out));
        let (transforms, roots) = match a.form() {
            Form::Evaluation => ((dropped + kept) * self.transform(), dropped + kept),
            Form::Coefficient => (0.0, 0.0),
        };
        let multiply_adds = Self::conversion(dropped, kept) + transforms + FIXED_PRODUCT * kept;
        self.add(multiply_adds, limbs(a) + kept + roots);
    }
}
