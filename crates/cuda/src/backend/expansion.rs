//! Uniform polynomials from their seeds.

use taciturn_ring::{Poly, Tables};

use super::{CudaBackend, Seeded};
use crate::abi::{
    DRAWS, DrawGroup, ExpansionJob, ExpansionParams, GROUP_BLOCKS, MAX_BATCH, Operand, Seed,
};
use crate::memory::Memory;
use crate::tables::DeviceTables;
use crate::{Kernel, Launch};

/// See `kernels/expansion.cuh`.
const THREADS: u32 = 256;
const DRAW_BITS: u32 = 52;
const GROUP_DRAWS: u64 = (GROUP_BLOCKS * DRAWS) as u64;
/// Groups beyond those that a limb takes on average: with them draws are too few once in 2^128 seeds, or in small rings never.
const MORE_GROUPS: u64 = 8;

/// Which draws of each limb are kept.
struct Notes {
    memory: Memory,
    basis: u64,
}

/// The half of a key that a seed may stand for.
pub(super) enum Half {
    /// It has words.
    Words(Operand),
    /// It is expanded by whoever reads it.
    Seed(Seed),
}

impl CudaBackend {
    /// A half of a key, which stays on the device unless it is expanded by each product.
    pub(super) fn key_half(&self, tables: &Tables, half: &Poly) -> Half {
        let seeded = half.seed().is_some() && !half.has_device_copy();
        match self.seeded {
            Seeded::EachTime if seeded => return Half::Seed(self.seed(tables, half)),
            Seeded::Expanded if seeded => {
                half.device_or(|| {
                    let limbs = half.basis().mask();
                    let (memory, target) = self.scratch(tables, limbs);
                    let seed = self.seed(tables, half);
                    let job = ExpansionJob {
                        target,
                        limbs,
                        seed,
                    };
                    self.expansion(tables, Kernel::Expansion, job);
                    memory
                });
            }
            _ => {}
        }
        Half::Words(self.operand(half))
    }

    /// The seed of a polynomial that has one, and what is noted of its draws.
    fn seed(&self, tables: &Tables, poly: &Poly) -> Seed {
        let Some(seed) = poly.seed() else {
            return Seed::NONE;
        };
        let mut key = [0; 8];
        for (word, bytes) in key.iter_mut().zip(seed.bytes().as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        let notes: &Notes = seed.attachment().get_or_init(|| {
            let basis = poly.basis().mask();
            let count = basis.count_ones() as usize * groups(tables) as usize;
            let memory = self.pool().allocate(count * size_of::<DrawGroup>());
            let job = ExpansionJob {
                target: Operand::NONE,
                limbs: basis,
                seed: Seed {
                    groups: memory.address(),
                    counted: basis,
                    key,
                },
            };
            self.expansion(tables, Kernel::ExpansionNotes, job);
            Notes { memory, basis }
        });
        Seed {
            groups: notes.memory.address(),
            counted: notes.basis,
            key,
        }
    }

    fn expansion(&self, tables: &Tables, kernel: Kernel, job: ExpansionJob) {
        let groups = groups(tables) as u32;
        let (blocks, shared_bytes) = match kernel {
            Kernel::ExpansionNotes => (1, THREADS * size_of::<u32>() as u32),
            _ => ((groups * GROUP_BLOCKS as u32).div_ceil(THREADS), 0),
        };
        let launch = Launch {
            kernel,
            grid: [blocks, job.limbs.count_ones(), 1],
            threads: THREADS,
            shared_bytes,
        };
        let mut params = ExpansionParams {
            primes: DeviceTables::of(self.pool(), tables).primes(),
            log_n: tables.log_n(),
            groups,
            jobs: [ExpansionJob::NONE; MAX_BATCH],
        };
        params.jobs[0] = job;
        // SAFETY: the job names memory for the limbs asked for, and notes of those of the polynomial.
        unsafe { self.launch(launch, &params) };
    }
}

/// Groups of draws that are noted of each limb: as many as the share of kept draws asks for, and some more.
pub(super) fn groups(tables: &Tables) -> u64 {
    let n = tables.n() as u64;
    let most = tables.moduli().iter().map(|q| {
        let limit = (1 << DRAW_BITS) / q.value() * q.value();
        let draws = (u128::from(n) << DRAW_BITS).div_ceil(u128::from(limit));
        (draws as u64).div_ceil(GROUP_DRAWS)
    });
    let more = if n < MORE_GROUPS * GROUP_DRAWS {
        0
    } else {
        MORE_GROUPS
    };
    most.max().unwrap_or(1) + more
}
