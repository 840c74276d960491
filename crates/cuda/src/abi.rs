//! The structs that kernels take: those of `kernels/types.cuh`, field by field. Addresses are the device's.

/// See `MAX_BATCH` there.
pub(crate) const MAX_BATCH: usize = 16;
/// See `GROUP_BLOCKS` there.
pub(crate) const GROUP_BLOCKS: usize = 32;
/// See `DRAWS` there.
pub(crate) const DRAWS: usize = 8;
/// See `MAX_DIGITS` there.
pub(crate) const MAX_DIGITS: usize = taciturn_ring::MAX_DIGITS;

/// A struct that a kernel takes or a table is made of.
///
/// # Safety
/// Plain memory without padding, in C layout.
pub(crate) unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($(#[$doc:meta])* struct $name:ident { $($field:ident: $type:ty,)* })*) => { $(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Copy, Clone)]
        pub(crate) struct $name { $(pub(crate) $field: $type,)* }

        // No padding: the fields fill the struct.
        const _: () = assert!(size_of::<$name>() == 0 $(+ size_of::<$type>())*);
        // SAFETY: C layout, numbers only, and no padding as asserted above.
        unsafe impl Plain for $name {}
    )* };
}

plain! {
    /// One prime.
    struct Prime {
        q: f64,
        reciprocal: f64,
        n_inverse: f64,
        word: u64,
        inverse: u64,
        r2: u64,
        quotient: u64,
        roots: u64,
    }

    /// A polynomial.
    struct Operand {
        words: u64,
        basis: u64,
    }

    /// Limbs to transform.
    struct NttJob {
        target: Operand,
        source: Operand,
        limbs: u64,
        factors: u64,
        minuend: Operand,
        integers: u64,
    }

    struct NttParams {
        primes: u64,
        log_n: u32,
        tile_bits: u32,
        stages: u32,
        whole: u32,
        jobs: [NttJob; MAX_BATCH],
    }

    /// A source limb of a conversion.
    struct ConversionSource {
        inverse: f64,
        weight: u64,
    }

    struct SplitFactor {
        low: u32,
        high: u32,
    }

    /// Limbs to convert.
    struct ConversionJob {
        target: Operand,
        source: Operand,
        from: u64,
        limbs: u64,
        sources: u64,
        factors: u64,
    }

    struct ConversionParams {
        primes: u64,
        log_n: u32,
        ready: u32,
        jobs: [ConversionJob; MAX_BATCH],
    }

    /// Limbs to copy; those that the source lacks become zero.
    struct CopyJob {
        target: Operand,
        source: Operand,
        limbs: u64,
    }

    struct CopyParams {
        log_n: u64,
        jobs: [CopyJob; MAX_BATCH],
    }

    struct CopyWordsParams {
        target: u64,
        source: u64,
        count: u64,
    }

    struct PeakParams {
        out: u64,
        rounds: u64,
    }

    /// Which draws of a group are kept.
    struct DrawGroup {
        before: u64,
        kept: [u64; GROUP_BLOCKS / 8],
    }

    /// What a uniform polynomial is expanded from.
    struct Seed {
        groups: u64,
        counted: u64,
        key: [u32; 8],
    }

    /// A uniform polynomial to expand.
    struct ExpansionJob {
        target: Operand,
        limbs: u64,
        seed: Seed,
    }

    struct ExpansionParams {
        primes: u64,
        log_n: u32,
        groups: u32,
        jobs: [ExpansionJob; MAX_BATCH],
    }

    struct PointwiseParams {
        primes: u64,
        out: Operand,
        a: Operand,
        b: Operand,
        limbs: u64,
        factors: u64,
        log_n: u32,
        argument: u32,
    }

    struct ScalarParams {
        primes: u64,
        out: Operand,
        a: Operand,
        limbs: u64,
        log_n: u32,
        padding: u32,
        values: [[u64; 2]; 64],
    }

    struct KeyProductParams {
        primes: u64,
        out: [Operand; 2],
        digits: [Operand; MAX_DIGITS],
        keys: [[Operand; 2]; MAX_DIGITS],
        addend: Operand,
        count: u32,
        log_n: u32,
        galois: u32,
        accumulate: u32,
    }

    /// The same where some second halves of keys have no words but a seed.
    struct SeededProductParams {
        product: KeyProductParams,
        seeds: [Seed; MAX_DIGITS],
        groups: u64,
    }

    struct WeightedSumParams {
        primes: u64,
        out: [Operand; 2],
        weights: [Operand; MAX_DIGITS],
        terms: [[Operand; 2]; MAX_DIGITS],
        count: u32,
        log_n: u32,
        log_stride: u32,
        accumulate: u32,
    }
}

impl Operand {
    /// Where an operand is missing.
    pub(crate) const NONE: Self = Self { words: 0, basis: 0 };
}

impl CopyJob {
    /// All limbs of the target.
    pub(crate) fn whole(target: Operand, source: Operand) -> Self {
        Self {
            target,
            source,
            limbs: target.basis,
        }
    }

    pub(crate) const NONE: Self = Self {
        target: Operand::NONE,
        source: Operand::NONE,
        limbs: 0,
    };
}

impl NttJob {
    /// The transform of some limbs where they are.
    pub(crate) fn in_place(target: Operand, limbs: u64) -> Self {
        Self {
            target,
            source: target,
            limbs,
            ..Self::NONE
        }
    }

    pub(crate) const NONE: Self = Self {
        target: Operand::NONE,
        source: Operand::NONE,
        limbs: 0,
        factors: 0,
        minuend: Operand::NONE,
        integers: 0,
    };
}

impl ExpansionJob {
    pub(crate) const NONE: Self = Self {
        target: Operand::NONE,
        limbs: 0,
        seed: Seed::NONE,
    };
}

impl Seed {
    /// Where there are words.
    pub(crate) const NONE: Self = Self {
        groups: 0,
        counted: 0,
        key: [0; 8],
    };
}

impl ConversionJob {
    pub(crate) const NONE: Self = Self {
        target: Operand::NONE,
        source: Operand::NONE,
        from: 0,
        limbs: 0,
        sources: 0,
        factors: 0,
    };
}

macro_rules! numbers {
    ($($type:ty)*) => { $(
        // SAFETY: a number.
        unsafe impl Plain for $type {}
    )* };
}

numbers! { u64 i64 i32 f64 }

/// The bytes of plain values.
pub(crate) fn bytes<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: plain memory without padding has all its bytes written.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The bytes of words, to be written.
pub(crate) fn bytes_mut(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: every pattern of bytes is a word.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
}
