//! Matrices in diagonal form.

use std::collections::BTreeMap;

use num_complex::Complex64;

/// A d x d matrix M acting on vectors of period d by `(M v)_i = sum_k diagonal_k[i] * v[i + k]`, indices modulo d. Offsets are kept in
/// (-d/2, d/2].
#[derive(Clone, Debug, PartialEq)]
pub struct Diagonals {
    period: usize,
    diagonals: BTreeMap<i64, Vec<Complex64>>,
}

impl Diagonals {
    /// The zero matrix.
    pub fn new(period: usize) -> Self {
        Self {
            period,
            diagonals: BTreeMap::new(),
        }
    }

    /// The number of distinct slots, d.
    pub fn period(&self) -> usize {
        self.period
    }

    /// Adds `value` to entry i of the diagonal at `offset`.
    pub fn add(&mut self, offset: i64, i: usize, value: Complex64) {
        let d = self.period as i64;
        let mut offset = offset.rem_euclid(d);
        if offset > d / 2 {
            offset -= d;
        }
        let zero = || vec![Complex64::ZERO; self.period];
        self.diagonals.entry(offset).or_insert_with(zero)[i] += value;
    }

    /// The non-zero diagonals by offset.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &[Complex64])> {
        self.diagonals.iter().map(|(&k, v)| (k, v.as_slice()))
    }

    /// `self * other`: first other, then self.
    pub fn compose(&self, other: &Diagonals) -> Diagonals {
        let d = self.period;
        let mut out = Diagonals::new(d);
        for (k, a) in self.iter() {
            for (m, b) in other.iter() {
                for i in 0..d {
                    let product = a[i] * b[(i as i64 + k).rem_euclid(d as i64) as usize];
                    if product != Complex64::ZERO {
                        out.add(k + m, i, product);
                    }
                }
            }
        }
        out
    }

    /// The same matrix acting on vectors of a longer period, which it takes for several vectors one after the other that are all alike:
    /// offsets that differ by the shorter period stay one.
    pub fn with_period(&self, period: usize) -> Diagonals {
        let mut out = Diagonals::new(period);
        for (k, diagonal) in self.iter() {
            for i in 0..period {
                out.add(k, i, diagonal[i % self.period]);
            }
        }
        out
    }

    /// Every entry times a constant.
    pub fn scale(&mut self, factor: f64) {
        self.diagonals
            .values_mut()
            .flatten()
            .for_each(|z| *z *= factor);
    }

    /// The matrix applied to a vector, in the clear.
    pub fn apply(&self, v: &[Complex64]) -> Vec<Complex64> {
        let d = self.period as i64;
        (0..d)
            .map(|i| {
                self.iter()
                    .map(|(k, a)| a[i as usize] * v[(i + k).rem_euclid(d) as usize])
                    .sum()
            })
            .collect()
    }
}
