//! The client's side of a step: inputs from tokens, logits and witnesses from decrypted slots.

use taciturn_graph::{Graph, Layout, NodeId, Op, refresh_site};

use super::StepModel;
use crate::error::ModelError;

/// Name of the encrypted input, and of the outputs' beginning.
pub(super) const INPUT: &str = "embedding";
pub(super) const LOGITS: &str = "logits";
const WITNESS: &str = "witness";

/// A decrypted value that tells whether an encrypted run stayed in its intervals.
#[derive(Clone, Debug)]
pub struct Witness {
    /// Name of the output.
    pub output: String,
    /// The polynomial whose argument it is.
    pub site: String,
    /// Where its entries are.
    pub layout: Layout,
    /// Tokens side by side.
    pub tokens: usize,
    /// Lower end of the polynomial's interval.
    pub low: f64,
    /// Upper end of the polynomial's interval.
    pub high: f64,
}

impl Witness {
    /// Distinct slots of the decrypted value.
    pub fn period(&self) -> usize {
        self.layout.period() * self.tokens
    }

    /// Its entries, of all tokens, among one period of slots.
    pub fn values(&self, slots: &[f64]) -> Vec<f64> {
        (0..self.tokens)
            .flat_map(|j| self.layout.compact(&token_slots(slots, self.tokens, j)))
            .collect()
    }
}

/// The slots of one of several tokens side by side.
fn token_slots(slots: &[f64], tokens: usize, j: usize) -> Vec<f64> {
    slots.iter().skip(j).step_by(tokens).copied().collect()
}

impl StepModel {
    /// Name of the encrypted input.
    pub fn input_name() -> &'static str {
        INPUT
    }

    /// One period of the slots of a token's input: its embedding, padded with zeros.
    pub fn embed(&self, token: u32, position: usize) -> Result<Vec<f64>, ModelError> {
        let mut slots = self.prepared.embed(token, position)?;
        slots.resize(self.width, 0.0);
        Ok(slots)
    }

    /// Names of the outputs that hold the logits, with their layouts, in order.
    pub fn logit_outputs(&self, graph: &Graph) -> Vec<(String, Layout)> {
        let outputs = graph.outputs().iter();
        outputs
            .filter(|(name, _)| name.starts_with(LOGITS))
            .map(|(name, id)| (name.clone(), graph.node(*id).layout))
            .collect()
    }

    /// The vocabulary's logits from the slots of [`logit_outputs`](Self::logit_outputs), in their order.
    pub fn logits(&self, graph: &Graph, slots: &[impl AsRef<[f64]>]) -> Vec<f64> {
        let outputs = self.logit_outputs(graph);
        let mut logits: Vec<f64> = outputs
            .iter()
            .zip(slots)
            .flat_map(|((_, layout), slots)| layout.compact(slots.as_ref()))
            .collect();
        logits.truncate(self.config().vocabulary);
        logits
    }

    /// The vocabulary's logits of token `j` of a graph of several, from the slots of [`logit_outputs`](Self::logit_outputs).
    pub fn token_logits(&self, graph: &Graph, slots: &[impl AsRef<[f64]>], j: usize) -> Vec<f64> {
        let slots: Vec<Vec<f64>> = (slots.iter())
            .map(|slots| token_slots(slots.as_ref(), graph.tokens(), j))
            .collect();
        self.logits(graph, &slots)
    }

    /// What a client checks after decryption: arguments of polynomials lie in their intervals, refreshed values within their bounds. (A
    /// refreshed value past its bound still comes out past it, up to hundreds of times: the sine bends late.)
    pub fn witnesses(&self, graph: &Graph) -> Vec<Witness> {
        let polynomials = graph.nodes().iter().filter_map(|node| match &node.op {
            Op::Polynomial(function) => Some((node, function)),
            _ => None,
        });
        let arguments = polynomials.map(|(node, function)| Witness {
            output: witness_name(&node.name),
            site: node.name.clone(),
            layout: graph.node(node.inputs[0]).layout,
            tokens: graph.tokens(),
            low: function.polynomial.low,
            high: function.polynomial.high,
        });
        let refreshed = graph.outputs().iter().filter_map(|(output, id)| {
            let node = graph.node(*id);
            let bound = node
                .bound
                .filter(|_| *output == witness_name(&refresh_site(&node.name)))?;
            Some(Witness {
                output: output.clone(),
                site: refresh_site(&node.name),
                layout: node.layout,
                tokens: graph.tokens(),
                low: -bound,
                high: bound,
            })
        });
        arguments.chain(refreshed).collect()
    }
}

/// Name of the output that shows the argument of a node's polynomial, or a refreshed value.
pub(super) fn witness_name(node: &str) -> String {
    format!("{WITNESS}.{node}")
}

/// The arguments of all polynomials, under the names of their outputs.
pub(super) fn witness_nodes(graph: &Graph) -> Vec<(String, NodeId)> {
    let polynomials = graph
        .nodes()
        .iter()
        .filter(|node| matches!(node.op, Op::Polynomial(_)));
    polynomials
        .map(|node| (witness_name(&node.name), node.inputs[0]))
        .collect()
}
