//! Direct packing: Cachemir (2025), section 4.1, after the diagonals of Halevi and Shoup (2014), by baby-step giant-step.

use super::inner::inner_transform;
use crate::{Machine, Matrix, PlainId};

/// Slot `i < d` holds `x[i]`, the others zero; so does the output. `4 sqrt(d)` rotations, `2d` weights, two levels.
pub fn apply<M: Machine>(
    machine: &mut M,
    x: &M::Value,
    matrix: &Matrix,
) -> Result<M::Value, M::Error> {
    let width = matrix.rows();
    let id = PlainId::of(("product direct", matrix.name(), width));
    let weights = matrix.clone();
    inner_transform(machine, x, id, (width, width), move |slot, baby, giant| {
        if slot < width {
            weights.at((slot + baby) % width, (slot + width - giant) % width)
        } else {
            0.0
        }
    })
}
