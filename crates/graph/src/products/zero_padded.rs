//! Zero padding, so that rotations of all slots serve: BOLT (2024) as Cachemir (2025) compares with it for one token, table 2.

use crate::lower::fold;
use crate::{Diagonals, Machine, Matrix, PlainId};

/// Slot `i < d` holds `x[i]`, the others zero; the output's others hold garbage. `2 sqrt(d)` rotations, `d` weights, one level.
///
/// Rotation by `m` has entries in the slots `-m .. d - m` only, where the diagonal's weights are; the part below slot 0 comes to its
/// place by one rotation of the whole sum. (Cachemir counts `2 sqrt(n)` rotations, those of all diagonals of the padded matrix; all but
/// these are zero.)
pub fn apply<M: Machine>(
    machine: &mut M,
    x: &M::Value,
    matrix: &Matrix,
) -> Result<M::Value, M::Error> {
    let (slots, width) = (machine.slots(), matrix.rows());
    let id = PlainId::of(("product zero-padded", matrix.name(), width, slots));
    let weights = matrix.clone();
    let diagonals = Diagonals::new(id, 1, width, slots, move |m, out| {
        for row in 0..width {
            let slot = (row + slots - m) % slots;
            let column = (row + width - m) % width;
            out[slot] = weights.at(row, column);
        }
    });
    let sums = machine.linear_transform(x, &diagonals)?;
    fold(machine, sums, std::iter::once(-(width as i64)))
}
