//! What a machine of slots offers: the operations into which every semantic operation is lowered.

use crate::{Diagonals, Level, Plain};
use taciturn_approx::Chebyshev;

/// A vector machine under CKKS's rules, on ciphertexts or on what stands for them.
///
/// All vectors have [`slots`](Machine::slots) entries; `rot(a, k)[i] = a[(i + k) mod slots]`. A value at a level has that
/// level's canonical scale; operands of one operation must be at equal levels. Each method says how many levels it takes;
/// a machine answers with an error, never a panic, where a value has fewer.
pub trait Machine {
    /// A value: a ciphertext or what stands for it.
    type Value: Clone;
    /// What can go wrong.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Number of slots, half the ring degree.
    fn slots(&self) -> usize;

    /// The level of a value.
    fn level(&self, a: &Self::Value) -> Level;

    /// Called with the name of the node whose operations follow.
    fn enter(&mut self, _node: &str) {}

    /// `a + b`.
    fn add(&mut self, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, Self::Error>;

    /// `a - b`.
    fn sub(&mut self, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, Self::Error>;

    /// `a + plain`.
    fn add_plain(&mut self, a: &Self::Value, plain: &Plain) -> Result<Self::Value, Self::Error>;

    /// `a * plain`; one level.
    fn mul_plain(&mut self, a: &Self::Value, plain: &Plain) -> Result<Self::Value, Self::Error>;

    /// `a * constant`; one level.
    fn mul_constant(&mut self, a: &Self::Value, constant: f64) -> Result<Self::Value, Self::Error>;

    /// `a * b`, relinearized and rescaled; one level.
    fn mul(&mut self, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, Self::Error>;

    /// `a * a`; one level.
    fn square(&mut self, a: &Self::Value) -> Result<Self::Value, Self::Error> {
        self.mul(a, a)
    }

    /// `sum_i a_i * b_i` over at least one pair; one level. Machines may relinearize and rescale the sum only.
    fn dot(&mut self, pairs: &[(&Self::Value, &Self::Value)]) -> Result<Self::Value, Self::Error> {
        let mut sum = self.mul(pairs[0].0, pairs[0].1)?;
        for (a, b) in &pairs[1..] {
            let product = self.mul(a, b)?;
            sum = self.add(&sum, &product)?;
        }
        Ok(sum)
    }

    /// `sum_i a_i * plain_i` over at least one pair; one level. Machines may rescale the sum only.
    fn dot_plain(&mut self, pairs: &[(&Self::Value, Plain)]) -> Result<Self::Value, Self::Error> {
        let mut sum = self.mul_plain(pairs[0].0, &pairs[0].1)?;
        for (a, plain) in &pairs[1..] {
            let product = self.mul_plain(a, plain)?;
            sum = self.add(&sum, &product)?;
        }
        Ok(sum)
    }

    /// As [`dot_plain`](Machine::dot_plain), with plaintexts of weights, which machines keep encoded for the next time.
    fn dot_weights(&mut self, pairs: &[(&Self::Value, Plain)]) -> Result<Self::Value, Self::Error> {
        self.dot_plain(pairs)
    }

    /// Rotation to the left by `steps` slots (to the right where negative).
    fn rotate(&mut self, a: &Self::Value, steps: i64) -> Result<Self::Value, Self::Error>;

    /// The rotations of one value by each of `steps`, hoisted: they share the decomposition.
    fn rotate_many(
        &mut self,
        a: &Self::Value,
        steps: &[i64],
    ) -> Result<Vec<Self::Value>, Self::Error>;

    /// The linear map of [`Diagonals`] by baby-step giant-step, split as these say; one level. A packed one takes a rotation of `a` before it
    /// and a conjugation of the result.
    fn linear_transform(
        &mut self,
        a: &Self::Value,
        diagonals: &Diagonals,
    ) -> Result<Self::Value, Self::Error>;

    /// `polynomial(a)`; [`polynomial_depth`] levels.
    fn polynomial(
        &mut self,
        a: &Self::Value,
        polynomial: &Chebyshev,
    ) -> Result<Self::Value, Self::Error>;

    /// The same value at a level not above its own.
    fn drop_to(&mut self, a: &Self::Value, level: Level) -> Result<Self::Value, Self::Error>;

    /// Refreshes a value of period `distinct_slots` whose slots are at most `bound` in magnitude; the result is at `target`.
    ///
    /// The input must have the levels that SlotsToCoeffs takes at this size.
    fn bootstrap(
        &mut self,
        a: &Self::Value,
        distinct_slots: usize,
        bound: f64,
        target: Level,
    ) -> Result<Self::Value, Self::Error>;

    /// Refreshes two values as [`bootstrap`](Machine::bootstrap) does one; `bound` is that of both. Machines may do it as one bootstrap of a
    /// complex value.
    fn bootstrap_pair(
        &mut self,
        pair: [&Self::Value; 2],
        distinct_slots: usize,
        bound: f64,
        target: Level,
    ) -> Result<[Self::Value; 2], Self::Error> {
        let first = self.bootstrap(pair[0], distinct_slots, bound, target)?;
        let second = self.bootstrap(pair[1], distinct_slots, bound, target)?;
        Ok([first, second])
    }
}

/// Levels that a machine takes for a polynomial: its own depth, and one for the map of its interval to [-1, 1] unless it
/// is [-1, 1] already (the map then sits in an earlier plaintext).
pub fn polynomial_depth(polynomial: &Chebyshev) -> u32 {
    polynomial.depth() + u32::from(!is_unit_interval(polynomial))
}

/// Whether the polynomial's interval is [-1, 1].
pub fn is_unit_interval(polynomial: &Chebyshev) -> bool {
    polynomial.low == -1.0 && polynomial.high == 1.0
}
