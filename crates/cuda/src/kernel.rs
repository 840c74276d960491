//! The kernels by name.

use std::ffi::c_void;

use crate::abi;
use crate::params::{Cost, Params};

macro_rules! kernels {
    ($($(#[$doc:meta])* $variant:ident = $name:literal ($params:ty),)*) => {
        /// A kernel of `kernels/kernels.cu`.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Kernel { $($(#[$doc])* $variant,)* }

        impl Kernel {
            /// All of them, in the order of their numbers.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// The name of its entry point.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Bytes of the struct that it takes.
            pub const fn params_size(self) -> usize {
                match self { $(Self::$variant => size_of::<$params>(),)* }
            }

            /// What a launch takes.
            ///
            /// # Safety
            /// `params` points to the struct that it takes.
            pub(crate) unsafe fn cost(self, params: *const c_void) -> Cost {
                match self {
                    $(Self::$variant => {
                        // SAFETY: the caller's contract.
                        let params = unsafe { &*params.cast::<$params>() };
                        params.cost(self)
                    })*
                }
            }
        }
    };
}

kernels! {
    /// First stages of a transform.
    NttColumns = "ntt_columns" (abi::NttParams),
    /// Last stages of a transform, or all of a short one.
    NttRows = "ntt_rows" (abi::NttParams),
    /// The same for degree 2^16.
    NttColumns16 = "ntt_columns_16" (abi::NttParams),
    /// The same for degree 2^16.
    NttRows16 = "ntt_rows_16" (abi::NttParams),
    /// First stages of an inverse transform, or all of a short one.
    InttRows = "intt_rows" (abi::NttParams),
    /// Last stages of an inverse transform.
    InttColumns = "intt_columns" (abi::NttParams),
    /// The same for degree 2^16.
    InttRows16 = "intt_rows_16" (abi::NttParams),
    /// The same for degree 2^16.
    InttColumns16 = "intt_columns_16" (abi::NttParams),
    /// Base conversion.
    Convert = "convert" (abi::ConversionParams),
    /// a + b.
    Add = "add" (abi::PointwiseParams),
    /// a - b.
    Sub = "sub" (abi::PointwiseParams),
    /// -a.
    Neg = "neg" (abi::PointwiseParams),
    /// a·b.
    MulInto = "mul_into" (abi::PointwiseParams),
    /// out + a·b.
    MulAdd = "mul_add" (abi::PointwiseParams),
    /// (a - b)·factor.
    SubScale = "sub_scale" (abi::PointwiseParams),
    /// a, or zero.
    Copy = "copy" (abi::CopyParams),
    /// Plain words.
    CopyWords = "copy_words" (abi::CopyWordsParams),
    /// a(X^g), evaluation form.
    Automorphism = "automorphism" (abi::PointwiseParams),
    /// out + a(X^g), evaluation form.
    AddAutomorphism = "add_automorphism" (abi::PointwiseParams),
    /// a(X^g), coefficient form.
    AutomorphismCoefficients = "automorphism_coefficients" (abi::PointwiseParams),
    /// Every so manieth word.
    Compress = "compress" (abi::PointwiseParams),
    /// Residues of integers.
    ReduceSigned = "reduce_signed" (abi::PointwiseParams),
    /// Residues of integers of 32 bits.
    ReduceNarrow = "reduce_narrow" (abi::PointwiseParams),
    /// a·value.
    Scale = "scale" (abi::ScalarParams),
    /// a + value.
    Shift = "shift" (abi::ScalarParams),
    /// out + a·value.
    AddScaled = "add_scaled" (abi::ScalarParams),
    /// Sums of digits times keys.
    KeyProduct = "key_product" (abi::KeyProductParams),
    /// The same with halves of keys that are expanded as they are used.
    SeededProduct = "seeded_product" (abi::SeededProductParams),
    /// Which draws from a seed are kept.
    ExpansionNotes = "expansion_notes" (abi::ExpansionParams),
    /// Uniform words from a seed.
    Expansion = "expansion" (abi::ExpansionParams),
    /// FP64 multiply-adds.
    PeakFp64 = "peak_fp64" (abi::PeakParams),
    /// Integer multiply-adds.
    PeakInteger = "peak_integer" (abi::PeakParams),
    /// Sums of weights times terms.
    WeightedSum = "weighted_sum" (abi::WeightedSumParams),
}
