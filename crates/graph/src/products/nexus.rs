//! NEXUS (2025): a preprocessing of the matrix that is shared by many decoding steps.
//!
//! The client takes part in it, so no server's machine computes it alone. Its counts are Cachemir's (2025), table 2.

use crate::Counts;

/// Decoding steps that share the preprocessing.
pub const NEXUS_STEPS: usize = 256;

/// Operations for one of [`NEXUS_STEPS`] steps: `d^2 / steps` plain products and `2 d^2 / steps` rotations, one level.
pub fn nexus_counts(width: usize) -> Counts {
    let products = (width * width).div_ceil(NEXUS_STEPS);
    Counts {
        rotations: 2 * products,
        plain_products: products,
        weights: products,
        ..Counts::default()
    }
}
