//! Projection onto the subring of sparse values.

use taciturn_ckks::{Ciphertext, CkksError, Evaluator};

/// The rotations of [`trace`], for key requests: d, 2d, 4d, ... below the number of slots.
pub(crate) fn trace_rotations(slots: usize, d: usize) -> Vec<i64> {
    std::iter::successors(Some(d), |k| Some(2 * k))
        .take_while(|&k| k < slots)
        .map(|k| k as i64)
        .collect()
}

/// Sums the N/2d rotations by multiples of d: coefficients outside the subring of d slots vanish, the others grow by N/2d.
pub(crate) fn trace(ev: &Evaluator, ct: Ciphertext, d: usize) -> Result<Ciphertext, CkksError> {
    let mut acc = ct;
    for k in trace_rotations(ev.params().slots(), d) {
        let turned = ev.rotate(&acc, k)?;
        ev.add_assign(&mut acc, &turned)?;
    }
    Ok(acc)
}
