//! The logical meaning of operations on several tokens: entry `i` of token `j` at `i * tokens + j`.

use super::{PairScores, PairValues, SeveralOp, entry};
use crate::semantics::{self, append, flatten};
use crate::{Fidelity, Graph, Node, Op, Vector};

/// The entries of a node's result from those of its inputs.
pub(crate) fn evaluate(
    graph: &Graph,
    node: &Node,
    inputs: &[&[f64]],
    fidelity: Fidelity,
) -> Vec<f64> {
    let tokens = graph.tokens();
    if let Op::Several(op) = &node.op {
        return mixed(op, tokens, inputs);
    }
    let layout = graph.node(node.inputs[0]).layout;
    let values = node.layout.values;
    let mut out = vec![0.0; values * tokens];
    for j in 0..tokens {
        let own: Vec<Vec<f64>> = inputs
            .iter()
            .map(|input| input.iter().skip(j).step_by(tokens).copied().collect())
            .collect();
        let own: Vec<&[f64]> = own.iter().map(Vec::as_slice).collect();
        let result = match &node.op {
            Op::Append { .. } => append(
                own[0],
                own.get(1).copied(),
                layout.run,
                layout.lane().unwrap_or(0),
            ),
            Op::Flatten => flatten(own[0], layout.run),
            op => semantics::evaluate(&of_token(op, layout.values, tokens, j), &own, fidelity),
        };
        let places = out.iter_mut().skip(j).step_by(tokens);
        places.zip(result).for_each(|(out, value)| *out = value);
    }
    out
}

/// The operation with the entries of one token in its vectors.
fn of_token(op: &Op, values: usize, tokens: usize, j: usize) -> Op {
    let own = |vector: &Vector| -> Vector {
        match vector {
            Vector::Uniform(_) => vector.clone(),
            Vector::Dense(_) => (0..values)
                .map(|i| entry(vector, values, tokens, i, j))
                .collect::<Vec<_>>()
                .into(),
        }
    };
    match op {
        Op::AddPlain { vector, elsewhere } => Op::AddPlain {
            vector: own(vector),
            elsewhere: *elsewhere,
        },
        Op::MulPlain { vector } => Op::MulPlain {
            vector: own(vector),
        },
        Op::SubtractImage {
            function,
            squarings,
            at,
            counts,
        } => Op::SubtractImage {
            function: function.clone(),
            squarings: *squarings,
            at: *at,
            counts: own(counts),
        },
        Op::Rope { cos, sin } => Op::Rope {
            cos: own(cos),
            sin: own(sin),
        },
        other => other.clone(),
    }
}

fn mixed(op: &SeveralOp, tokens: usize, inputs: &[&[f64]]) -> Vec<f64> {
    match op {
        SeveralOp::Group { heads, group } => {
            let run = heads.channel_stride() * tokens;
            (0..inputs[0].len())
                .map(|slot| inputs[heads.value_member(slot / run, *group)][slot])
                .collect()
        }
        SeveralOp::Scores(scores) => pair_scores(scores, inputs),
        SeveralOp::Weighted(values) => weighted(values, tokens, inputs),
    }
}

fn pair_scores(scores: &PairScores, inputs: &[&[f64]]) -> Vec<f64> {
    let (pairs, tokens) = (&scores.pairs, scores.tokens());
    let (lanes, stride, count) = (pairs.lanes(), pairs.channel_stride(), pairs.queries());
    let (queries, keys) = inputs.split_at(count);
    let mut out = vec![0.0; pairs.scores().values * tokens];
    for part in 0..pairs.parts() {
        let (number, query) = (part / count, part % count);
        let (group, turn) = scores.turned(number);
        let Some(key) = group
            .checked_sub(scores.given().start)
            .and_then(|g| keys.get(g))
        else {
            continue;
        };
        for i in 0..pairs.channels() * stride {
            let (channel, within) = (i / stride, i % stride);
            let entry = channel * pairs.heads() + within / lanes;
            let shift = scores.shifts.get(query).map_or(0.0, |shift| shift[entry]);
            for j in (0..tokens).filter(|&j| scores.meets(number, within % lanes, j)) {
                let key = key[i * tokens + (j + turn) % tokens] + shift;
                out[(part * stride + within) * tokens + j] +=
                    queries[query][entry * tokens + j] * key;
            }
        }
    }
    out
}

fn weighted(values: &PairValues, tokens: usize, inputs: &[&[f64]]) -> Vec<f64> {
    let pairs = &values.pairs;
    let (lanes, stride, queries) = (pairs.lanes(), pairs.channel_stride(), pairs.queries());
    let (weights, groups) = inputs.split_at(values.parts);
    let mut sums = vec![0.0; pairs.width() * tokens];
    for (part, weights) in weights.iter().enumerate() {
        for number in 0..pairs.groups() {
            let Some((group, turn)) = values.turned(part, number, tokens) else {
                continue;
            };
            for i in 0..pairs.channels() * stride {
                let (channel, within) = (i / stride, i % stride);
                let weight = (number * queries + channel % queries) * stride + within;
                for j in 0..tokens {
                    sums[(channel * pairs.heads() + within / lanes) * tokens + j] += weights
                        [weight * tokens + j]
                        * groups[group][i * tokens + (j + turn) % tokens];
                }
            }
        }
    }
    sums
}
