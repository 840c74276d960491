//! Polynomials of a subring, stored by their distinct values.

use crate::{Basis, Form, Poly, Ring, kernels::MAX_DIGITS};

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

    /// `(sum of weights_j·terms_j.0, sum of weights_j·terms_j.1)` over `target`. Cost: two products per weight and limb.
    ///
    /// Contract: evaluation form, as many terms as weights and at least one, one stride, all bases contain `target`.
    pub fn weighted_sum(
        &self,
        weights: &[&SparsePoly],
        terms: &[&[Poly; 2]],
        target: Basis,
    ) -> (Poly, Poly) {
        assert!(
            !weights.is_empty() && weights.len() == terms.len(),
            "weighted_sum: expected as many terms as weights"
        );
        let covered = weights
            .iter()
            .all(|w| target.is_subset(w.basis) && w.stride == weights[0].stride)
            && terms
                .iter()
                .flat_map(|t| t.iter())
                .all(|p| target.is_subset(p.basis()));
        assert!(
            covered,
            "weighted_sum: expected one stride and all limbs of the target"
        );
        let stale = || Poly::stale(self.n(), target, Form::Evaluation);
        let mut out = (stale(), stale());
        for (i, (weights, terms)) in weights
            .chunks(MAX_DIGITS)
            .zip(terms.chunks(MAX_DIGITS))
            .enumerate()
        {
            if i == 0 {
                self.backend
                    .weighted_sum(&self.tables, (&mut out.0, &mut out.1), weights, terms);
                continue;
            }
            let mut more = (stale(), stale());
            self.backend
                .weighted_sum(&self.tables, (&mut more.0, &mut more.1), weights, terms);
            self.add_assign(&mut out.0, &more.0);
            self.add_assign(&mut out.1, &more.1);
        }
        out
    }
}
