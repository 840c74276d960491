//! What a node's cost, keys and levels depend on: everything about its operation but the numbers in it.

use crate::{Graph, Heads, Layout, Node, Op, Vector, is_unit_interval};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Two nodes of one shape cost the same at every level and rotate by the same steps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    kind: &'static str,
    /// Entries, run and lane of the result and of the inputs.
    layouts: Vec<(usize, usize, Option<usize>)>,
    sizes: Vec<usize>,
}

impl Shape {
    pub(crate) fn of(graph: &Graph, node: &Node) -> Self {
        let slots = |layout: &Layout| (layout.values, layout.run, layout.lane());
        let heads = |heads: &Heads| {
            let sizes = [
                heads.heads(),
                heads.queries(),
                heads.channels(),
                heads.groups(),
            ];
            sizes.to_vec()
        };
        let uniform = |vector: &Vector| usize::from(matches!(vector, Vector::Uniform(_)));
        let sizes = match &node.op {
            Op::AddPlain { vector, .. } | Op::MulPlain { vector } => vec![uniform(vector)],
            Op::SubtractImage { counts, .. } => vec![uniform(counts)],
            Op::Polynomial(nonlinear) => vec![
                nonlinear.polynomial.degree(),
                usize::from(is_unit_interval(&nonlinear.polynomial)),
            ],
            Op::SumEntries { left } => vec![*left],
            Op::Turn { by } => vec![*by],
            Op::Select { of, which } => vec![*of, *which],
            Op::ProductSpaced { matrix, lane } => vec![matrix.rows(), matrix.columns(), *lane],
            Op::ProductPeriodic { matrix } => vec![matrix.rows(), matrix.columns()],
            Op::Scores(geometry) | Op::SumTokens(geometry) | Op::WeightedValues(geometry) => {
                heads(geometry)
            }
            Op::Several(op) => op.sizes(),
            Op::Input { .. }
            | Op::Add
            | Op::Sub
            | Op::Mul
            | Op::Square
            | Op::Interleave
            | Op::Repeat
            | Op::Flatten
            | Op::Rope { .. }
            | Op::Append { .. } => Vec::new(),
        };
        Shape {
            kind: node.op.kind(),
            layouts: std::iter::once(&node.layout)
                .chain(graph.input_layouts(node).iter())
                .map(slots)
                .collect(),
            sizes,
        }
    }
}

/// Of all that a plan depends on in a graph: names, shapes, connections and bounds of its nodes, as hexadecimal SHA-256. Weights do
/// not enter.
pub(crate) fn structure_hash(graph: &Graph) -> String {
    let mut digest = Sha256::new();
    digest.update(graph.slots().to_le_bytes());
    if graph.tokens() > 1 {
        digest.update(format!("tokens {}\n", graph.tokens()));
    }
    for node in graph.nodes() {
        let inputs: Vec<usize> = node.inputs.iter().map(|id| id.index()).collect();
        let bound = node.bound.map(f64::to_bits);
        let family = node.op.cache_family();
        let shape = Shape::of(graph, node);
        digest.update(format!(
            "{}\0{shape:?}{inputs:?}{bound:?}{family:?}\n",
            node.name
        ));
    }
    hexadecimal(&digest.finalize())
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("writing to a string cannot fail");
        hex
    })
}
