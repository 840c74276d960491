//! The graph of one step: named nodes in topological order.

use crate::infer::infer;
use crate::{GraphError, Layout, Op, Source};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use taciturn_approx::{Approximation, Target};

/// Names a node of one graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) usize);

impl NodeId {
    /// Position of the node in [`Graph::nodes`].
    pub fn index(self) -> usize {
        self.0
    }
}

/// One semantic operation and its result.
#[derive(Clone, Debug)]
pub struct Node {
    /// Stable over token positions, as "layer0.attention.scores".
    pub name: String,
    /// What is computed.
    pub op: Op,
    /// From what.
    pub inputs: Vec<NodeId>,
    /// Where the result's entries sit.
    pub layout: Layout,
    /// No slot of the result exceeds this in magnitude. Without a bound a value cannot be bootstrapped.
    pub bound: Option<f64>,
}

impl Node {
    /// The module that the node belongs to.
    pub fn module(&self) -> &str {
        module_of(&self.name)
    }
}

/// The module that a node of this name belongs to: at most the first two parts, as "layer0.attention".
pub fn module_of(name: &str) -> &str {
    let mut dots = name.match_indices('.').map(|(at, _)| at);
    let end = match (dots.next(), dots.next()) {
        (Some(_), Some(second)) => second,
        (Some(first), None) => first,
        _ => name.len(),
    };
    &name[..end]
}

/// A model's step (or a part of it) as semantic operations.
#[derive(Clone, Debug)]
pub struct Graph {
    slots: usize,
    tokens: usize,
    nodes: Vec<Node>,
    by_name: HashMap<String, NodeId>,
    outputs: Vec<(String, NodeId)>,
    sites: Vec<(String, Range<usize>)>,
    approximations: BTreeMap<String, String>,
}

impl Graph {
    /// An empty graph for machines of `slots` slots.
    pub fn new(slots: usize) -> Result<Self, GraphError> {
        Graph::side_by_side(slots, 1)
    }

    /// An empty graph of `tokens` tokens side by side, a power of two of fewer than the machine's slots. Its layouts are those of one token on a
    /// machine of `slots / tokens` slots: slot `q * tokens + j` holds what slot `q` holds for token `j`.
    pub fn side_by_side(slots: usize, tokens: usize) -> Result<Self, GraphError> {
        if !slots.is_power_of_two() {
            return Err(GraphError::Slots(slots));
        }
        if !tokens.is_power_of_two() || tokens > slots {
            return Err(GraphError::Tokens { tokens, slots });
        }
        Ok(Graph {
            slots,
            tokens,
            nodes: Vec::new(),
            by_name: HashMap::new(),
            outputs: Vec::new(),
            sites: Vec::new(),
            approximations: BTreeMap::new(),
        })
    }

    /// Adds a node after checking that its inputs have the layouts that the operation takes.
    pub fn add_node(
        &mut self,
        name: impl Into<String>,
        op: Op,
        inputs: &[NodeId],
    ) -> Result<NodeId, GraphError> {
        let name = name.into();
        if self.by_name.contains_key(&name) {
            return Err(GraphError::Duplicate { name });
        }
        if let Some(unknown) = inputs.iter().find(|id| id.0 >= self.nodes.len()) {
            return Err(GraphError::UnknownInput {
                name,
                input: unknown.0,
            });
        }
        let layouts: Vec<Layout> = inputs.iter().map(|&id| self.node(id).layout).collect();
        let layout = infer(&name, &op, &layouts, (self.token_slots(), self.tokens))?;
        let id = NodeId(self.nodes.len());
        self.by_name.insert(name.clone(), id);
        self.nodes.push(Node {
            name,
            op,
            inputs: inputs.to_vec(),
            layout,
            bound: None,
        });
        Ok(id)
    }

    /// Adds the nodes of a non-linear function, of which the last is its result. Where a function has several such runs of nodes, all from the first
    /// to the last count.
    pub(crate) fn approximated(
        &mut self,
        site: &str,
        build: impl FnOnce(&mut Self) -> Result<NodeId, GraphError>,
    ) -> Result<NodeId, GraphError> {
        let first = self.nodes.len();
        let result = build(self)?;
        let end = self.nodes.len();
        match self.sites.iter_mut().find(|(name, _)| name == site) {
            Some((_, nodes)) => nodes.end = end,
            None => self.sites.push((site.to_owned(), first..end)),
        }
        Ok(result)
    }

    /// That an approximation is one of the function at a place.
    pub(crate) fn expect(
        &self,
        name: &str,
        expected: Target,
        approximation: &Approximation,
    ) -> Result<(), GraphError> {
        let got = approximation.target();
        if got == expected {
            return Ok(());
        }
        Err(GraphError::Function {
            name: name.to_owned(),
            expected: expected.name(),
            got: got.name(),
        })
    }

    /// The non-linear functions with the nodes that approximate them.
    pub fn sites(&self) -> &[(String, Range<usize>)] {
        &self.sites
    }

    /// Says what functions are approximated by, under the names of whoever chose: plans keep it and hold for no other choice.
    pub fn set_approximations(&mut self, approximations: BTreeMap<String, String>) {
        self.approximations = approximations;
    }

    /// What functions are approximated by.
    pub fn approximations(&self) -> &BTreeMap<String, String> {
        &self.approximations
    }

    /// Makes a value an output under a name of its own: a result, an updated cache, or a witness.
    pub fn output(&mut self, name: impl Into<String>, id: NodeId) {
        self.outputs.push((name.into(), id));
    }

    /// Says that no slot of a value, garbage included, exceeds `bound` in magnitude.
    pub fn set_bound(&mut self, id: NodeId, bound: f64) {
        self.nodes[id.0].bound = Some(bound);
    }

    /// Sets bounds by name; names that do not occur are passed over.
    pub fn set_bounds<'a>(&mut self, bounds: impl IntoIterator<Item = (&'a str, f64)>) {
        for (name, bound) in bounds {
            if let Some(&id) = self.by_name.get(name) {
                self.set_bound(id, bound);
            }
        }
    }

    /// Slots of the machine.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Tokens side by side.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Slots that layouts are about: those of one token.
    pub fn token_slots(&self) -> usize {
        self.slots / self.tokens
    }

    /// Distinct slots of a node's value: it can be bootstrapped at this size.
    pub fn period(&self, node: &Node) -> usize {
        node.layout.period() * self.tokens
    }

    /// All nodes; inputs come before what uses them.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// One node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    /// The node of a name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    /// The outputs with their names.
    pub fn outputs(&self) -> &[(String, NodeId)] {
        &self.outputs
    }

    /// Names of the inputs, cached ones included, with their layouts.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, &Layout)> {
        self.nodes
            .iter()
            .filter(|node| matches!(node.op, Op::Input { .. }))
            .map(|node| (node.name.as_str(), &node.layout))
    }

    /// The part that the named outputs need: their ancestors, and of all outputs those whose values are among them.
    pub fn pruned(&self, keep: impl Fn(&str) -> bool) -> Graph {
        let mut needed = vec![false; self.nodes.len()];
        for (_, id) in self.outputs.iter().filter(|(name, _)| keep(name)) {
            needed[id.0] = true;
        }
        // Inputs come before what uses them, so that one pass from the end reaches all of them.
        for i in (0..self.nodes.len()).rev() {
            if needed[i] {
                self.nodes[i]
                    .inputs
                    .iter()
                    .for_each(|input| needed[input.0] = true);
            }
        }
        let mut moved = vec![None; self.nodes.len()];
        let mut nodes = Vec::new();
        for (i, node) in self.nodes.iter().enumerate().filter(|(i, _)| needed[*i]) {
            moved[i] = Some(NodeId(nodes.len()));
            let inputs = node
                .inputs
                .iter()
                .filter_map(|input| moved[input.0])
                .collect();
            nodes.push(Node {
                inputs,
                ..node.clone()
            });
        }
        let outputs = self
            .outputs
            .iter()
            .filter_map(|(name, id)| Some((name.clone(), moved[id.0]?)));
        let sites = self.sites.iter().filter_map(|(name, nodes)| {
            let left: Option<Vec<NodeId>> = moved[nodes.clone()].iter().copied().collect();
            let left = left?;
            Some((name.clone(), left.first()?.0..left.last()?.0 + 1))
        });
        Graph {
            slots: self.slots,
            tokens: self.tokens,
            by_name: nodes
                .iter()
                .enumerate()
                .map(|(i, node)| (node.name.clone(), NodeId(i)))
                .collect(),
            outputs: outputs.collect(),
            sites: sites.collect(),
            approximations: self.approximations.clone(),
            nodes,
        }
    }

    /// The same graph with the named nodes as inputs, as they were computed before.
    pub fn cut(&self, at: impl Fn(&str) -> bool) -> Graph {
        let mut graph = self.clone();
        for node in graph.nodes.iter_mut().filter(|node| at(&node.name)) {
            node.inputs.clear();
            node.op = Op::Input {
                source: Source::Fresh,
                layout: node.layout,
            };
        }
        graph
    }

    /// The layouts of a node's inputs.
    pub fn input_layouts(&self, node: &Node) -> Vec<Layout> {
        node.inputs.iter().map(|&id| self.node(id).layout).collect()
    }

    /// For every node, the nodes that use it.
    pub fn consumers(&self) -> Vec<Vec<NodeId>> {
        let mut consumers = vec![Vec::new(); self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            for input in &node.inputs {
                consumers[input.0].push(NodeId(index));
            }
        }
        consumers
    }
}
