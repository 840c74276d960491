//! Interleaved replicated packing: Cachemir (2025), section 4.1, figure 4(e), by baby-step giant-step.

use crate::lower::{doubling, fold};
use crate::{Diagonals, Machine, Matrix, PlainId};

/// Spaced input without garbage, spaced output with: `2 log2(n/d)` rotations beside those of `d^2 / n` diagonals, one level.
///
/// The preparation fills lane `j` of run `i` with `x[i + j]`; then rotations by whole runs bring further diagonals to all lanes.
pub fn apply<M: Machine>(
    machine: &mut M,
    x: &M::Value,
    matrix: &Matrix,
) -> Result<M::Value, M::Error> {
    let (slots, width) = (machine.slots(), matrix.rows());
    let run = slots / width;
    let lanes = run.min(width);
    let to_lanes = doubling(1, lanes).map(|step| step * (run as i64 - 1));
    let prepared = fold(machine, x.clone(), to_lanes)?;
    let id = PlainId::of(("product interleaved", matrix.name(), width, slots));
    let weights = matrix.clone();
    let diagonals = Diagonals::new(id, lanes * run, width / lanes, slots, move |m, out| {
        for (slot, out) in out.iter_mut().enumerate() {
            let (i, lane) = (slot / run, slot % run);
            if lane < lanes {
                *out = weights.at((i + lane + m * lanes) % width, i);
            }
        }
    });
    let products = machine.linear_transform(&prepared, &diagonals)?;
    fold(machine, products, doubling(1, lanes))
}
