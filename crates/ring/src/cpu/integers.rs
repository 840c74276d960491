//! Integer polynomials to residues and their evaluations, limb by limb.

use super::CpuBackend;
use crate::{Coefficients, Modulus, Tables, automorphism::LANES, kernels::Kernels};

impl<K: Kernels> CpuBackend<K> {
    /// The residues of the polynomial with these coefficients at the multiples of a stride.
    pub(super) fn reduce_limb(&self, q: Modulus, out: &mut [u64], coefficients: Coefficients<'_>) {
        let stride = out.len() / coefficients.len();
        if stride > 1 {
            out.fill(0);
            for (k, out) in out.iter_mut().step_by(stride).enumerate() {
                *out = q.from_i64(coefficients.get(k));
            }
            return;
        }
        match coefficients {
            Coefficients::Narrow(x) => self.0.reduce_narrow(q, out, x),
            Coefficients::Wide(x) => self.0.reduce_signed(q, out, x),
        }
    }

    /// The evaluations of the polynomial with these coefficients at the multiples of a stride.
    ///
    /// With `N/stride` coefficients there are as many different evaluations, those of a ring of that degree whose root is `psi^stride`;
    /// its table of roots is the beginning of ours, and in the order of indices each value stands for `stride` words.
    pub(super) fn transform_limb(
        &self,
        tables: &Tables,
        limb: usize,
        out: &mut [u64],
        coefficients: Coefficients<'_>,
    ) {
        let q = tables.moduli()[limb];
        // Kernels take groups of words.
        let count = coefficients.len().max(LANES.min(out.len()));
        let stride = out.len() / count;
        let (first, _) = out.split_at_mut(count);
        let table = tables.ntt(limb).of_degree(count);
        match coefficients {
            Coefficients::Narrow(x) if x.len() == count => self.0.ntt_narrow(table, first, x),
            _ => {
                self.reduce_limb(q, first, coefficients);
                self.0.ntt(table, first);
            }
        }
        if stride > 1 {
            // From the back, so that no value is overwritten before it was spread.
            for k in (0..count).rev() {
                let value = out[k];
                out[k * stride..(k + 1) * stride].fill(value);
            }
        }
    }
}
