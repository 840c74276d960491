//! Uniform polynomials from their seeds.

use taciturn_ring::{Poly, Seed, Tables};

use super::{CudaBackend, Seeded};
use crate::abi::{ExpansionJob, ExpansionParams, MAX_BATCH, MAX_CHUNKS, Operand};
use crate::memory::Memory;
use crate::tables::DeviceTables;
use crate::{Kernel, Launch};

/// See `kernels/expansion.cuh`.
const THREADS: u32 = 256;
const CHUNK: u64 = 2048;
const DRAW_BITS: u32 = 52;

/// Draws that each chunk of each limb keeps.
struct Counts {
    memory: Memory,
    basis: u64,
}

impl CudaBackend {
    /// Halves of keys to be read on some limbs, expanded where they are not on the device, with the memory that only this call needs.
    pub(super) fn key_halves(
        &self,
        tables: &Tables,
        halves: &[&Poly],
        limbs: u64,
    ) -> (Vec<Memory>, Vec<Operand>) {
        if self.seeded != Seeded::EachTime {
            let operands = halves.iter().map(|half| self.half(tables, half));
            return (Vec::new(), operands.collect());
        }
        let mut scratch = Vec::new();
        let mut jobs = Vec::new();
        let operands = halves
            .iter()
            .map(
                |half| match half.seed().filter(|_| !half.has_device_copy()) {
                    None => self.operand(half),
                    Some(seed) => {
                        let limbs = limbs & half.basis().mask();
                        let (memory, target) = self.scratch(tables, limbs);
                        scratch.push(memory);
                        jobs.push(self.expansion_job(tables, seed, half, target, limbs));
                        target
                    }
                },
            )
            .collect();
        self.expansions(tables, Kernel::Expansion, &jobs);
        (scratch, operands)
    }

    /// A half that stays on the device.
    fn half(&self, tables: &Tables, half: &Poly) -> Operand {
        if let (Seeded::Expanded, Some(seed), false) =
            (self.seeded, half.seed(), half.has_device_copy())
        {
            half.device_or(|| {
                let limbs = half.basis().mask();
                let (memory, target) = self.scratch(tables, limbs);
                let job = self.expansion_job(tables, seed, half, target, limbs);
                self.expansions(tables, Kernel::Expansion, &[job]);
                memory
            });
        }
        self.operand(half)
    }

    fn expansion_job(
        &self,
        tables: &Tables,
        seed: &Seed,
        poly: &Poly,
        target: Operand,
        limbs: u64,
    ) -> ExpansionJob {
        let mut words = [0; 8];
        for (word, bytes) in words.iter_mut().zip(seed.bytes().as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        let counts: &Counts = seed.attachment().get_or_init(|| {
            let basis = poly.basis().mask();
            let count = basis.count_ones() as usize * MAX_CHUNKS;
            let zeros = vec![0u64; (count * size_of::<u32>()).div_ceil(size_of::<u64>())];
            let memory = self.pool().upload(&zeros);
            let job = ExpansionJob {
                target: Operand::NONE,
                limbs: basis,
                counts: memory.address(),
                counted: basis,
                seed: words,
            };
            self.expansions(tables, Kernel::ExpansionCounts, &[job]);
            Counts { memory, basis }
        });
        ExpansionJob {
            target,
            limbs,
            counts: counts.memory.address(),
            counted: counts.basis,
            seed: words,
        }
    }

    fn expansions(&self, tables: &Tables, kernel: Kernel, jobs: &[ExpansionJob]) {
        for batch in jobs.chunks(MAX_BATCH) {
            let limbs = batch.iter().map(|job| job.limbs.count_ones()).max();
            let launch = Launch {
                kernel,
                grid: [chunks(tables), limbs.unwrap_or(0), batch.len() as u32],
                threads: THREADS,
                shared_bytes: THREADS * size_of::<u32>() as u32,
            };
            let mut params = ExpansionParams {
                primes: DeviceTables::of(self.pool(), tables).primes(),
                log_n: tables.log_n().into(),
                jobs: [ExpansionJob::NONE; MAX_BATCH],
            };
            params.jobs[..batch.len()].copy_from_slice(batch);
            // SAFETY: jobs name memory for the limbs asked for, and counts for those of the polynomial.
            unsafe { self.launch(launch, &params) };
        }
    }
}

/// Chunks that nearly always fill a limb of any prime: as many as the share of kept draws asks for, and one. Beyond them one block of
/// threads goes on by itself.
fn chunks(tables: &Tables) -> u32 {
    let n = tables.n() as u64;
    let most = tables.moduli().iter().map(|q| {
        let limit = (1 << DRAW_BITS) / q.value() * q.value();
        let draws = (u128::from(n) << DRAW_BITS).div_ceil(u128::from(limit));
        (draws as u64).div_ceil(CHUNK) + u64::from(n >= CHUNK)
    });
    most.max().unwrap_or(1).min(MAX_CHUNKS as u64) as u32
}
