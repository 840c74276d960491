//! Sums over rotations of one value.

use taciturn_ring::{Coefficients, Hoisted, IntegerPoly, Poly, Step, Tables, Terms, Weight};

use super::CudaBackend;
use super::products::{Factor, KeyProducts};
use crate::Kernel;
use crate::abi::{CopyJob, MAX_DIGITS, Operand};
use crate::memory::Memory;

impl CudaBackend {
    /// All steps first, each one launch; then the sums, each one launch per 16 terms.
    pub(super) fn sums_over_steps(
        &self,
        tables: &Tables,
        outs: &mut [(Poly, Poly)],
        hoisted: Hoisted<'_>,
        steps: &[Step<'_>],
        sums: &[Terms<'_>],
    ) {
        let outs: Vec<[Operand; 2]> = outs
            .iter_mut()
            .map(|out| [self.operand_mut(&mut out.0), self.operand_mut(&mut out.1)])
            .collect();
        let Some(&[first, _]) = outs.first() else {
            return;
        };
        let rotated: Vec<([Memory; 2], [Operand; 2])> = steps
            .iter()
            .map(|step| {
                let halves = [(); 2].map(|()| self.scratch(tables, first.basis));
                let operands = halves.each_ref().map(|half| half.1);
                self.rotate(tables, operands, hoisted, step, false);
                (halves.map(|half| half.0), operands)
            })
            .collect();
        for (out, terms) in outs.into_iter().zip(sums) {
            for (i, terms) in terms.chunks(MAX_DIGITS).enumerate() {
                let (_scratch, factors) = self.factors(tables, terms, first.basis);
                let terms: Vec<(Factor, [Operand; 2])> = factors
                    .into_iter()
                    .zip(terms)
                    .map(|(factor, &(step, _))| (factor, rotated[step].1))
                    .collect();
                self.weighted_sum(tables, out, &terms, i > 0);
            }
        }
    }

    /// Products with integer polynomials, in one launch per 16 terms.
    pub(super) fn sum_of_integer_products(
        &self,
        tables: &Tables,
        out: [Operand; 2],
        terms: &[([&Poly; 2], &IntegerPoly)],
    ) {
        for (i, terms) in terms.chunks(MAX_DIGITS).enumerate() {
            let weights: Vec<(usize, Weight<'_>)> = terms
                .iter()
                .map(|(_, integers)| (0, Weight::Integers(integers)))
                .collect();
            let (_scratch, factors) = self.factors(tables, &weights, out[0].basis);
            let terms: Vec<(Factor, [Operand; 2])> = factors
                .into_iter()
                .zip(terms)
                .map(|(factor, (polys, _))| (factor, polys.map(|poly| self.operand(poly))))
                .collect();
            self.weighted_sum(tables, out, &terms, i > 0);
        }
    }

    /// A step, or the value itself, over `out`'s limbs; added to what is there where that is asked for.
    pub(super) fn rotate(
        &self,
        tables: &Tables,
        out: [Operand; 2],
        hoisted: Hoisted<'_>,
        step: &Step<'_>,
        accumulate: bool,
    ) {
        if step.map().is_none() {
            return self.spread_value(tables, out, hoisted);
        }
        let products = KeyProducts {
            digits: hoisted.digits,
            keys: step.key(),
            map: step.map(),
            addend: self.operand(hoisted.value[0]),
            accumulate,
        };
        self.sum_of_keys(tables, out, &products);
    }

    /// The value, zero on the limbs that it lacks.
    pub(super) fn spread_value(&self, tables: &Tables, out: [Operand; 2], hoisted: Hoisted<'_>) {
        let pairs = out.into_iter().zip(hoisted.value);
        let jobs = pairs.map(|(target, value)| CopyJob::whole(target, self.operand(value)));
        self.copies(tables.log_n(), &jobs.collect::<Vec<_>>());
    }

    /// The weights of some terms, transformed where they are integers, with the memory that this took.
    fn factors(
        &self,
        tables: &Tables,
        terms: &[(usize, Weight<'_>)],
        basis: u64,
    ) -> (Vec<Memory>, Vec<Factor>) {
        let mut scratch = Vec::new();
        let mut transforms = Vec::new();
        let factors = terms
            .iter()
            .map(|&(_, weight)| match weight {
                Weight::Sparse(weight) => self.sparse(weight),
                Weight::Integers(integers) => {
                    let (memory, values) = self.scratch(tables, basis);
                    scratch.push(memory);
                    transforms.push(self.integers(tables, values, integers));
                    Factor { values, stride: 1 }
                }
            })
            .collect();
        self.forward(tables, &transforms);
        (scratch, factors)
    }

    /// The residues of an integer polynomial.
    pub(super) fn residues_of(&self, tables: &Tables, out: Operand, integers: &IntegerPoly) {
        let coefficients = integers.coefficients();
        let kernel = match coefficients {
            Coefficients::Narrow(_) => Kernel::ReduceNarrow,
            Coefficients::Wide(_) => Kernel::ReduceSigned,
        };
        let memory = self.coefficients(integers);
        self.residues(tables, kernel, out, memory, coefficients.len());
    }

    /// The coefficients of an integer polynomial, which stay on the device once they were used.
    pub(super) fn coefficients<'a>(&self, integers: &'a IntegerPoly) -> &'a Memory {
        let memory: &Memory = integers
            .attachment()
            .get_or_init(|| match integers.coefficients() {
                Coefficients::Narrow(x) => self.pool.upload(x),
                Coefficients::Wide(x) => self.pool.upload(x),
            });
        self.pool.check(memory);
        memory
    }
}
