//! Passages through blocks, kept for the next block that is alike.

use super::blocks::Block;
use super::demand::Demand;
use super::frontier::{Decided, Decision, State};
use super::variants::Search;
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
    decisions: Vec<Decided>,
}

/// All passages found so far.
#[derive(Debug, Default)]
pub(super) struct Passages(HashMap<Ends, Passage>);

impl Passages {
    /// Takes all nodes of a block.
    pub fn go(&mut self, search: &mut Search<'_, '_>, block: &Block) {
        let frontier = search.main();
        // Only where a single value crosses, the one before the next block.
        let alone = frontier.live == [block.nodes.end - 1];
        let Some(kind) = block.kind.filter(|_| alone) else {
            return solve(search, block);
        };
        let least = least(&frontier.states);
        let ends: Vec<(Vec<Demand>, u64)> = (frontier.states.iter())
            .map(|state| {
                let above = ((state.cost - least) * 1e6).round() as u64;
                (state.demands.clone(), above)
            })
            .collect();
        match self.0.get(&(kind, ends.clone())) {
            Some(passage) => passage.repeat(search, block, least),
            None => {
                let known = frontier.decisions.len();
                solve(search, block);
                let passage = Passage::of(search, block, least, known);
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

fn solve(search: &mut Search<'_, '_>, block: &Block) {
    for (number, state) in search.main().states.iter_mut().enumerate() {
        state.origin = number;
    }
    search.take(block.nodes.clone());
}

impl Passage {
    /// What came of a block whose cheapest end cost `least`, when there were `known` decisions.
    fn of(search: &mut Search<'_, '_>, block: &Block, least: f64, known: usize) -> Self {
        let begin = block.nodes.start as isize;
        let site = block.sites.start as isize;
        let frontier = search.main();
        let through = |state: &State| {
            let mut decisions = Vec::new();
            let mut at = state.trace.filter(|&at| at >= known);
            while let Some(Decision { what, before }) = at.map(|at| frontier.decisions[at]) {
                decisions.push(moved(what, -begin, -site));
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
    fn repeat(&self, search: &mut Search<'_, '_>, block: &Block, least: f64) {
        let begin = block.nodes.start as isize;
        let site = block.sites.start as isize;
        let frontier = search.main();
        let ends = std::mem::take(&mut frontier.states);
        for through in &self.states {
            let mut trace = ends[through.origin].trace;
            for &decided in &through.decisions {
                frontier.decisions.push(Decision {
                    what: moved(decided, begin, site),
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

/// The same for nodes and sites elsewhere.
fn moved(decided: Decided, nodes: isize, sites: isize) -> Decided {
    match decided {
        Decided::Refresh { node, refreshed } => Decided::Refresh {
            node: node.wrapping_add_signed(nodes),
            refreshed: Refreshed {
                partner: (refreshed.partner).map(|partner| partner.wrapping_add_signed(nodes)),
                ..refreshed
            },
        },
        Decided::Variant { site, variant } => Decided::Variant {
            site: site.wrapping_add_signed(sites),
            variant,
        },
    }
}
