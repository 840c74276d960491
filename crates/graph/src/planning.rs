//! From a choice to its plan.

use crate::lower::lower;
use crate::plan::{BootstrapPlan, NodePlan};
use crate::shape::{Shape, structure_hash};
use crate::{Choice, CostTable, Counter, Graph, Level, ModulePlan, Node, Plan, PlanError, Problem};
use std::collections::HashSet;

impl Problem<'_> {
    /// The plan of a choice; an error names the first value that would be too high.
    pub fn plan(&self, choice: &Choice) -> Result<Plan, PlanError> {
        let levels = self.levels(choice);
        let nodes = self.graph().nodes();
        let highest = |i: usize| levels.handed[i].max(levels.computed[i] + self.depth(i));
        if let Some(i) = (0..nodes.len()).find(|&i| highest(i) > self.max_level().0) {
            return Err(PlanError::TooDeep {
                node: nodes[i].name.clone(),
                needed: Level(highest(i)),
                max: self.max_level(),
            });
        }
        let mut plan = Plan {
            model: structure_hash(self.graph()),
            approximations: self.graph().approximations().clone(),
            ..Plan::empty(self.graph().slots())
        };
        plan.max_level = levels.handed.iter().max().copied().map_or(Level(0), Level);
        for (i, node) in nodes.iter().enumerate() {
            let refreshed = choice.0[i];
            let size = refreshed.and_then(|refreshed| self.bootstrap_size(i, refreshed.partner));
            let planned = NodePlan {
                level_in: Level(levels.computed[i] + self.depth(i)),
                level_out: Level(levels.computed[i]),
                bootstrap: size.map(|size| BootstrapPlan {
                    slots: self.slots_of(size),
                    target: Level(levels.handed[i]),
                    partner: refreshed
                        .and_then(|refreshed| refreshed.partner)
                        .map(|partner| nodes[partner].name.clone()),
                }),
                microseconds: (self.node_ms(i, refreshed, &levels) * 1e3).round() as u64,
            };
            // A shared bootstrap is done, and counted, at its second value.
            let partner = refreshed.and_then(|refreshed| refreshed.partner);
            let counted = size.is_some() && partner.is_none_or(|partner| partner < i);
            plan.enter(node, planned, usize::from(counted));
        }
        plan.cover(self.graph())
    }
}

impl Plan {
    /// A plan without refreshes on levels without end: for calibrating bounds and intervals on a simulated machine.
    pub fn unlimited(graph: &Graph) -> Result<Plan, PlanError> {
        let problem = Problem::unlimited(graph);
        problem.plan(&Choice::none(&problem))
    }

    /// This plan with the keys that another position of the same step needs too: the directions in which products are
    /// reduced follow the token's lane, so the positions of lane 0 and of the last lane together need all of them.
    pub fn cover(mut self, graph: &Graph) -> Result<Plan, PlanError> {
        let table = CostTable::reference(graph.slots(), self.max_level);
        let mut counter = Counter::new(graph.slots(), &table);
        let mut counted = HashSet::new();
        for node in graph.nodes().iter().filter(|node| !node.inputs.is_empty()) {
            let level_in = self.node(&node.name)?.level_in;
            if !counted.insert((Shape::of(graph, node), level_in)) {
                continue;
            }
            let inputs = vec![&level_in; node.inputs.len()];
            lower(graph, node, &mut counter, &inputs).map_err(|_| PlanError::Missing {
                node: node.name.clone(),
            })?;
        }
        for (&steps, &level) in counter.rotations() {
            let highest = self.rotations.entry(steps).or_default();
            *highest = level.max(*highest);
        }
        self.relinearization = self.relinearization.max(counter.relinearization());
        self.conjugation = self.conjugation.max(counter.conjugation());
        Ok(self.seal())
    }

    fn enter(&mut self, node: &Node, planned: NodePlan, bootstraps: usize) {
        self.bootstraps += bootstraps;
        self.microseconds += planned.microseconds;
        if let Some(family) = node.op.cache_family() {
            self.caches.insert(family.to_string(), planned.level());
        }
        match self
            .modules
            .iter_mut()
            .find(|module| module.name == node.module())
        {
            Some(module) => {
                module.microseconds += planned.microseconds;
                module.bootstraps += bootstraps;
                module.level_out = planned.level();
            }
            None => self.modules.push(ModulePlan {
                name: node.module().to_owned(),
                microseconds: planned.microseconds,
                bootstraps,
                level_in: planned.level_in,
                level_out: planned.level(),
            }),
        }
        self.nodes.insert(node.name.clone(), planned);
    }
}
