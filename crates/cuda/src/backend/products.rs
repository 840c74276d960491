//! Sums of products.

use taciturn_ring::{Automorphism, Poly, SparsePoly, Tables};

use super::expansion::{Half, groups};
use super::{CudaBackend, words_by_limbs};
use crate::abi::{
    KeyProductParams, MAX_DIGITS, Operand, Seed, SeededProductParams, WeightedSumParams,
};
use crate::memory::Memory;
use crate::tables::DeviceTables;
use crate::{Kernel, Launch};

/// Words of a thread where keys are expanded; see `kernels/products.cuh`.
const SEEDED_WORDS: u32 = 4;

/// Digits times keys.
pub(super) struct KeyProducts<'a> {
    pub(super) digits: &'a [Poly],
    pub(super) keys: &'a [(Poly, Poly)],
    /// Applied to digits and addend.
    pub(super) map: Option<&'a Automorphism>,
    /// Added to the first sum on its limbs, or none.
    pub(super) addend: Operand,
    /// Adds to what is there.
    pub(super) accumulate: bool,
}

/// A weight that is ready for products: its values' memory and their number in a limb.
#[derive(Clone, Copy)]
pub(super) struct Factor {
    pub(super) values: Operand,
    pub(super) stride: usize,
}

impl CudaBackend {
    pub(super) fn sum_of_keys(
        &self,
        tables: &Tables,
        out: [Operand; 2],
        products: &KeyProducts<'_>,
    ) {
        let mut params = KeyProductParams {
            primes: DeviceTables::of(&self.pool, tables).primes(),
            out,
            digits: [Operand::NONE; MAX_DIGITS],
            keys: [[Operand::NONE; 2]; MAX_DIGITS],
            addend: products.addend,
            count: products.digits.len() as u32,
            log_n: tables.log_n(),
            galois: products.map.map_or(1, |map| map.galois() as u32),
            accumulate: products.accumulate.into(),
        };
        let mut seeds = [Seed::NONE; MAX_DIGITS];
        for (j, (digit, key)) in products.digits.iter().zip(products.keys).enumerate() {
            params.digits[j] = self.operand(digit);
            let mut half = Operand::NONE;
            match self.key_half(tables, &key.1) {
                Half::Words(words) => half = words,
                Half::Seed(seed) => seeds[j] = seed,
            }
            params.keys[j] = [self.operand(&key.0), half];
        }
        let launch = words_by_limbs(Kernel::KeyProduct, tables.n(), out[0].basis);
        if seeds.iter().all(|seed| seed.groups == 0) {
            // SAFETY: the operands are whole polynomials in use, and all have the limbs written.
            unsafe { self.launch(launch, &params) };
            return;
        }
        let launch = Launch {
            kernel: Kernel::SeededProduct,
            grid: [launch.grid[0].div_ceil(SEEDED_WORDS), launch.grid[1], 1],
            shared_bytes: SEEDED_WORDS * launch.threads * size_of::<u64>() as u32,
            ..launch
        };
        let params = SeededProductParams {
            product: params,
            seeds,
            groups: groups(tables),
        };
        // SAFETY: as above, and the seeds' notes are of the limbs that their keys have.
        unsafe { self.launch(launch, &params) };
    }

    /// At most 16 factors, of one stride.
    pub(super) fn weighted_sum(
        &self,
        tables: &Tables,
        out: [Operand; 2],
        terms: &[(Factor, [Operand; 2])],
        accumulate: bool,
    ) {
        let stride = terms.first().map_or(1, |term| term.0.stride);
        let mut params = WeightedSumParams {
            primes: DeviceTables::of(&self.pool, tables).primes(),
            out,
            weights: [Operand::NONE; MAX_DIGITS],
            terms: [[Operand::NONE; 2]; MAX_DIGITS],
            count: terms.len() as u32,
            log_n: tables.log_n(),
            log_stride: stride.trailing_zeros(),
            accumulate: accumulate.into(),
        };
        for (j, (factor, term)) in terms.iter().enumerate() {
            params.weights[j] = factor.values;
            params.terms[j] = *term;
        }
        let launch = words_by_limbs(Kernel::WeightedSum, tables.n(), out[0].basis);
        // SAFETY: as above.
        unsafe { self.launch(launch, &params) };
    }

    /// A sparse weight's values stay on the device once they were used.
    pub(super) fn sparse(&self, weight: &SparsePoly) -> Factor {
        let memory: &Memory = weight.device(|values| self.pool.upload(values));
        self.pool.check(memory);
        Factor {
            values: Operand {
                words: memory.address(),
                basis: weight.basis().mask(),
            },
            stride: weight.stride(),
        }
    }
}
