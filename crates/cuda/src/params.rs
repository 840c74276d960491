//! What each launch reads, writes and computes, from its parameters.
//!
//! Accesses say which launches of a sequence must wait for which; work is what measurements are compared with.

use crate::Kernel;
use crate::abi::{
    self, ConversionParams, CopyParams, CopyWordsParams, ExpansionParams, KeyProductParams,
    NttParams, Operand, PeakParams, Plain, PointwiseParams, ScalarParams, SeededProductParams,
    WeightedSumParams,
};

/// Multiply-adds of 32-bit words in a product of two 64-bit words, and in a Montgomery reduction of 128 bits.
const WIDE_PRODUCT: f64 = 4.0;
const MONTGOMERY: f64 = 7.0;
/// Those of a reduction to a canonical residue: twice, with a product in between.
const REDUCE_WIDE: f64 = 2.0 * MONTGOMERY + WIDE_PRODUCT;
/// FP64 instructions of a modular product, of a reduction, and of what turns words into doubles and back.
const FP64_PRODUCT: f64 = 6.0;
const FP64_REDUCE: f64 = 3.0;
const FP64_CONVERT: f64 = 1.0;
/// 32-bit instructions of a uniform word: an eighth of a block of ChaCha20, and the draw's residue.
const GENERATED_WORD: f64 = 140.0;

/// Memory that a launch uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Access {
    /// Of the block.
    pub(crate) address: u64,
    /// Limbs of `words` words by their place in the block, a bit each; or all of the block.
    pub(crate) limbs: u64,
    /// Words of a limb; 0 where all of the block is meant.
    pub(crate) words: u64,
    pub(crate) write: bool,
}

/// What a launch takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cost {
    /// Operands read once and results written once.
    pub(crate) bytes: f64,
    /// FP64 instructions.
    pub(crate) fp64: f64,
    /// Multiply-adds of 32-bit factors and a 64-bit sum; where words are generated, the generator's instructions.
    pub(crate) integer: f64,
}

impl Cost {
    /// Of so many words: words read and written, and instructions, each per word.
    fn per_word(words: f64, traffic: f64, fp64: f64, integer: f64) -> Self {
        Self {
            bytes: words * traffic * size_of::<u64>() as f64,
            fp64: words * fp64,
            integer: words * integer,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            fp64: self.fp64 + other.fp64,
            integer: self.integer + other.integer,
        }
    }
}

/// The parameters of a kernel.
pub(crate) trait Params: Plain {
    /// Memory that is used, beside constants that nothing ever writes.
    fn accesses(&self, kernel: Kernel) -> Vec<Access>;

    /// What it takes.
    fn cost(&self, kernel: Kernel) -> Cost;
}

fn count(limbs: u64) -> f64 {
    f64::from(limbs.count_ones())
}

/// The places of some limbs among those of a basis.
fn places(basis: u64, limbs: u64) -> u64 {
    (0..64)
        .filter(|i| basis >> i & 1 == 1)
        .enumerate()
        .filter(|(_, i)| limbs >> i & 1 == 1)
        .fold(0, |places, (place, _)| places | 1 << place)
}

/// Collects accesses.
struct Accesses {
    log_n: u32,
    all: Vec<Access>,
}

impl Accesses {
    fn new(log_n: u32) -> Self {
        Self {
            log_n,
            all: Vec::new(),
        }
    }

    fn limbs(&mut self, a: &Operand, limbs: u64, write: bool) {
        let limbs = places(a.basis, limbs);
        if a.words != 0 && limbs != 0 {
            self.all.push(Access {
                address: a.words,
                limbs,
                words: 1 << self.log_n,
                write,
            });
        }
    }

    fn whole(&mut self, address: u64, write: bool) {
        if address != 0 {
            self.all.push(Access {
                address,
                limbs: u64::MAX,
                words: 0,
                write,
            });
        }
    }
}

impl Params for NttParams {
    fn accesses(&self, _: Kernel) -> Vec<Access> {
        let mut out = Accesses::new(self.log_n);
        for job in self.jobs.iter().filter(|job| job.limbs != 0) {
            if job.integers == 0 {
                out.limbs(&job.source, job.limbs, false);
            } else {
                out.whole(job.source.words, false);
            }
            out.limbs(&job.minuend, job.limbs, false);
            out.limbs(&job.target, job.limbs, true);
        }
        out.all
    }

    fn cost(&self, kernel: Kernel) -> Cost {
        let stages = f64::from(self.stages);
        let rounds = (stages / 4.0).ceil();
        // Half a butterfly per word and stage.
        let butterflies = stages * (FP64_PRODUCT + 2.0) / 2.0;
        // Of primes near 2^50: others are reduced less often. Forward half of the words before each round but the very first, and all at the
        // end; inverse three quarters of a reduction in a round, and all words after it.
        let others = match kernel {
            Kernel::NttColumns | Kernel::NttColumns16 => (rounds - 1.0) * FP64_REDUCE / 2.0,
            Kernel::NttRows | Kernel::NttRows16 => (rounds / 2.0 + 1.0) * FP64_REDUCE,
            Kernel::InttColumns16 => (1.5 * rounds - 1.0) * FP64_REDUCE + FP64_PRODUCT / 2.0,
            Kernel::InttColumns => 1.25 * rounds * FP64_REDUCE + FP64_PRODUCT,
            _ => 1.25 * rounds * FP64_REDUCE + f64::from(self.whole) * FP64_PRODUCT,
        };
        let passes = butterflies + others + FP64_CONVERT;
        let n = f64::from(1 << self.log_n);
        let begins = self.whole != 0 || matches!(kernel, Kernel::NttColumns | Kernel::NttColumns16);
        self.jobs.iter().fold(Cost::default(), |sum, job| {
            let divides =
                job.minuend.words != 0 && matches!(kernel, Kernel::NttRows | Kernel::NttRows16);
            let (traffic, fp64) = if divides {
                (3.0, FP64_PRODUCT + 2.0)
            } else if job.integers != 0 && begins {
                (1.0 + 0.5 / count(job.limbs).max(1.0), 0.0)
            } else {
                (2.0, 0.0)
            };
            let words = n * count(job.limbs);
            sum.plus(Cost::per_word(words, traffic, passes + fp64, 0.0))
        })
    }
}

impl Params for ConversionParams {
    fn accesses(&self, _: Kernel) -> Vec<Access> {
        let mut out = Accesses::new(self.log_n);
        for job in self.jobs.iter().filter(|job| job.limbs != 0) {
            out.limbs(&job.source, job.from, false);
            out.limbs(&job.target, job.limbs, true);
        }
        out.all
    }

    fn cost(&self, _: Kernel) -> Cost {
        let n = f64::from(1 << self.log_n);
        let ready = f64::from(self.ready);
        self.jobs.iter().fold(Cost::default(), |sum, job| {
            let (sources, targets) = (count(job.from), count(job.limbs));
            if targets == 0.0 {
                return sum;
            }
            let fp64 = sources * (1.0 - ready) * (FP64_PRODUCT + 2.0 * FP64_CONVERT);
            let integer =
                sources * WIDE_PRODUCT + targets * ((sources + 1.0) * WIDE_PRODUCT + MONTGOMERY);
            sum.plus(Cost::per_word(n, sources + targets, fp64, integer))
        })
    }
}

impl Params for CopyParams {
    fn accesses(&self, _: Kernel) -> Vec<Access> {
        let mut out = Accesses::new(self.log_n as u32);
        for job in self.jobs.iter().filter(|job| job.limbs != 0) {
            out.limbs(&job.source, job.limbs, false);
            out.limbs(&job.target, job.limbs, true);
        }
        out.all
    }

    fn cost(&self, _: Kernel) -> Cost {
        let n = f64::from(1 << self.log_n as u32);
        let words = self
            .jobs
            .iter()
            .map(|job| count(job.limbs) + count(job.limbs & job.source.basis));
        Cost::per_word(n, words.sum(), 0.0, 0.0)
    }
}

impl Params for CopyWordsParams {
    fn accesses(&self, _: Kernel) -> Vec<Access> {
        let mut out = Accesses::new(0);
        out.whole(self.source, false);
        out.whole(self.target, true);
        out.all
    }

    fn cost(&self, _: Kernel) -> Cost {
        Cost::per_word(self.count as f64, 2.0, 0.0, 0.0)
    }
}

/// Only measured, never part of a sequence.
impl Params for PeakParams {
    fn accesses(&self, _: Kernel) -> Vec<Access> {
        let mut out = Accesses::new(0);
        out.whole(self.out, true);
        out.all
    }

    fn cost(&self, _: Kernel) -> Cost {
        Cost::default()
    }
}

impl Params for ExpansionParams {
    fn accesses(&self, kernel: Kernel) -> Vec<Access> {
        let mut out = Accesses::new(self.log_n);
        for job in self.jobs.iter().filter(|job| job.limbs != 0) {
            let notes = kernel == Kernel::ExpansionNotes;
            out.whole(job.seed.groups, notes);
            if !notes {
                out.limbs(&job.target, job.limbs, true);
            }
        }
        out.all
    }

    fn cost(&self, kernel: Kernel) -> Cost {
        let traffic = f64::from(u8::from(kernel == Kernel::Expansion));
        let n = f64::from(1 << self.log_n);
        let words: f64 = self.jobs.iter().map(|job| count(job.limbs)).sum();
        Cost::per_word(n * words, traffic, 0.0, GENERATED_WORD)
    }
}

impl Params for PointwiseParams {
    fn accesses(&self, kernel: Kernel) -> Vec<Access> {
        let mut out = Accesses::new(self.log_n);
        match kernel {
            // Of another length than the result, or no polynomial.
            Kernel::Compress | Kernel::ReduceSigned | Kernel::ReduceNarrow => {
                out.whole(self.a.words, false)
            }
            _ => {
                out.limbs(&self.a, self.limbs, false);
                out.limbs(&self.b, self.limbs, false);
            }
        }
        out.limbs(&self.out, self.limbs, true);
        out.all
    }

    fn cost(&self, kernel: Kernel) -> Cost {
        const PRODUCT: f64 = FP64_PRODUCT + 3.0 * FP64_CONVERT;
        let words = f64::from(1 << self.log_n) * count(self.limbs);
        let (traffic, fp64, integer) = match kernel {
            Kernel::Add | Kernel::Sub | Kernel::AddAutomorphism => (3.0, 0.0, 0.0),
            Kernel::MulInto => (3.0, PRODUCT, 0.0),
            Kernel::MulAdd => (4.0, PRODUCT, 0.0),
            Kernel::SubScale => (3.0, PRODUCT + 1.0, 0.0),
            Kernel::ReduceSigned => (1.0 + 1.0 / count(self.limbs).max(1.0), 0.0, REDUCE_WIDE),
            Kernel::ReduceNarrow => (1.0 + 0.5 / count(self.limbs).max(1.0), 0.0, 0.0),
            _ => (2.0, 0.0, 0.0),
        };
        Cost::per_word(words, traffic, fp64, integer)
    }
}

impl Params for ScalarParams {
    fn accesses(&self, _: Kernel) -> Vec<Access> {
        let mut out = Accesses::new(self.log_n);
        out.limbs(&self.a, self.limbs, false);
        out.limbs(&self.out, self.limbs, true);
        out.all
    }

    fn cost(&self, kernel: Kernel) -> Cost {
        const PRODUCT: f64 = FP64_PRODUCT + 3.0 * FP64_CONVERT;
        let words = f64::from(1 << self.log_n) * count(self.limbs);
        let (traffic, fp64) = match kernel {
            Kernel::Shift => (2.0, 0.0),
            Kernel::Scale => (2.0, PRODUCT),
            _ => (3.0, PRODUCT),
        };
        Cost::per_word(words, traffic, fp64, 0.0)
    }
}

impl Params for KeyProductParams {
    fn accesses(&self, _: Kernel) -> Vec<Access> {
        let mut out = Accesses::new(self.log_n);
        let limbs = self.out[0].basis;
        for (digit, key) in self.digits.iter().zip(&self.keys).take(self.count as usize) {
            out.limbs(digit, limbs, false);
            key.iter().for_each(|half| out.limbs(half, limbs, false));
        }
        out.limbs(&self.addend, limbs, false);
        self.out.iter().for_each(|a| out.limbs(a, limbs, true));
        out.all
    }

    fn cost(&self, _: Kernel) -> Cost {
        let (limbs, terms) = (self.out[0].basis, f64::from(self.count));
        let n = f64::from(1 << self.log_n);
        let writes = 2.0 + 2.0 * f64::from(self.accumulate);
        let addend = Cost::per_word(n * count(limbs & self.addend.basis), 1.0, 0.0, 0.0);
        let integer = 2.0 * (terms * WIDE_PRODUCT + REDUCE_WIDE);
        Cost::per_word(n * count(limbs), 3.0 * terms + writes, 0.0, integer).plus(addend)
    }
}

impl Params for SeededProductParams {
    fn accesses(&self, kernel: Kernel) -> Vec<Access> {
        let mut all = self.product.accesses(kernel);
        let mut notes = Accesses::new(0);
        self.seeds
            .iter()
            .for_each(|seed| notes.whole(seed.groups, false));
        all.extend(notes.all);
        all
    }

    fn cost(&self, kernel: Kernel) -> Cost {
        let seeds = self.seeds.iter().filter(|seed| seed.groups != 0).count() as f64;
        let words = f64::from(1 << self.product.log_n) * count(self.product.out[0].basis);
        let generated = Cost::per_word(words * seeds, -1.0, 0.0, GENERATED_WORD);
        self.product.cost(kernel).plus(generated)
    }
}

impl Params for WeightedSumParams {
    fn accesses(&self, _: Kernel) -> Vec<Access> {
        let mut out = Accesses::new(self.log_n);
        let limbs = self.out[0].basis;
        for (weight, term) in self
            .weights
            .iter()
            .zip(&self.terms)
            .take(self.count as usize)
        {
            // A sparse weight's limbs are shorter.
            out.whole(weight.words, false);
            term.iter().for_each(|half| out.limbs(half, limbs, false));
        }
        self.out.iter().for_each(|a| out.limbs(a, limbs, true));
        out.all
    }

    fn cost(&self, _: Kernel) -> Cost {
        let terms = f64::from(self.count);
        let words = f64::from(1 << self.log_n) * count(self.out[0].basis);
        let weights = terms / f64::from(1 << self.log_stride);
        let writes = 2.0 + 2.0 * f64::from(self.accumulate);
        let integer = 2.0 * (terms * WIDE_PRODUCT + REDUCE_WIDE);
        Cost::per_word(words, 2.0 * terms + weights + writes, 0.0, integer)
    }
}

/// A copy of parameters whose address is that of a struct's, for sequences that outlive them.
pub(crate) fn words_of<P: Plain>(params: &P) -> Box<[u64]> {
    const { assert!(size_of::<P>().is_multiple_of(size_of::<u64>()) && align_of::<P>() <= 8) };
    abi::bytes(std::slice::from_ref(params))
        .as_chunks::<8>()
        .0
        .iter()
        .map(|bytes| u64::from_ne_bytes(*bytes))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limbs_have_their_places_in_a_block() {
        assert_eq!(places(0b1011, 0b1001), 0b101);
        assert_eq!(places(0b1011, 0b0100), 0);
        assert_eq!(places(u64::MAX, u64::MAX), u64::MAX);
    }
}
