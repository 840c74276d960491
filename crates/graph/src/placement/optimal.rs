//! The optimal placement, by dynamic programming over what later nodes demand of earlier ones.
//!
//! Nodes are taken from the last to the first. Between two of them only the values that cross matter: a state says at which level
//! each of these is demanded, as computed or refreshed, and what the nodes behind it cost so far. A value's level is known when
//! its last user is, so a node's cost is final when it is taken. States that another beats in every demand and in cost are left out;
//! a decoder block has few values that cross at any place, so few states remain. Orion and Cachemir search a graph of levels for
//! whole layers on a chain; here the cut may go through any number of values, so that branches, values that are used both before
//! and after their refresh, and pairs that share a bootstrap are part of one search.

//!
//! Blocks that are alike need not be solved one by one: as soon as the states at the end of one differ from those at the end of another
//! by a constant cost only, what led through the one leads through the other (Cachemir, section 6, solves one block for every pair of
//! border levels; here only the states that occur are followed).

mod ahead;
mod blocks;
mod demand;
mod frontier;
mod passages;

use self::blocks::blocks;
use self::frontier::Frontier;
use self::passages::Passages;
use crate::{Choice, Placement, Problem, WhenNothingIsLeft};

/// The placement of least predicted time.
#[derive(Clone, Copy, Debug)]
pub struct Optimal {
    /// The most states kept between two nodes. The search is exact unless a graph needs more; then those are kept that seem the
    /// cheapest.
    pub states: usize,
}

impl Default for Optimal {
    fn default() -> Self {
        Optimal { states: 1000 }
    }
}

impl Placement for Optimal {
    fn place(&self, problem: &Problem<'_>) -> Choice {
        let mut frontier = Frontier::new(problem, self.states);
        let mut passages = Passages::default();
        for block in blocks(problem, frontier.values()).iter().rev() {
            passages.go(&mut frontier, block);
        }
        frontier
            .best()
            .unwrap_or_else(|| WhenNothingIsLeft.place(problem))
    }
}
