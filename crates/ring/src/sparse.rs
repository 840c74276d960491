//! Polynomials of a subring, stored by their distinct values.

use crate::{Basis, DeviceMemory, Form, Poly, Ring, words::Words};
use std::fmt;

/// A polynomial in `X^stride`, in evaluation form: index `k` holds the value number `k / stride`, so that one value stands for a run of `stride`
/// words (in the order of [`exponent`](crate::exponent) the values of a subring come in runs).
#[derive(Clone)]
pub struct SparsePoly {
    pub(crate) basis: Basis,
    pub(crate) stride: usize,
    /// Of all limbs, in ascending order of their indices.
    values: Words,
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

    /// The words that one value stands for.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// For backends: the distinct values in device memory, `N/stride` of each limb in ascending order of their indices, brought there
    /// by `upload` if they are not there yet. Contract: one type of memory.
    pub fn device<M: DeviceMemory>(&self, upload: impl FnOnce(&[u64]) -> M) -> &M {
        self.values.device(upload)
    }

    /// The distinct values of limb `i`.
    pub(crate) fn limb(&self, i: usize) -> &[u64] {
        let count = self.values.len() / self.basis.len();
        let position = self.basis.rank(i);
        &self.values[position * count..(position + 1) * count]
    }
}

/// Shows the shape only.
impl fmt::Debug for SparsePoly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SparsePoly")
            .field("basis", &self.basis)
            .field("stride", &self.stride)
            .finish()
    }
}

impl Ring {
    /// The smallest stride that [`compress`](Self::compress) takes.
    pub fn min_stride(&self) -> usize {
        self.backend.min_stride()
    }

    /// Keeps one value of each run. Contract: evaluation form; `a` lies in the subring of `X^stride`; `stride` is a power of two,
    /// at least [`min_stride`](Self::min_stride) and at most `N`.
    pub fn compress(&self, a: &Poly, stride: usize) -> SparsePoly {
        assert_eq!(
            a.form(),
            Form::Evaluation,
            "compress: expected evaluation form"
        );
        let fits = stride.is_power_of_two() && (self.min_stride()..=self.n()).contains(&stride);
        assert!(
            fits,
            "compress: expected a stride from {} to N, got {stride}",
            self.min_stride()
        );
        let count = self.n() / stride * a.basis().len();
        let values = match self.backend.compress(&self.tables, a, stride) {
            Some(memory) => Words::on_device(memory, count),
            None => {
                let mut values = Words::stale(count);
                let distinct = a.words().iter().step_by(stride);
                values
                    .iter_mut()
                    .zip(distinct)
                    .for_each(|(to, &from)| *to = from);
                values
            }
        };
        SparsePoly {
            basis: a.basis(),
            stride,
            values,
        }
    }
}
