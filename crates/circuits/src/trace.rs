//! Projection onto the subring of sparse values.

use taciturn_ckks::{Ciphertext, CkksError, Evaluator};

/// The rotations of [`trace`], step by step: each step sums a value with its rotations by k, 2k, 3k (or k alone), which share one
/// decomposition and one division.
///
/// Steps of four start at powers of four, so that all sizes share their keys; an odd power of two takes a step of two first.
pub(crate) fn trace_steps(slots: usize, d: usize) -> Vec<Vec<i64>> {
    let mut steps = Vec::new();
    let mut k = d;
    while k < slots {
        let four = k.trailing_zeros().is_multiple_of(2) && 4 * k <= slots;
        let count = if four { 4 } else { 2 };
        steps.push((1..count).map(|j| (j * k) as i64).collect());
        k *= count;
    }
    steps
}

/// Sums the N/2d rotations by multiples of d: coefficients outside the subring of d slots vanish, the others grow by N/2d.
pub(crate) fn trace(ev: &Evaluator, ct: Ciphertext, d: usize) -> Result<Ciphertext, CkksError> {
    trace_steps(ev.params().slots(), d)
        .iter()
        .try_fold(ct, |sum, steps| ev.add_rotations(&sum, steps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_multiply_to_the_whole_group() {
        for log_d in 0..15 {
            let steps = trace_steps(1 << 15, 1 << log_d);
            assert_eq!(
                steps.iter().map(|s| s.len() + 1).product::<usize>(),
                1 << (15 - log_d)
            );
        }
    }
}
