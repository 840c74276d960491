//! The planner's problem: what every node of a graph costs at every level, and which results can be refreshed at what price.

use crate::lower::lower;
use crate::shape::Shape;
use crate::{BootstrapCost, CostTable, Counter, Graph, Level, Machine, Node, Op, PlanError};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Two values share a bootstrap only where their bounds are this close: the bootstrap's error follows the larger bound.
const PAIR_BOUNDS: f64 = 4.0;

/// A graph with the costs of its nodes at every level.
///
/// No cost here falls where the level or the size rises: where a table says so, the lower point's cost counts for both. That more
/// levels are never cheaper is what lets a search leave states out.
#[derive(Clone, Debug)]
pub struct Problem<'g> {
    graph: &'g Graph,
    max: u32,
    nodes: Vec<NodeFacts>,
    families: usize,
    /// The least level of every family.
    floors: Vec<u32>,
    /// Nodes of caches with their families.
    members: Vec<(usize, usize)>,
    drop_ms: Vec<f64>,
    /// By the logarithm of the size.
    bootstraps: Vec<Refreshing>,
}

/// What counts of a node; equal in corresponding nodes of equal blocks.
#[derive(Clone, Debug)]
struct NodeFacts {
    depth: u32,
    inputs: Vec<usize>,
    /// By the level of the inputs.
    cost_ms: Arc<Vec<f64>>,
    family: Option<usize>,
    /// Logarithm of the bootstrap's size, and the bound, where the result can be refreshed.
    refresh: Option<(usize, f64)>,
}

#[derive(Clone, Debug)]
struct Refreshing {
    log_slots: u32,
    needed: u32,
    /// By target level.
    alone_ms: Vec<f64>,
    paired_ms: Option<Vec<f64>>,
}

impl<'g> Problem<'g> {
    /// Counts every node at every level. Refreshable are the computed values that have a bound, caches apart.
    pub fn new(graph: &'g Graph, table: &CostTable) -> Result<Self, PlanError> {
        Problem::with_known(graph, table, &mut HashMap::new())
    }

    /// The problems of graphs of equally many slots and tokens, at least one, which share their costs.
    pub(crate) fn alike(graphs: &'g [Graph], table: &CostTable) -> Result<Vec<Self>, PlanError> {
        let mut known = HashMap::new();
        let problems = graphs.iter();
        problems
            .map(|graph| Problem::with_known(graph, table, &mut known))
            .collect()
    }

    fn with_known(
        graph: &'g Graph,
        table: &CostTable,
        known: &mut HashMap<Shape, Arc<Vec<f64>>>,
    ) -> Result<Self, PlanError> {
        table.check()?;
        let max = table.max_level();
        let levels = || (0..=max.0).map(Level);
        let cost = |node: &Node| {
            known
                .entry(Shape::of(graph, node))
                .or_insert_with(|| {
                    let costs = levels().map(|level| node_cost(graph, node, table, level));
                    Arc::new(never_falling(costs.collect(), None))
                })
                .clone()
        };
        let drops = levels().map(|level| drop_cost(graph, table, level));
        let mut problem = Problem::build(graph, max, cost, never_falling(drops.collect(), None));
        problem.price_bootstraps(&table.bootstraps);
        Ok(problem)
    }

    /// A problem of levels without end and without costs or refreshes.
    pub(crate) fn unlimited(graph: &'g Graph) -> Self {
        let depth: u32 = graph.nodes().iter().map(|node| node.op.depth()).sum();
        let free = vec![0.0; depth as usize + 1];
        let costs = Arc::new(free.clone());
        Problem::build(graph, Level(depth), |_| costs.clone(), free)
    }

    fn build(
        graph: &'g Graph,
        max: Level,
        mut cost: impl FnMut(&Node) -> Arc<Vec<f64>>,
        drop_ms: Vec<f64>,
    ) -> Self {
        let mut families = BTreeMap::new();
        let mut nodes = Vec::with_capacity(graph.nodes().len());
        for node in graph.nodes() {
            let family = node.op.cache_family().map(|family| {
                let next = families.len();
                *families.entry(family.clone()).or_insert(next)
            });
            nodes.push(NodeFacts {
                depth: node.op.depth(),
                inputs: node.inputs.iter().map(|id| id.index()).collect(),
                cost_ms: cost(node),
                family,
                refresh: None,
            });
        }
        let members = nodes
            .iter()
            .enumerate()
            .filter_map(|(i, node): (usize, &NodeFacts)| Some((i, node.family?)))
            .collect();
        Problem {
            graph,
            max: max.0,
            nodes,
            floors: vec![0; families.len()],
            families: families.len(),
            members,
            drop_ms,
            bootstraps: Vec::new(),
        }
    }

    /// Takes the costs of bootstraps and says which results they serve.
    fn price_bootstraps(&mut self, costs: &[BootstrapCost]) {
        for cost in costs {
            let smaller = self.bootstraps.last();
            let alone_ms = never_falling(
                cost.target_ms.clone(),
                smaller.map(|smaller| smaller.alone_ms.as_slice()),
            );
            let smaller_pair = smaller.and_then(|smaller| smaller.paired_ms.as_deref());
            let paired_ms = cost.pair_ms.as_ref().map(|pair_ms| {
                let floor: Vec<f64> = alone_ms
                    .iter()
                    .enumerate()
                    .map(|(i, ms)| smaller_pair.map_or(*ms, |smaller| ms.max(smaller[i])))
                    .collect();
                never_falling(pair_ms.clone(), Some(&floor))
            });
            let needed = cost.slots_to_coeffs_levels;
            self.bootstraps.push(Refreshing {
                log_slots: cost.log_slots,
                needed: smaller.map_or(needed, |smaller| needed.max(smaller.needed)),
                alone_ms,
                paired_ms,
            });
        }
        for (node, facts) in self.graph.nodes().iter().zip(&mut self.nodes) {
            let refreshable =
                node.op.cache_family().is_none() && !matches!(node.op, Op::Input { .. });
            let size = self
                .bootstraps
                .iter()
                .position(|size| 1usize << size.log_slots >= self.graph.period(node));
            facts.refresh = size.zip(node.bound).filter(|_| refreshable);
        }
    }

    /// Sets the least levels of families of caches, by name: those that the caches' other users need.
    pub fn raise_caches(&mut self, least: &BTreeMap<String, Level>) {
        for &(node, family) in &self.members {
            let name = self.graph.nodes()[node].op.cache_family();
            if let Some(level) = name.and_then(|name| least.get(name.as_ref())) {
                self.floors[family] = level.0;
            }
        }
    }

    /// The least level of every family of caches.
    pub(crate) fn floors(&self) -> &[u32] {
        &self.floors
    }

    /// The least level of a node's result: its family's, where it is a member of one.
    pub(crate) fn floor(&self, node: usize) -> u32 {
        self.family(node).map_or(0, |family| self.floors[family])
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

    /// Levels that a node's result must have to be refreshed alone; `None` where it cannot be.
    pub fn refresh_needs(&self, node: usize) -> Option<u32> {
        let (size, _) = self.nodes[node].refresh?;
        Some(self.bootstraps[size].needed)
    }

    /// Whether two different nodes' results can share a bootstrap, order apart.
    pub fn can_pair(&self, a: usize, b: usize) -> bool {
        let (Some((size_a, a)), Some((size_b, b))) = (self.nodes[a].refresh, self.nodes[b].refresh)
        else {
            return false;
        };
        self.bootstraps[size_a.max(size_b)].paired_ms.is_some()
            && a.max(b) <= PAIR_BOUNDS * a.min(b)
    }

    /// Milliseconds of a node whose inputs are at a level; infinite where the level does not suffice.
    pub(crate) fn compute_ms(&self, node: usize, level_in: u32) -> f64 {
        self.nodes[node].cost_ms[level_in as usize]
    }

    /// Milliseconds of a node by the level of its inputs; one table for all nodes of a shape.
    pub(crate) fn costs(&self, node: usize) -> &Arc<Vec<f64>> {
        &self.nodes[node].cost_ms
    }

    /// Milliseconds of bringing a value from above down to a level.
    pub(crate) fn drop_ms(&self, level: u32) -> f64 {
        self.drop_ms[level as usize]
    }

    /// Index of the bootstrap's size for a node's result, or for it and its partner's; `None` where it cannot be refreshed.
    pub(crate) fn bootstrap_size(&self, node: usize, partner: Option<usize>) -> Option<usize> {
        let (size, _) = self.nodes[node].refresh?;
        match partner {
            None => Some(size),
            Some(partner) => Some(size.max(self.nodes[partner].refresh?.0)),
        }
    }

    /// Slots of a size of bootstrap.
    pub(crate) fn slots_of(&self, size: usize) -> usize {
        1 << self.bootstraps[size].log_slots
    }

    /// Levels that a bootstrap of a size takes from its input.
    pub(crate) fn bootstrap_needs(&self, size: usize) -> u32 {
        self.bootstraps[size].needed
    }

    /// Milliseconds of a bootstrap of a size, of one value or of two.
    pub(crate) fn bootstrap_ms(&self, size: usize, pair: bool, target: u32) -> f64 {
        let size = &self.bootstraps[size];
        match (pair, &size.paired_ms) {
            (true, Some(paired_ms)) => paired_ms[target as usize],
            (true, None) => f64::INFINITY,
            (false, _) => size.alone_ms[target as usize],
        }
    }

    /// The family of caches that a node is a member of.
    pub(crate) fn family(&self, node: usize) -> Option<usize> {
        self.nodes[node].family
    }

    /// How many families of caches there are.
    pub(crate) fn families(&self) -> usize {
        self.families
    }

    /// Nodes of caches with their families.
    pub(crate) fn members(&self) -> &[(usize, usize)] {
        &self.members
    }
}

/// The least sequence above both arguments that never falls.
fn never_falling(mut costs: Vec<f64>, floor: Option<&[f64]>) -> Vec<f64> {
    for i in 0..costs.len() {
        if let Some(floor) = floor {
            costs[i] = costs[i].max(floor[i]);
        }
        // Levels too low to compute at cost infinitely much; these are no lower bound for others.
        if i > 0 && costs[i - 1].is_finite() {
            costs[i] = costs[i].max(costs[i - 1]);
        }
    }
    costs
}

/// Infinite where the level does not suffice.
fn node_cost(graph: &Graph, node: &Node, table: &CostTable, level: Level) -> f64 {
    if node.inputs.is_empty() {
        return 0.0;
    }
    let mut counter = Counter::new(graph.slots(), table);
    let inputs: Vec<&Level> = node.inputs.iter().map(|_| &level).collect();
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
