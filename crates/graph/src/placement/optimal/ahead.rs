//! What the nodes before a cut cost at least.

use super::demand::Demand;
use crate::Problem;

/// Lower bounds of the cost of all nodes before a cut, given what is demanded of their values.
pub(super) struct Ahead {
    /// All nodes before one, each at the lowest level.
    floor: Vec<f64>,
    /// What providing a node's result, computed at a level, costs above the floor: along the dearest path that leads to it.
    computed: Vec<Vec<f64>>,
    /// The same for the refreshed result.
    refreshed: Vec<Vec<f64>>,
}

impl Ahead {
    pub fn new(problem: &Problem<'_>) -> Self {
        let top = problem.max_level().0 as usize;
        let mut bounds = Ahead {
            floor: vec![0.0],
            computed: Vec::with_capacity(problem.len()),
            refreshed: Vec::with_capacity(problem.len()),
        };
        for node in 0..problem.len() {
            let depth = problem.depth(node) as usize;
            let least = if depth <= top {
                problem.compute_ms(node, depth as u32)
            } else {
                f64::INFINITY
            };
            bounds.floor.push(bounds.floor[node] + least);
            let computed: Vec<f64> = (0..=top)
                .map(|level| {
                    let level_in = level + depth;
                    if level_in > top {
                        return f64::INFINITY;
                    }
                    let provide = |&input: &usize| {
                        bounds.computed[input][level_in].min(bounds.refreshed[input][level_in])
                    };
                    let dearest = problem.inputs(node).iter().map(provide);
                    problem.compute_ms(node, level_in as u32) - least + dearest.fold(0.0, f64::max)
                })
                .collect();
            let refreshed = match problem.bootstrap_size(node, None) {
                None => vec![f64::INFINITY; top + 1],
                Some(size) => {
                    let from = (computed.get(problem.bootstrap_needs(size) as usize))
                        .map_or(f64::INFINITY, |ms| *ms);
                    // A pair is half each.
                    let ms = |level| {
                        let alone = problem.bootstrap_ms(size, false, level);
                        alone.min(problem.bootstrap_ms(size, true, level) / 2.0)
                    };
                    (0..=top as u32).map(|level| ms(level) + from).collect()
                }
            };
            bounds.computed.push(computed);
            bounds.refreshed.push(refreshed);
        }
        bounds
    }

    /// What all nodes before one cost at least, where these values are demanded.
    pub fn least(&self, node: usize, live: &[usize], demands: &[Demand]) -> f64 {
        let provide = |(&value, demand): (&usize, &Demand)| {
            let computed = self.computed[value][demand.computed as usize];
            if demand.refreshed == 0 {
                computed
            } else {
                computed.max(self.refreshed[value][demand.refreshed as usize])
            }
        };
        self.floor[node] + live.iter().zip(demands).map(provide).fold(0.0, f64::max)
    }
}
