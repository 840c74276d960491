//! The logical meaning of operations on several tokens: entry `i` of token `j` at `i * tokens + j`.

use super::lower::shifts;
use super::{PairScores, SeveralOp, entry};
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
    let x = inputs[0];
    // Entry `i` of the token that a turn brings to token `j`.
    let turned = |x: &[f64], i: usize, j: usize, by: usize| x[i * tokens + (j + by) % tokens];
    match op {
        SeveralOp::Shift { by } => {
            let mut x = x.to_vec();
            let left = by.rem_euclid(x.len() as i64) as usize;
            x.rotate_left(left);
            x
        }
        SeveralOp::Turn { by } => (0..x.len())
            .map(|slot| match slot % tokens + by < tokens {
                true => inputs[0][slot],
                false => inputs[1][slot],
            })
            .collect(),
        SeveralOp::Stagger {
            pairs,
            groups,
            number,
        } => {
            // Shifted by nothing: the member itself.
            debug_assert_eq!(shifts(tokens).next(), Some(0));
            (0..x.len())
                .map(|slot| {
                    let (i, j) = (slot / tokens, slot % tokens);
                    let turn = pairs.value_group(i / pairs.channel_stride(), *number) / groups;
                    turned(x, i, j, turn)
                })
                .collect()
        }
        SeveralOp::Scores(scores) => pair_scores(scores, tokens, inputs),
    }
}

fn pair_scores(scores: &PairScores, tokens: usize, inputs: &[&[f64]]) -> Vec<f64> {
    let pairs = &scores.pairs;
    let (lanes, stride, count) = (pairs.lanes(), pairs.channel_stride(), pairs.queries());
    let (queries, keys) = inputs.split_at(count);
    let mut out = vec![0.0; pairs.scores().values * tokens];
    for (n, key) in keys.iter().enumerate() {
        let (number, query) = (scores.numbers[n / count], queries[n % count]);
        let part = number * count + n % count;
        for (i, key) in key.chunks(tokens).enumerate() {
            let (channel, within) = (i / stride, i % stride);
            let entry = channel * pairs.heads() + within / lanes;
            for j in (0..tokens).filter(|&j| scores.meets(number, within % lanes, j)) {
                out[(part * stride + within) * tokens + j] += query[entry * tokens + j] * key[j];
            }
        }
    }
    out
}
