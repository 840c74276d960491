//! Passages through blocks, kept for the next block that is alike.

use super::blocks::Block;
use super::demand::Demand;
use super::frontier::{Decision, Frontier, State};
use crate::Refreshed;
use std::collections::HashMap;

/// The states at the end of a kind of block: what they demand, and their costs above the cheapest, in nanoseconds.
type Ends = (usize, Vec<(Vec<Demand>, u64)>);

/// What came of a block, with nodes relative to its begin.
#[derive(Clone, Debug)]
struct Passage {
    live: Vec<isize>,
    states: Vec<Through>,
}

/// A state at the begin of a block.
#[derive(Clone, Debug)]
struct Through {
    demands: Vec<Demand>,
    cost: f64,
    /// The state at the end from which it came.
    origin: usize,
    /// From the end to the begin.
    decisions: Vec<(isize, Refreshed)>,
}

/// All passages found so far.
#[derive(Debug, Default)]
pub(super) struct Passages(HashMap<Ends, Passage>);

impl Passages {
    /// Takes all nodes of a block.
    pub fn go(&mut self, frontier: &mut Frontier<'_, '_>, block: &Block) {
        // Only where a single value crosses, the one before the next block.
        let alone = frontier.live == [block.nodes.end - 1];
        let Some(kind) = block.kind.filter(|_| alone) else {
            return solve(frontier, block);
        };
        let least = least(&frontier.states);
        let ends: Vec<(Vec<Demand>, u64)> = (frontier.states.iter())
            .map(|state| {
                let above = ((state.cost - least) * 1e6).round() as u64;
                (state.demands.clone(), above)
            })
            .collect();
        match self.0.get(&(kind, ends.clone())) {
            Some(passage) => passage.repeat(frontier, block, least),
            None => {
                let known = frontier.decisions.len();
                solve(frontier, block);
                let passage = Passage::of(frontier, block, least, known);
                self.0.insert((kind, ends), passage);
            }
        }
    }
}

fn least(states: &[State]) -> f64 {
    states
        .iter()
        .map(|state| state.cost)
        .fold(f64::INFINITY, f64::min)
}

fn solve(frontier: &mut Frontier<'_, '_>, block: &Block) {
    for (number, state) in frontier.states.iter_mut().enumerate() {
        state.origin = number;
    }
    for node in block.nodes.clone().rev() {
        frontier.take(node);
    }
}

impl Passage {
    /// What came of a block whose cheapest end cost `least`, when there were `known` decisions.
    fn of(frontier: &Frontier<'_, '_>, block: &Block, least: f64, known: usize) -> Self {
        let begin = block.nodes.start as isize;
        let through = |state: &State| {
            let mut decisions = Vec::new();
            let mut at = state.trace.filter(|&at| at >= known);
            while let Some(Decision {
                node,
                refreshed,
                before,
            }) = at.map(|at| frontier.decisions[at])
            {
                decisions.push((node as isize - begin, moved(refreshed, -begin)));
                at = before.filter(|&at| at >= known);
            }
            decisions.reverse();
            Through {
                demands: state.demands.clone(),
                cost: state.cost - least,
                origin: state.origin,
                decisions,
            }
        };
        Passage {
            live: (frontier.live.iter())
                .map(|&value| value as isize - begin)
                .collect(),
            states: frontier.states.iter().map(through).collect(),
        }
    }

    /// The same through another block, whose cheapest end costs `least`.
    fn repeat(&self, frontier: &mut Frontier<'_, '_>, block: &Block, least: f64) {
        let begin = block.nodes.start as isize;
        let ends = std::mem::take(&mut frontier.states);
        for through in &self.states {
            let mut trace = ends[through.origin].trace;
            for &(node, refreshed) in &through.decisions {
                frontier.decisions.push(Decision {
                    node: (node + begin) as usize,
                    refreshed: moved(refreshed, begin),
                    before: trace,
                });
                trace = Some(frontier.decisions.len() - 1);
            }
            frontier.states.push(State {
                demands: through.demands.clone(),
                cost: least + through.cost,
                trace,
                origin: 0,
            });
        }
        frontier.live = (self.live.iter())
            .map(|&value| (value + begin) as usize)
            .collect();
    }
}

fn moved(refreshed: Refreshed, by: isize) -> Refreshed {
    Refreshed {
        partner: (refreshed.partner).map(|partner| partner.wrapping_add_signed(by)),
        ..refreshed
    }
}
