//! Plans within a bound of memory: where the fastest does not fit even without weights kept encoded, a slower one that does.
//!
//! Keys are the most of a plan's memory beside the weights. Those of rotations, and the caches, are on the limbs of the levels where they are
//! used, and every size of bootstrap has keys of its own, up to its highest target: plans with fewer levels and fewer sizes need less.

use anyhow::Result;
use serde::Serialize;
use taciturn_ckks::{Encoder, KeyRequest, Parameters};
use taciturn_graph::{BootstrapCost, CostTable, Graph, KeyPlanner, Plan};
use taciturn_models::plan_over;

use crate::costs::Costs;
use crate::memory::{Prediction, predict};
use crate::strategy::Strategy;

/// A plan with what it takes.
pub struct Candidate {
    pub plan: Plan,
    pub keys: KeyRequest,
    pub memory: Prediction,
}

/// A plan that was left for one of less memory.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Fastest {
    /// Per new token.
    pub seconds: f64,
    /// At most.
    pub bytes: u64,
}

/// What came of a search.
pub struct Fitted {
    /// The fastest of the plans that fit; none where no plan does.
    pub best: Option<Candidate>,
    /// The least memory that any plan takes.
    pub smallest: u64,
}

/// Makes plans of one model.
pub struct Planner<'a> {
    params: &'a Parameters,
    costs: &'a Costs,
    strategy: Strategy,
    context: usize,
    /// As [`taciturn_models::StepModel::planned_graphs`] has them.
    graphs: &'a [Graph],
    keys: KeyPlanner<'a>,
}

impl<'a> Planner<'a> {
    /// For the graphs of a model with room for `context` tokens.
    pub fn new(
        encoder: &'a Encoder,
        graphs: &'a [Graph],
        context: usize,
        costs: &'a Costs,
        strategy: Strategy,
    ) -> Self {
        Planner {
            params: encoder.parameters(),
            costs,
            strategy,
            context,
            graphs,
            keys: KeyPlanner::new(encoder),
        }
    }

    /// The fastest plan from a table.
    fn plan(&mut self, table: &CostTable) -> Result<Candidate> {
        let plan = plan_over(self.graphs, table, self.strategy.placement().as_ref())?
            .made_for(self.params.name(), self.context);
        let keys = self.keys.request(&plan)?;
        let memory = predict(self.params, &self.graphs[0], &plan, &keys);
        Ok(Candidate { plan, keys, memory })
    }

    /// The fastest plan within `limit` bytes, where the fastest of all is none.
    pub fn fit(&mut self, fastest: &Plan, limit: u64) -> Result<Fitted> {
        let mut fitted = Fitted {
            best: None,
            smallest: u64::MAX,
        };
        let sizes: Vec<u32> = (fastest.bootstrap_sizes().into_keys())
            .map(usize::ilog2)
            .collect();
        // Without the sizes below each of those that the fastest plan uses.
        for smallest in sizes.iter().copied().chain([0]).take(sizes.len().max(1)) {
            for levels in (1..=fastest.max_level.index() + 1).rev() {
                let table = narrowed(&self.costs.table, levels, &sizes, smallest);
                // Too few levels, or no size for a value: with fewer there is no plan either.
                let Ok(mut plan) = self.plan(&table) else {
                    break;
                };
                plan.memory = plan.memory.within(limit);
                // Fewer levels make no plan faster.
                let slower = |best: &Candidate| plan.plan.microseconds >= best.plan.microseconds;
                if fitted.best.as_ref().is_some_and(slower) {
                    break;
                }
                fitted.smallest = fitted.smallest.min(plan.memory.peak);
                if plan.memory.peak <= limit {
                    fitted.best = Some(plan);
                    break;
                }
            }
        }
        Ok(fitted)
    }
}

/// A table up to some levels, without sizes of bootstraps below `smallest`, and up to the largest in use only those in use.
fn narrowed(table: &CostTable, levels: usize, sizes: &[u32], smallest: u32) -> CostTable {
    let largest = sizes.last().copied().unwrap_or(0);
    let kept = |cost: &&BootstrapCost| {
        let size = cost.log_slots;
        size > largest || (size >= smallest && sizes.contains(&size))
    };
    let cut = |column: &Vec<f64>| column.iter().take(levels).copied().collect();
    CostTable {
        levels: table.levels.iter().take(levels).copied().collect(),
        bootstraps: (table.bootstraps.iter().filter(kept))
            .map(|cost| BootstrapCost {
                target_ms: cut(&cost.target_ms),
                pair_ms: cost.pair_ms.as_ref().map(cut),
                ..cost.clone()
            })
            .collect(),
        embed_ms: table.embed_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taciturn_graph::Level;

    #[test]
    fn narrowed_tables_are_tables() {
        let table = CostTable::reference(1 << 10, Level(7));
        for levels in 1..=8 {
            for (smallest, expected) in [(2, vec![2, 7, 8, 9, 10]), (7, vec![7, 8, 9, 10])] {
                let narrow = narrowed(&table, levels, &[2, 7], smallest);
                narrow.check().unwrap();
                assert_eq!(narrow.max_level().index() + 1, levels);
                let sizes: Vec<u32> = narrow.bootstraps.iter().map(|c| c.log_slots).collect();
                assert_eq!(sizes, expected);
            }
        }
    }
}
