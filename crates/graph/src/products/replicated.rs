//! Replicated packing: Cachemir (2025), section 4.1, by baby-step giant-step.

use super::inner::inner_transform;
use crate::lower::{doubling, fold};
use crate::{Diagonals, Machine, Matrix, PlainId};

/// Periodic input and output. Of the `d` diagonals each of the `n / d` copies takes `s = d^2 / n`: copy `c` those from `c s` on, for
/// which it is turned to them first. Three levels: these turns, the inner rotations, the weights.
pub fn apply<M: Machine>(
    machine: &mut M,
    x: &M::Value,
    matrix: &Matrix,
) -> Result<M::Value, M::Error> {
    let (slots, width) = (machine.slots(), matrix.rows());
    let copies = (slots / width).min(width);
    let share = width / copies;
    // All copies are equal, so that a rotation of all slots turns each of them within itself.
    let id = PlainId::of(("turned copies", slots, width));
    let turns = Diagonals::new(id, share, copies, slots, move |copy, out| {
        out[copy * width..][..width].fill(1.0);
    });
    let turned = machine.linear_transform(x, &turns)?;
    let id = PlainId::of(("product replicated", matrix.name(), width));
    let weights = matrix.clone();
    let parts = inner_transform(
        machine,
        &turned,
        id,
        (width, share),
        move |slot, baby, giant| {
            let (copy, i) = (slot / width, slot % width);
            if copy < copies {
                weights.at(
                    (i + baby + copy * share) % width,
                    (i + width - giant) % width,
                )
            } else {
                0.0
            }
        },
    )?;
    fold(machine, parts, doubling(width, slots))
}
