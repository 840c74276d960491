//! Polynomials of a subring, stored by their distinct values.

use crate::{Basis, Form, Poly, Ring};

/// A polynomial in `X^stride`, in evaluation form: index `k` holds the value number `k / stride`, so that one value stands for a run of `stride`
/// words (in the order of [`exponent`](crate::exponent) the values of a subring come in runs).
#[derive(Clone, Debug)]
pub struct SparsePoly {
    pub(crate) basis: Basis,
    pub(crate) stride: usize,
    /// Of all limbs, in ascending order of their indices.
    values: Vec<u64>,
}

impl SparsePoly {
    /// The limbs it has.
    pub fn basis(&self) -> Basis {
        self.basis
    }

    /// Bytes of its values.
    pub fn bytes(&self) -> usize {
        self.values.len() * size_of::<u64>()
    }

    /// The distinct values of limb `i`.
    pub(crate) fn limb(&self, i: usize) -> &[u64] {
        let count = self.values.len() / self.basis.len();
        let position = self.basis.rank(i);
        &self.values[position * count..(position + 1) * count]
    }
}

impl Ring {
    /// The smallest stride that [`compress`](Self::compress) takes: kernels handle so many words at a time.
    pub const MIN_STRIDE: usize = 8;

    /// Keeps one value of each run. Contract: evaluation form; `a` lies in the subring of `X^stride`; `stride` is a power of two,
    /// at least [`MIN_STRIDE`](Self::MIN_STRIDE) and at most `N`.
    pub fn compress(&self, a: &Poly, stride: usize) -> SparsePoly {
        assert_eq!(
            a.form(),
            Form::Evaluation,
            "compress: expected evaluation form"
        );
        let fits = stride.is_power_of_two() && (Self::MIN_STRIDE..=self.n()).contains(&stride);
        assert!(
            fits,
            "compress: expected a stride from {} to N, got {stride}",
            Self::MIN_STRIDE
        );
        let values = a.words().iter().step_by(stride).copied().collect();
        SparsePoly {
            basis: a.basis(),
            stride,
            values,
        }
    }
}
