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
mod variants;

use self::blocks::blocks;
use self::passages::Passages;
use self::variants::Search;
use crate::{Choice, CostTable, Graph, Placement, PlanError, Problem, WhenNothingIsLeft};

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
        let mut search = self.search(std::slice::from_ref(problem));
        (search.main().best()).unwrap_or_else(|| WhenNothingIsLeft.place(problem))
    }
}

impl Optimal {
    /// Which graph has the best variant of every site ([`Graph::sites`]), in the order of the sites: of all combinations the one whose best placement
    /// takes the least time, the refreshes in and around the sites included. The graphs are alike but for the nodes of their sites; the last node of
    /// a site is its result. An error says what the first graph has no plan for where no combination has one.
    pub fn choose(&self, graphs: &[Graph], table: &CostTable) -> Result<Vec<usize>, PlanError> {
        let problems = Problem::alike(graphs, table)?;
        let mut search = self.search(&problems);
        match search.chosen() {
            Some(chosen) => Ok(chosen),
            None => {
                let problem = &problems[0];
                problem.plan(&WhenNothingIsLeft.place(problem))?;
                Ok(vec![0; graphs[0].sites().len()])
            }
        }
    }

    /// All ways through the graphs that may be the best.
    fn search<'p, 'g>(&self, problems: &'p [Problem<'g>]) -> Search<'p, 'g> {
        let mut search = Search::new(problems, self.states);
        let mut passages = Passages::default();
        for block in blocks(&search).iter().rev() {
            passages.go(&mut search, block);
        }
        search
    }
}
