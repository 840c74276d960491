//! Orion's placement: a shortest path over the levels at the borders of layers.

use super::level_graph::{Rules, shortest_path};
use crate::{Choice, Op, Placement, Problem};

/// Bootstraps at the borders of layers only, wherever the shortest path puts them (Ebel et al., "Orion: A Fully Homomorphic Encryption
/// Framework for Deep Learning", ASPLOS 2025).
///
/// Layers are matrix products (with the plaintext operations that belong to them), residual sums, and what lies between: a norm, an
/// activation, exponentials, a division by their sum. Orion knows no bootstraps inside these.
#[derive(Clone, Copy, Debug, Default)]
pub struct Orion;

impl Placement for Orion {
    fn place(&self, problem: &Problem<'_>) -> Choice {
        let borders = Borders::of(problem);
        shortest_path(problem, &borders).unwrap_or_else(|| {
            // A layer is too deep; with all borders refreshed it is what remains.
            let mut choice = Choice::none(problem);
            (problem.candidates().into_iter())
                .filter(|&node| borders.border(node))
                .for_each(|node| choice.refresh(node));
            choice
        })
    }
}

/// Results that end a layer.
struct Borders(Vec<bool>);

impl Borders {
    fn of(problem: &Problem<'_>) -> Self {
        let nodes = problem.graph().nodes();
        // What a matrix product and the plaintext operations after it give.
        let mut linear = vec![false; nodes.len()];
        let mut borders = vec![false; nodes.len()];
        for (i, node) in nodes.iter().enumerate() {
            let from_linear = problem.inputs(i).iter().any(|&input| linear[input]);
            let product = matches!(
                node.op,
                Op::ProductSpaced { .. }
                    | Op::ProductPeriodic { .. }
                    | Op::Scores(_)
                    | Op::WeightedValues(_)
            );
            let plain = matches!(
                node.op,
                Op::AddPlain { .. }
                    | Op::MulPlain { .. }
                    | Op::Repeat
                    | Op::Flatten
                    | Op::Rope { .. }
                    | Op::Append { .. }
            );
            linear[i] = product || (plain && from_linear);
            borders[i] |= matches!(node.op, Op::Add) && from_linear;
            let begins = product || matches!(node.op, Op::SumTokens(_));
            for &input in problem.inputs(i) {
                borders[input] |= begins || (linear[input] && !linear[i]);
            }
        }
        Borders(borders)
    }
}

impl Rules for Borders {
    fn border(&self, node: usize) -> bool {
        self.0[node]
    }

    fn edge(&self, computed: u32, handed: u32, needs: Option<u32>) -> bool {
        handed <= computed || needs.is_some_and(|needs| computed >= needs)
    }
}
