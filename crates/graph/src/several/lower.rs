//! Lowering of graphs of several tokens.

use super::pairs::{pair_scores, weighted};
use super::{SeveralOp, SideBySide, entry};
use crate::lower::lower_one;
use crate::semantics::Fidelity;
use crate::{Graph, Heads, Lanes, Layout, Machine, Node, Op, Plain, PlainId, Vector};

/// As [`lower`](crate::lower()), for a graph of several tokens.
pub(crate) fn lower_several<M: Machine>(
    graph: &Graph,
    node: &Node,
    machine: &mut M,
    inputs: &[&M::Value],
) -> Result<M::Value, M::Error> {
    let tokens = graph.tokens();
    let layout = graph.node(node.inputs[0]).layout;
    let plain = |vector: &Vector, elsewhere: f64| plain(&layout, tokens, vector, elsewhere);
    let own = |vector: &Vector| vector.entries() != 1 && vector.entries() != layout.values;
    match &node.op {
        Op::AddPlain { vector, elsewhere } if own(vector) => {
            machine.add_plain(inputs[0], &plain(vector, *elsewhere))
        }
        Op::MulPlain { vector } if own(vector) => machine.mul_plain(inputs[0], &plain(vector, 0.0)),
        Op::SubtractImage {
            function,
            squarings,
            at,
            counts,
        } if own(counts) => {
            let image = Fidelity::Polynomial.image(function, *squarings, *at);
            let known: Vec<f64> = (0..counts.entries())
                .map(|i| -image * counts.at(i))
                .collect();
            machine.add_plain(inputs[0], &plain(&known.into(), 0.0))
        }
        Op::Rope { cos, sin } if own(cos) || own(sin) => {
            machine.dot_plain(&[(inputs[0], plain(cos, 0.0)), (inputs[1], plain(sin, 0.0))])
        }
        Op::Several(op) => mixed(op, tokens, machine, inputs),
        _ => lower_one(graph, node, &mut SideBySide::new(machine, tokens), inputs),
    }
}

/// The plaintext of a vector with an entry for each token.
fn plain(layout: &Layout, tokens: usize, vector: &Vector, elsewhere: f64) -> Plain {
    let id = PlainId::of((
        "tokens",
        (layout.values, layout.run, layout.lane(), tokens),
        vector,
        elsewhere.to_bits(),
    ));
    let (layout, vector) = (*layout, vector.clone());
    Plain::new(id, layout.period() * tokens, move |out| {
        for (slot, out) in out.iter_mut().enumerate() {
            let (q, j) = (slot / tokens, slot % tokens);
            let (i, lane) = (q / layout.run, q % layout.run);
            *out = match layout.lanes {
                Lanes::One { lane: valid, .. } if lane != valid => elsewhere,
                _ => entry(&vector, layout.values, tokens, i, j),
            };
        }
    })
}

fn mixed<M: Machine>(
    op: &SeveralOp,
    tokens: usize,
    machine: &mut M,
    inputs: &[&M::Value],
) -> Result<M::Value, M::Error> {
    match op {
        SeveralOp::Group { heads, group } => {
            let masked: Vec<_> = (inputs.iter().enumerate())
                .map(|(member, input)| (*input, group_mask(heads, *group, member, tokens)))
                .collect();
            machine.dot_plain(&masked)
        }
        SeveralOp::Scores(scores) => pair_scores(machine, scores, inputs),
        SeveralOp::Weighted(values) => weighted(machine, values, tokens, inputs),
    }
}

/// The channels at which a member of a value cache holds a group.
fn group_mask(heads: &Heads, group: usize, member: usize, tokens: usize) -> Plain {
    let id = PlainId::of(("group of values", heads, group, member, tokens));
    let heads = *heads;
    let stride = heads.channel_stride() * tokens;
    // Members repeat with the groups.
    let channels = (heads.groups() * heads.queries()).min(heads.channels());
    Plain::new(id, channels * stride, move |out| {
        for (channel, out) in out.chunks_mut(stride).enumerate() {
            if heads.value_member(channel, group) == member {
                out.fill(1.0);
            }
        }
    })
}
