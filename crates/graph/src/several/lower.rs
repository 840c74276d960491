//! Lowering of graphs of several tokens.

use super::{PairScores, SeveralOp, SideBySide, entry};
use crate::lower::{doubling, fold, lower_one};
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
        SeveralOp::Shift { by } => machine.rotate(inputs[0], *by),
        SeveralOp::Turn { by } => {
            let border = tokens - by;
            let ahead = tokens_mask(tokens, 0..border);
            let back = tokens_mask(tokens, border..tokens);
            machine.dot_plain(&[(inputs[0], ahead), (inputs[1], back)])
        }
        SeveralOp::Stagger {
            pairs,
            groups,
            number,
        } => {
            let masked: Vec<_> = (shifts(tokens).zip(inputs))
                .map(|(shift, input)| {
                    (*input, stagger_mask(pairs, *groups, *number, tokens, shift))
                })
                .collect();
            machine.dot_plain(&masked)
        }
        SeveralOp::Scores(scores) => pair_scores(machine, scores, inputs),
    }
}

/// In the order in which [`SeveralOp::Stagger`] takes them.
pub(crate) fn shifts(tokens: usize) -> impl Iterator<Item = i64> {
    (0..tokens as i64).chain(1 - tokens as i64..0)
}

/// One for these tokens, zero for the others.
fn tokens_mask(tokens: usize, chosen: std::ops::Range<usize>) -> Plain {
    let id = PlainId::of(("tokens mask", tokens, chosen.start, chosen.end));
    Plain::new(id, tokens, move |out| out[chosen.clone()].fill(1.0))
}

/// Which slots of a shifted member go to number `number`: those of channels whose turn the shift is, where it does not leave the run of tokens.
fn stagger_mask(pairs: &Heads, groups: usize, number: usize, tokens: usize, shift: i64) -> Plain {
    let id = PlainId::of(("stagger", pairs, groups, number, tokens, shift));
    let pairs = *pairs;
    let stride = pairs.channel_stride() * tokens;
    // The mask repeats with the numbers.
    let channels = (pairs.groups() * pairs.queries()).min(pairs.channels());
    Plain::new(id, channels * stride, move |out| {
        for (channel, out) in out.chunks_mut(stride).enumerate() {
            let turn = (pairs.value_group(channel, number) / groups) as i64;
            let chosen = match shift {
                _ if shift == turn => 0..(tokens as i64 - turn) as usize,
                _ if shift == turn - tokens as i64 => (tokens as i64 - turn) as usize..tokens,
                _ => continue,
            };
            out.chunks_mut(tokens)
                .for_each(|run| run[chosen.clone()].fill(1.0));
        }
    })
}

/// As the scores of one token, with masks that leave out what a token does not meet.
///
/// Where there are many parts, every product is summed over the first few channels before its masks, so that fewer summands are masked.
fn pair_scores<M: Machine>(
    machine: &mut M,
    scores: &PairScores,
    inputs: &[&M::Value],
) -> Result<M::Value, M::Error> {
    let pairs = &scores.pairs;
    let (parts, queries) = (pairs.parts(), pairs.queries());
    let stride = pairs.channel_stride() * scores.positions.len();
    let presummed = (parts / 8).max(1);
    let (query, keys) = inputs.split_at(queries);
    let mut products = Vec::with_capacity(keys.len());
    for (i, key) in keys.iter().enumerate() {
        let product = machine.mul(query[i % queries], key)?;
        let summed = fold(machine, product, doubling(stride, stride * presummed))?;
        products.push((scores.numbers[i / queries] * queries + i % queries, summed));
    }
    let mut sum: Option<M::Value> = None;
    for r in (0..parts).step_by(presummed) {
        let masked: Vec<_> = products
            .iter()
            .map(|(part, product)| (product, pair_mask(scores, *part, (part + r) % parts)))
            .collect();
        let summand = machine.dot_plain(&masked)?;
        sum = Some(match sum {
            None => summand,
            Some(sum) => {
                let turned = machine.rotate(&summand, (r * stride) as i64)?;
                machine.add(&sum, &turned)?
            }
        });
    }
    let sum = sum.expect("there is at least one part");
    fold(
        machine,
        sum,
        doubling(stride * parts, stride * pairs.channels()),
    )
}

/// One for the pairs of a part that meet, at the channels `c = place mod P`; zero elsewhere.
fn pair_mask(scores: &PairScores, part: usize, place: usize) -> Plain {
    let (pairs, tokens) = (scores.pairs, scores.positions.len());
    let stride = pairs.channel_stride() * tokens;
    let period = pairs.parts() * stride;
    let number = part / pairs.queries();
    if scores.meets_all(number) {
        let id = PlainId::of(("pair mask", period, stride, place));
        return Plain::new(id, period, move |out| {
            out[place * stride..][..stride].fill(1.0);
        });
    }
    let id = PlainId::of((
        "pair mask",
        (pairs, scores.groups, number, place),
        &scores.positions,
    ));
    let scores = scores.clone();
    Plain::new(id, period, move |out| {
        for (slot, out) in out[place * stride..][..stride].iter_mut().enumerate() {
            let (lane, j) = (slot / tokens % pairs.lanes(), slot % tokens);
            *out = f64::from(u8::from(scores.meets(number, lane, j)));
        }
    })
}
