//! Placements: which values to refresh.

mod cachemir;
mod level_graph;
mod nothing_left;
mod optimal;
mod orion;

pub use cachemir::Cachemir;
pub use nothing_left::WhenNothingIsLeft;
pub use optimal::Optimal;
pub use orion::Orion;

use crate::{Choice, CostTable, Graph, Level, Plan, PlanError, Problem};
use std::collections::BTreeMap;

/// A way to choose the values that are refreshed.
pub trait Placement {
    /// The choice. Where none works it is one that comes near; making the plan then says why.
    fn place(&self, problem: &Problem<'_>) -> Choice;
}

/// Makes the plan of a graph (of the full context) with a placement.
pub fn plan(
    graph: &Graph,
    table: &CostTable,
    placement: &(impl Placement + ?Sized),
) -> Result<Plan, PlanError> {
    plan_beside(graph, table, placement, &BTreeMap::new())
}

/// The same where families of caches have a least level: that of another graph's plan whose caches these are.
pub fn plan_beside(
    graph: &Graph,
    table: &CostTable,
    placement: &(impl Placement + ?Sized),
    least: &BTreeMap<String, Level>,
) -> Result<Plan, PlanError> {
    let mut problem = Problem::new(graph, table)?;
    problem.raise_caches(least);
    problem.plan(&placement.place(&problem))
}
