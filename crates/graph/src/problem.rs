//! The planner's problem: given the values to refresh, all levels and the cost follow.

use crate::lower::lower;
use crate::plan::{BootstrapPlan, NodePlan};
use crate::{CostTable, Counter, Graph, Level, Machine, NodeId, Op, Plan, PlanError};
use crate::{ModulePlan, Node};
use std::collections::BTreeMap;

/// A graph with the costs of its nodes at every level. A choice is one flag per node: refresh its result or not.
#[derive(Clone, Debug)]
pub struct Problem<'g> {
    graph: &'g Graph,
    max: u32,
    nodes: Vec<NodeFacts>,
    families: usize,
    /// Nodes of caches with their families.
    members: Vec<(usize, usize)>,
    drop_ms: Vec<f64>,
}

#[derive(Clone, Debug)]
struct NodeFacts {
    depth: u32,
    inputs: Vec<usize>,
    /// By the level of the inputs.
    cost_ms: Vec<f64>,
    family: Option<usize>,
    refresh: Option<Refresh>,
}

#[derive(Clone, Debug)]
struct Refresh {
    slots: usize,
    needed: u32,
    target_ms: Vec<f64>,
}

/// The levels that follow from a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    /// Level of every node's result before a refresh.
    pub computed: Vec<u32>,
    /// Level at which it is handed on.
    pub handed: Vec<u32>,
}

impl<'g> Problem<'g> {
    /// Counts every node at every level. Refreshable are the computed values that have a bound, caches apart.
    pub fn new(graph: &'g Graph, table: &CostTable) -> Result<Self, PlanError> {
        table.check()?;
        let levels = || (0..=table.max_level().0).map(Level);
        let cost = |node: &Node| {
            levels()
                .map(|level| node_cost(graph, node, table, level))
                .collect()
        };
        let refresh = |period: usize| {
            table.bootstrap(period).map(|cost| Refresh {
                slots: 1 << cost.log_slots,
                needed: cost.slots_to_coeffs_levels,
                target_ms: cost.target_ms.clone(),
            })
        };
        let drop_ms = levels()
            .map(|level| drop_cost(graph, table, level))
            .collect();
        Ok(Problem::build(
            graph,
            table.max_level(),
            cost,
            refresh,
            drop_ms,
        ))
    }

    fn build(
        graph: &'g Graph,
        max: Level,
        cost: impl Fn(&Node) -> Vec<f64>,
        refresh: impl Fn(usize) -> Option<Refresh>,
        drop_ms: Vec<f64>,
    ) -> Self {
        let mut families = BTreeMap::new();
        let mut nodes = Vec::with_capacity(graph.nodes().len());
        for node in graph.nodes() {
            let family = node.op.cache_family().map(|family| {
                let next = families.len();
                *families.entry(family.clone()).or_insert(next)
            });
            let refreshable = node.bound.is_some()
                && node.op.cache_family().is_none()
                && !matches!(node.op, Op::Input { .. });
            nodes.push(NodeFacts {
                depth: node.op.depth(),
                inputs: node.inputs.iter().map(|id| id.index()).collect(),
                cost_ms: cost(node),
                family,
                refresh: if refreshable {
                    refresh(node.layout.period())
                } else {
                    None
                },
            });
        }
        let members = nodes
            .iter()
            .enumerate()
            .filter_map(|(i, node): (usize, &NodeFacts)| Some((i, node.family?)))
            .collect();
        Problem {
            members,
            graph,
            max: max.0,
            nodes,
            families: families.len(),
            drop_ms,
        }
    }

    /// The graph.
    pub fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// Number of nodes, the length of a choice.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the graph is empty.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The highest level.
    pub fn max_level(&self) -> Level {
        Level(self.max)
    }

    /// Nodes whose results can be refreshed.
    pub fn candidates(&self) -> Vec<usize> {
        (0..self.nodes.len())
            .filter(|&i| self.nodes[i].refresh.is_some())
            .collect()
    }

    /// Levels of depth of a node.
    pub fn depth(&self, node: usize) -> u32 {
        self.nodes[node].depth
    }

    /// Inputs of a node.
    pub fn inputs(&self, node: usize) -> &[usize] {
        &self.nodes[node].inputs
    }

    /// Levels that a node's result must have to be refreshed; `None` where it cannot be.
    pub fn refresh_needs(&self, node: usize) -> Option<u32> {
        self.nodes[node]
            .refresh
            .as_ref()
            .map(|refresh| refresh.needed)
    }

    /// All levels, from the last node backwards: a value is handed on at the highest level that a user needs, a refreshed
    /// one is computed at the level that its refresh takes. They may exceed the highest level there is.
    pub fn levels(&self, choice: &[bool]) -> Levels {
        self.levels_within(choice, u32::MAX)
            .expect("no level is higher than the highest number")
    }

    /// As [`levels`](Problem::levels); `None` as soon as a level is higher than `limit`.
    fn levels_within(&self, choice: &[bool], limit: u32) -> Option<Levels> {
        let mut floors = vec![0; self.families];
        loop {
            let mut handed = vec![0; self.nodes.len()];
            let mut computed = vec![0; self.nodes.len()];
            let mut reached = floors.clone();
            for (i, node) in self.nodes.iter().enumerate().rev() {
                if let Some(family) = node.family {
                    handed[i] = handed[i].max(floors[family]);
                    reached[family] = reached[family].max(handed[i]);
                }
                computed[i] = match (&node.refresh, choice[i]) {
                    (Some(refresh), true) => refresh.needed,
                    _ => handed[i],
                };
                let level_in = computed[i] + node.depth;
                if level_in.max(handed[i]) > limit {
                    return None;
                }
                for &input in &node.inputs {
                    handed[input] = handed[input].max(level_in);
                }
            }
            // One level per family of caches: go again where a member is higher than another.
            if self
                .members
                .iter()
                .all(|&(i, family)| handed[i] == reached[family])
            {
                return Some(Levels { computed, handed });
            }
            floors = reached;
        }
    }

    /// Predicted milliseconds; infinite where a level would be too high.
    pub fn cost(&self, choice: &[bool]) -> f64 {
        let Some(levels) = self.levels_within(choice, self.max) else {
            return f64::INFINITY;
        };
        (0..self.nodes.len())
            .map(|i| self.node_ms(i, choice[i], &levels))
            .sum()
    }

    fn node_ms(&self, i: usize, refreshed: bool, levels: &Levels) -> f64 {
        let node = &self.nodes[i];
        let level_in = levels.computed[i] + node.depth;
        let cost = node.cost_ms[level_in as usize];
        let drops = node
            .inputs
            .iter()
            .filter(|&&input| levels.handed[input] > level_in)
            .count();
        let refresh = match &node.refresh {
            Some(refresh) if refreshed => refresh.target_ms[levels.handed[i] as usize],
            _ => 0.0,
        };
        cost + drops as f64 * self.drop_ms[level_in as usize] + refresh
    }

    /// The plan of a choice; an error names the first value that would be too high.
    pub fn plan(&self, choice: &[bool]) -> Result<Plan, PlanError> {
        let levels = self.levels(choice);
        let nodes = self.graph.nodes();
        let too_deep = (0..nodes.len())
            .find(|&i| levels.handed[i].max(levels.computed[i] + self.nodes[i].depth) > self.max);
        if let Some(i) = too_deep {
            let needed = Level(levels.handed[i].max(levels.computed[i] + self.nodes[i].depth));
            return Err(PlanError::TooDeep {
                node: nodes[i].name.clone(),
                needed,
                max: self.max_level(),
            });
        }
        let mut plan = Plan {
            hash: String::new(),
            slots: self.graph.slots(),
            max_level: levels.handed.iter().max().copied().map_or(Level(0), Level),
            bootstraps: 0,
            microseconds: 0,
            rotations: BTreeMap::new(),
            relinearization: None,
            caches: BTreeMap::new(),
            modules: Vec::new(),
            nodes: BTreeMap::new(),
        };
        for (i, node) in nodes.iter().enumerate() {
            let refresh = self.nodes[i].refresh.as_ref().filter(|_| choice[i]);
            let target = Level(levels.handed[i]);
            let planned = NodePlan {
                level_in: Level(levels.computed[i] + self.nodes[i].depth),
                level_out: Level(levels.computed[i]),
                bootstrap: refresh.map(|refresh| BootstrapPlan {
                    slots: refresh.slots,
                    target,
                }),
                microseconds: (self.node_ms(i, choice[i], &levels) * 1e3).round() as u64,
            };
            plan.enter(node, planned);
        }
        plan.cover(self.graph)
    }
}

impl Plan {
    /// A plan without refreshes on levels without end: for calibrating bounds and intervals on a simulated machine.
    pub fn unlimited(graph: &Graph) -> Result<Plan, PlanError> {
        let depth: u32 = graph.nodes().iter().map(|node| node.op.depth()).sum();
        let free = vec![0.0; depth as usize + 1];
        let problem = Problem::build(
            graph,
            Level(depth),
            |_| free.clone(),
            |_| None,
            free.clone(),
        );
        problem.plan(&vec![false; problem.len()])
    }

    /// This plan with the keys that another position of the same step needs too: the directions in which products are
    /// reduced follow the token's lane, so the positions of lane 0 and of the last lane together need all of them.
    pub fn cover(mut self, graph: &Graph) -> Result<Plan, PlanError> {
        let table = CostTable::reference(graph.slots(), self.max_level);
        let counter = self.count(graph, &table)?;
        for (&steps, &level) in counter.rotations() {
            let highest = self.rotations.entry(steps).or_default();
            *highest = level.max(*highest);
        }
        self.relinearization = self.relinearization.max(counter.relinearization());
        Ok(self.seal())
    }

    fn enter(&mut self, node: &Node, planned: NodePlan) {
        let refreshed = usize::from(planned.bootstrap.is_some());
        self.bootstraps += refreshed;
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
                module.bootstraps += refreshed;
                module.level_out = planned.level();
            }
            None => self.modules.push(ModulePlan {
                name: node.module().to_owned(),
                microseconds: planned.microseconds,
                bootstraps: refreshed,
                level_in: planned.level_in,
                level_out: planned.level(),
            }),
        }
        self.nodes.insert(node.name.clone(), planned);
    }
}

/// Infinite where the level does not suffice.
fn node_cost(graph: &Graph, node: &Node, table: &CostTable, level: Level) -> f64 {
    if node.inputs.is_empty() {
        return 0.0;
    }
    let mut counter = Counter::new(graph.slots(), table);
    let inputs: Vec<&Level> = node.inputs.iter().map(|_: &NodeId| &level).collect();
    match lower(graph, node, &mut counter, &inputs) {
        Ok(_) => counter.milliseconds(),
        Err(_) => f64::INFINITY,
    }
}

fn drop_cost(graph: &Graph, table: &CostTable, level: Level) -> f64 {
    let mut counter = Counter::new(graph.slots(), table);
    match counter.drop_to(&level.before(1), level) {
        Ok(_) => counter.milliseconds(),
        Err(_) => f64::INFINITY,
    }
}
