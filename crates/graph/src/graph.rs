//! The graph of one step: named nodes in topological order.

use crate::infer::infer;
use crate::{GraphError, Layout, Op};
use std::collections::HashMap;

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
    nodes: Vec<Node>,
    by_name: HashMap<String, NodeId>,
    outputs: Vec<(String, NodeId)>,
}

impl Graph {
    /// An empty graph for machines of `slots` slots.
    pub fn new(slots: usize) -> Result<Self, GraphError> {
        if !slots.is_power_of_two() {
            return Err(GraphError::Slots(slots));
        }
        Ok(Graph {
            slots,
            nodes: Vec::new(),
            by_name: HashMap::new(),
            outputs: Vec::new(),
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
        let layout = infer(&name, &op, &layouts, self.slots)?;
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
        Graph {
            slots: self.slots,
            by_name: nodes
                .iter()
                .enumerate()
                .map(|(i, node)| (node.name.clone(), NodeId(i)))
                .collect(),
            outputs: outputs.collect(),
            nodes,
        }
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
