//! Packed rows: Orion's linear algebra kernels (2025), section III-A, after Gazelle (2018).

use crate::lower::{doubling, fold};
use crate::{Machine, Matrix, Plain, PlainId};

/// Slot `i < d` holds `x[i]`, the others zero; the output is in blocks, zero elsewhere. `d^2 / n` plaintexts, each with `log2(d)`
/// rotations of its own, all by powers of two; two levels.
///
/// A plaintext holds one column of the matrix in each block; the paper's rows are of the transpose. Sums end at the slot of the block
/// where the output's entry belongs, so that a mask brings them together.
pub fn apply<M: Machine>(
    machine: &mut M,
    x: &M::Value,
    matrix: &Matrix,
) -> Result<M::Value, M::Error> {
    let (slots, width) = (machine.slots(), matrix.rows());
    let blocks = (slots / width).min(width);
    let each = width / blocks;
    let copies = fold(machine, x.clone(), doubling(width, slots).map(|step| -step))?;
    let mut sum: Option<M::Value> = None;
    for k in 0..each {
        let product = machine.dot_weights(&[(&copies, columns(matrix, slots, k))])?;
        let steps = doubling(1, width).map(|step| if k as i64 & step == 0 { step } else { -step });
        let sums = fold(machine, product, steps)?;
        let id = PlainId::of(("packed row mask", slots, width, k));
        let mask = Plain::new(id, width, move |out| out[k] = 1.0);
        let entries = machine.mul_plain(&sums, &mask)?;
        sum = Some(match sum {
            None => entries,
            Some(sum) => machine.add(&sum, &entries)?,
        });
    }
    Ok(sum.expect("every block has an entry"))
}

/// Column `c * each + k` in block `c`.
fn columns(matrix: &Matrix, slots: usize, k: usize) -> Plain {
    let width = matrix.rows();
    let blocks = (slots / width).min(width);
    let each = width / blocks;
    let id = PlainId::of(("product packed row", matrix.name(), width, slots, k));
    let weights = matrix.clone();
    Plain::new(id, slots, move |out| {
        for (slot, out) in out.iter_mut().enumerate() {
            let (block, row) = (slot / width, slot % width);
            if block < blocks {
                *out = weights.at(row, block * each + k);
            }
        }
    })
}
