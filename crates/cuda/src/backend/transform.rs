//! Transforms: one launch up to 2^12 words, two beyond.

use taciturn_ring::{Coefficients, IntegerPoly, Poly, Tables};

use super::CudaBackend;
use crate::abi::{MAX_BATCH, NttJob, NttParams, Operand};
use crate::tables::DeviceTables;
use crate::{Kernel, Launch};

/// Base-2 logarithm of the words that a block transforms in shared memory.
const TILE_BITS: u32 = 12;
const THREADS: u32 = 256;
/// The degree for which kernels exist that know it when they are compiled.
pub(crate) const COMPILED_LOG_N: u32 = 16;

/// A pass over all words: the kernel for any degree, and the one for 2^16.
type Pass = [Kernel; 2];

impl CudaBackend {
    /// The transform of all limbs where they are.
    pub(super) fn in_place(&self, a: &mut Poly) -> NttJob {
        let target = self.operand_mut(a);
        NttJob::in_place(target, target.basis)
    }

    /// The transform of an integer polynomial, of which the device keeps what it was given: narrow ones are transformed from there.
    pub(super) fn integers(&self, tables: &Tables, out: Operand, integers: &IntegerPoly) -> NttJob {
        let job = NttJob::in_place(out, out.basis);
        let coefficients = integers.coefficients();
        if let Coefficients::Wide(_) = coefficients {
            self.residues_of(tables, out, integers);
            return job;
        }
        let source = Operand {
            words: self.coefficients(integers).address(),
            basis: 0,
        };
        let spread = (tables.n() / coefficients.len()).trailing_zeros();
        NttJob {
            source,
            integers: u64::from(spread) + 1,
            ..job
        }
    }

    /// Coefficient to evaluation form.
    pub(super) fn forward(&self, tables: &Tables, jobs: &[NttJob]) {
        const COLUMNS: Pass = [Kernel::NttColumns, Kernel::NttColumns16];
        const ROWS: Pass = [Kernel::NttRows, Kernel::NttRows16];
        match two_passes(tables.log_n()) {
            None => self.pass(tables, ROWS, tables.log_n(), jobs),
            Some([columns, rows]) => {
                self.pass(tables, COLUMNS, columns, jobs);
                self.pass(tables, ROWS, rows, jobs);
            }
        }
    }

    /// Evaluation to coefficient form, times the job's factors in place of `1/N` where it has some.
    pub(super) fn inverse(&self, tables: &Tables, jobs: &[NttJob]) {
        const ROWS: Pass = [Kernel::InttRows, Kernel::InttRows16];
        const COLUMNS: Pass = [Kernel::InttColumns, Kernel::InttColumns16];
        match two_passes(tables.log_n()) {
            None => self.pass(tables, ROWS, tables.log_n(), jobs),
            Some([columns, rows]) => {
                self.pass(tables, ROWS, rows, jobs);
                self.pass(tables, COLUMNS, columns, jobs);
            }
        }
    }

    fn pass(&self, tables: &Tables, kernels: Pass, stages: u32, jobs: &[NttJob]) {
        let log_n = tables.log_n();
        let whole = stages == log_n;
        let tile_bits = TILE_BITS.min(log_n);
        let kernel = kernels[usize::from(log_n == COMPILED_LOG_N)];
        for batch in jobs.chunks(MAX_BATCH) {
            let limbs = batch.iter().map(|job| job.limbs.count_ones()).max();
            let launch = Launch {
                kernel,
                grid: [
                    1 << (log_n - tile_bits),
                    limbs.unwrap_or(0),
                    batch.len() as u32,
                ],
                threads: (1 << (tile_bits - 4)).clamp(1, THREADS),
                // One word in 16 is padding.
                shared_bytes: (17 << tile_bits) / 16 * 8,
            };
            let mut params = NttParams {
                primes: DeviceTables::of(&self.pool, tables).primes(),
                log_n,
                tile_bits,
                stages,
                whole: whole.into(),
                jobs: [NttJob::NONE; MAX_BATCH],
            };
            params.jobs[..batch.len()].copy_from_slice(batch);
            // SAFETY: jobs name polynomials in use that have the limbs asked for.
            unsafe { self.launch(launch, &params) };
        }
    }
}

/// Stages on columns and on rows, where one pass is not enough.
fn two_passes(log_n: u32) -> Option<[u32; 2]> {
    (log_n > TILE_BITS).then_some([log_n / 2, log_n - log_n / 2])
}
