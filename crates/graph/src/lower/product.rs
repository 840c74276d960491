//! Products with weights.

use std::ops::Range;

use super::{doubling, fold};
use crate::{Diagonals, Machine, Matrix, Op, PlainId};

/// The linear map of a product with weights on a machine of `slots` slots, packed where that is cheaper; none for other operations.
pub fn weight_diagonals(op: &Op, slots: usize) -> Option<Diagonals> {
    match op {
        Op::ProductSpaced { matrix, .. } => Some(spaced(matrix, slots)),
        Op::ProductPeriodic { matrix } => Some(periodic(matrix, slots)),
        _ => None,
    }
}

/// Slot `i * t + j` gets `x[r] W[r, i]` for the rows `r = j mod t`; the sum over each run ends at `lane`.
pub(crate) fn product_spaced<M: Machine>(
    machine: &mut M,
    x: &M::Value,
    matrix: &Matrix,
    lane: usize,
) -> Result<M::Value, M::Error> {
    let diagonals = spaced(matrix, machine.slots());
    let run = diagonals.stride();
    let sums = machine.linear_transform(x, &diagonals)?;
    let steps = doubling(1, run.min(matrix.rows()))
        .map(|step| if lane as i64 & step == 0 { step } else { -step });
    fold(machine, sums, steps)
}

/// Slot `i * t + j` gets `x[r] W[r, c]` for columns `c = i * t + j mod columns`; cyclic sums make it valid everywhere.
pub(crate) fn product_periodic<M: Machine>(
    machine: &mut M,
    x: &M::Value,
    matrix: &Matrix,
) -> Result<M::Value, M::Error> {
    let slots = machine.slots();
    let diagonals = periodic(matrix, slots);
    let run = diagonals.stride();
    let sums = machine.linear_transform(x, &diagonals)?;
    fold(machine, sums, doubling(matrix.columns().max(run), slots))
}

/// Slot `q` of diagonal m holds row `q + m t`, cyclically, of column `q / t`.
fn spaced(matrix: &Matrix, slots: usize) -> Diagonals {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    let run = slots / columns;
    let id = PlainId::of(("product spaced", matrix.name(), rows, columns, slots));
    let weights = matrix.clone();
    let fill = move |first: usize, out: &mut [Vec<f64>]| {
        let mut window = vec![0.0; out.len() * run];
        for column in 0..columns {
            let row = (column + first) * run;
            read_cyclic(&weights, row, column..column + 1, &mut window);
            for (out, weights) in out.iter_mut().zip(window.chunks_exact(run)) {
                out[column * run..][..run].copy_from_slice(weights);
            }
        }
    };
    let count = (rows / run).max(1);
    of(matrix, Diagonals::neighbours(id, run, count, slots, fill))
}

/// Slot `q` of diagonal m holds row `q / t + m`, cyclically, of column `q mod columns`.
fn periodic(matrix: &Matrix, slots: usize) -> Diagonals {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    let run = slots / rows;
    let id = PlainId::of(("product periodic", matrix.name(), rows, columns, slots));
    let weights = matrix.clone();
    let fill = move |first: usize, out: &mut [Vec<f64>]| {
        let width = run.min(columns);
        let mut window = vec![0.0; out.len() * width];
        for i in 0..rows {
            let from = i * run % columns;
            read_cyclic(&weights, i + first, from..from + width, &mut window);
            for (out, weights) in out.iter_mut().zip(window.chunks_exact(width)) {
                for part in out[i * run..][..run].chunks_exact_mut(width) {
                    part.copy_from_slice(weights);
                }
            }
        }
    };
    let count = (columns / run).max(1);
    of(matrix, Diagonals::neighbours(id, run, count, slots, fill))
}

/// In the cheapest form, and giving the matrix's memory back.
fn of(matrix: &Matrix, diagonals: Diagonals) -> Diagonals {
    let matrix = matrix.clone();
    diagonals.released_by(move || matrix.release()).cheapest()
}

/// Neighbouring rows over some columns, cyclically: as many as fit into `out`, row by row.
fn read_cyclic(matrix: &Matrix, first: usize, columns: Range<usize>, out: &mut [f64]) {
    let width = columns.len();
    let mut row = first % matrix.rows();
    let mut left = out;
    while !left.is_empty() {
        let count = (left.len() / width).min(matrix.rows() - row);
        let (out, rest) = left.split_at_mut(count * width);
        matrix.read(row..row + count, columns.clone(), out);
        (row, left) = (0, rest);
    }
}
