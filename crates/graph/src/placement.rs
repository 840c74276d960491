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

use crate::{Choice, CostTable, Graph, Plan, PlanError, Problem};

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
    let problem = Problem::new(graph, table)?;
    problem.plan(&placement.place(&problem))
}
