//! The placements of bootstraps that `plan` can use and compare.

use std::time::Instant;

use clap::ValueEnum;
use serde::Serialize;
use taciturn_graph::{Cachemir, Graph, Optimal, Orion, Placement, Problem, WhenNothingIsLeft};

use crate::costs::Costs;

/// Where bootstraps are placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// The least predicted time.
    #[default]
    Optimal,
    /// Cachemir's pruned graph of levels, inside modules too.
    Cachemir,
    /// Orion's shortest path over the borders of layers.
    Orion,
    /// A bootstrap only when nothing is left.
    NothingLeft,
}

impl Strategy {
    /// The strategy's search.
    pub fn placement(self) -> Box<dyn Placement> {
        match self {
            Strategy::Optimal => Box::new(Optimal::default()),
            Strategy::Cachemir => Box::new(Cachemir),
            Strategy::Orion => Box::new(Orion),
            Strategy::NothingLeft => Box::new(WhenNothingIsLeft),
        }
    }
}

/// What a strategy finds.
#[derive(Serialize)]
pub struct Compared {
    /// Which one.
    pub strategy: Strategy,
    /// Of a step; absent where it finds no plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bootstraps: Option<usize>,
    /// Per new token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// What the search took.
    pub planning_seconds: f64,
    /// Why there is no plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Compared {
    /// For people.
    pub fn line(&self) -> String {
        let name = self.strategy.to_possible_value();
        let name = name.as_ref().map_or("", |name| name.get_name());
        let found = match (self.seconds, self.bootstraps, &self.error) {
            (Some(seconds), Some(bootstraps), _) => {
                format!("{seconds:>8.1} s {bootstraps:>4} bootstraps")
            }
            (_, _, error) => format!("no plan: {}", error.as_deref().unwrap_or_default()),
        };
        format!(
            "{name:<14} {found}   planned in {:.2} s",
            self.planning_seconds
        )
    }
}

/// All strategies with one table of costs: the optimal one on the graph whose approximations are chosen, the others, which choose none, on that with
/// those of least depth.
pub fn compare(graph: &Graph, shallow: &Graph, costs: &Costs) -> anyhow::Result<Vec<Compared>> {
    let chosen = Problem::new(graph, &costs.table)?;
    let shallow = Problem::new(shallow, &costs.table)?;
    let one = |strategy: &Strategy| {
        let problem = match strategy {
            Strategy::Optimal => &chosen,
            _ => &shallow,
        };
        let start = Instant::now();
        let choice = strategy.placement().place(problem);
        let planning_seconds = start.elapsed().as_secs_f64();
        let plan = problem.plan(&choice);
        Compared {
            strategy: *strategy,
            bootstraps: plan.as_ref().ok().map(|plan| plan.bootstraps),
            seconds: (plan.as_ref().ok()).map(|plan| plan.microseconds as f64 / 1e6),
            planning_seconds,
            error: plan.err().map(|error| error.to_string()),
        }
    };
    Ok(Strategy::value_variants().iter().map(one).collect())
}
