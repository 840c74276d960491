//! The baseline: refresh when nothing is left.

use crate::{Choice, Placement, Problem};

/// Go forward and refresh an operation's inputs when their levels do not suffice any more, where what suffices counts the
/// operations up to the next value that can be refreshed.
#[derive(Clone, Copy, Debug, Default)]
pub struct WhenNothingIsLeft;

impl Placement for WhenNothingIsLeft {
    fn place(&self, problem: &Problem<'_>) -> Choice {
        let max = problem.max_level().0;
        let ahead = levels_ahead(problem);
        let mut choice = Choice::none(problem);
        let mut left = vec![max; problem.len()];
        for node in 0..problem.len() {
            let inputs = problem.inputs(node);
            let needed = problem.depth(node) + ahead[node];
            for &input in inputs {
                if left[input] < needed && problem.refresh_needs(input).is_some() {
                    choice.refresh(input);
                    left[input] = max;
                }
            }
            let least = inputs.iter().map(|&input| left[input]).min().unwrap_or(max);
            left[node] = least.saturating_sub(problem.depth(node));
        }
        choice
    }
}

/// Levels that every result must keep so that there is a way on from it: to its own refresh, or to the end or other refreshes.
fn levels_ahead(problem: &Problem<'_>) -> Vec<u32> {
    let mut ahead = vec![0; problem.len()];
    for node in (0..problem.len()).rev() {
        // Its users come later, so what it has now is final.
        if let Some(needs) = problem.refresh_needs(node) {
            ahead[node] = ahead[node].min(needs);
        }
        let needed = problem.depth(node) + ahead[node];
        for &input in problem.inputs(node) {
            ahead[input] = ahead[input].max(needed);
        }
    }
    ahead
}
