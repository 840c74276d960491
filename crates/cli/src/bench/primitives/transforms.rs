//! What linear transforms take, by their parts.

use anyhow::Result;
use taciturn_circuits::LinearTransform;
use taciturn_ckks::{Ciphertext, Encoder, Evaluator, IntegerPlaintext};

use super::GIANT;

/// Milliseconds of a transform's parts.
pub struct TransformCost {
    /// The operand's decomposition, the last division and the rescale.
    pub transform_ms: f64,
    /// Each baby step but the operand itself.
    pub baby_ms: f64,
    /// Each giant step.
    pub giant_ms: f64,
    /// Each diagonal.
    pub diagonal_ms: f64,
}

/// Few and many baby steps, few and many giant steps: what is timed.
const BABIES: [usize; 2] = [2, GIANT as usize];
const GIANTS: [usize; 2] = [1, 4];

/// Times four transforms of one operand and solves for their parts.
pub fn transform_cost(
    encoder: &Encoder,
    evaluator: &Evaluator,
    operand: &Ciphertext,
    diagonal: &IntegerPlaintext,
    timed: impl Fn(&mut dyn FnMut() -> Result<(), taciturn_ckks::CkksError>) -> Result<f64>,
) -> Result<TransformCost> {
    let time = |babies: usize, giants: usize| {
        let steps = (0..babies * giants).map(|i| {
            let (giant, baby) = ((i / babies) as i64 * GIANT, (i % babies) as i64);
            (giant, baby, diagonal.clone())
        });
        let transform = LinearTransform::from_steps(steps, diagonal.scale);
        timed(&mut || transform.apply(encoder, evaluator, operand).map(drop))
    };
    let [few, many] = BABIES.map(|babies| GIANTS.map(|giants| time(babies, giants)));
    let ([few_one, few_many], [many_one, many_many]) = (few, many);
    Ok(solve([few_one?, few_many?], [many_one?, many_many?]))
}

/// From times by [`GIANTS`], with few and with many baby steps. Noise may make a small part negative, which it is not.
fn solve([few_one, few_many]: [f64; 2], [many_one, many_many]: [f64; 2]) -> TransformCost {
    let [few, many] = BABIES.map(|babies| babies as f64);
    let more_giants = (GIANTS[1] - GIANTS[0]) as f64;
    // More giant steps with few and with many baby steps differ in their diagonals only.
    let diagonal_ms =
        (((many_many - many_one) - (few_many - few_one)) / (more_giants * (many - few))).max(0.0);
    let giant_ms = ((few_many - few_one) / more_giants - few * diagonal_ms).max(0.0);
    let baby_ms = ((many_one - few_one) / (many - few) - diagonal_ms).max(0.0);
    let transform_ms = few_one - (few - 1.0) * baby_ms - few * diagonal_ms;
    TransformCost {
        transform_ms: transform_ms.max(0.0),
        baby_ms,
        giant_ms,
        diagonal_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_from_their_sums() {
        let time = |babies: usize, giants: usize| {
            let (babies, giants) = (babies as f64, giants as f64);
            7.0 + 2.0 * (babies - 1.0) + 5.0 * (giants - 1.0) + 0.5 * babies * giants
        };
        let [few, many] = BABIES.map(|babies| GIANTS.map(|giants| time(babies, giants)));
        let cost = solve(few, many);
        let got = [
            cost.transform_ms,
            cost.baby_ms,
            cost.giant_ms,
            cost.diagonal_ms,
        ];
        for (got, expected) in got.into_iter().zip([7.0, 2.0, 5.0, 0.5]) {
            assert!((got - expected).abs() < 1e-9, "{got} for {expected}");
        }
    }
}
