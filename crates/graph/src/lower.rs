//! Lowering: every semantic operation as operations of a slot machine (packing follows the layouts of [`crate::Layout`]).

mod product;

use crate::approximations::on_unit;
use crate::semantics::Fidelity;
use crate::several::lower_several;
use crate::{Graph, Heads, Layout, Machine, Node, Op, Plain, PlainId, Vector, is_unit_interval};
pub use product::weight_diagonals;
pub(crate) use product::{product_periodic, product_spaced};

/// Computes one node from its inputs, all at one level of at least [`Op::depth`]; the result is that many levels lower.
///
/// # Panics
/// On input nodes, which are not computed.
pub fn lower<M: Machine>(
    graph: &Graph,
    node: &Node,
    machine: &mut M,
    inputs: &[&M::Value],
) -> Result<M::Value, M::Error> {
    match graph.tokens() {
        1 => lower_one(graph, node, machine, inputs),
        _ => lower_several(graph, node, machine, inputs),
    }
}

/// As [`lower`] for one token, on the machine that the layouts are about.
pub(crate) fn lower_one<M: Machine>(
    graph: &Graph,
    node: &Node,
    machine: &mut M,
    inputs: &[&M::Value],
) -> Result<M::Value, M::Error> {
    let layout = |i: usize| graph.node(node.inputs[i]).layout;
    let x = *inputs.first().expect("input nodes are not lowered");
    match &node.op {
        Op::Input { .. } => unreachable!("input nodes have no inputs"),
        Op::Add => machine.add(x, inputs[1]),
        Op::Sub => machine.sub(x, inputs[1]),
        Op::Mul => machine.mul(x, inputs[1]),
        Op::Square => machine.square(x),
        Op::AddPlain { vector, elsewhere } => {
            machine.add_plain(x, &layout(0).plain(vector, *elsewhere))
        }
        Op::MulPlain {
            vector: Vector::Uniform(constant),
        } if layout(0).is_full() => machine.mul_constant(x, *constant),
        Op::MulPlain { vector } => machine.mul_plain(x, &layout(0).plain(vector, 0.0)),
        Op::SumEntries { left } => {
            let Layout { values, run, .. } = layout(0);
            fold(machine, x.clone(), doubling(left * run, values * run))
        }
        Op::Turn { by } => machine.rotate(x, (by * layout(0).run) as i64),
        Op::Select { .. } => Ok(x.clone()),
        Op::Interleave => {
            let lanes = layout(0).run / inputs.len();
            let mut sum = x.clone();
            for (k, value) in inputs.iter().enumerate().skip(1) {
                let turned = machine.rotate(value, -((k * lanes) as i64))?;
                sum = machine.add(&sum, &turned)?;
            }
            Ok(sum)
        }
        Op::Polynomial(nonlinear) if is_unit_interval(&nonlinear.polynomial) => {
            on_unit(machine, x, &nonlinear.polynomial)
        }
        Op::Polynomial(nonlinear) => machine.polynomial(x, &nonlinear.polynomial),
        Op::SubtractImage {
            function,
            squarings,
            at,
            counts,
        } => {
            let image = Fidelity::Polynomial.image(function, *squarings, *at);
            let known = (0..counts.entries())
                .map(|i| -image * counts.at(i))
                .collect::<Vec<_>>();
            let known = match counts {
                Vector::Uniform(_) => Vector::Uniform(known[0]),
                Vector::Dense(_) => known.into(),
            };
            machine.add_plain(x, &layout(0).plain(&known, 0.0))
        }
        Op::ProductSpaced { matrix, lane } => product_spaced(machine, x, matrix, *lane),
        Op::ProductPeriodic { matrix } => product_periodic(machine, x, matrix),
        Op::Repeat => {
            let lane = layout(0).lane().unwrap_or(0);
            // Each step doubles the filled lanes, to the side where the run still has room.
            let steps = doubling(1, layout(0).run)
                .map(|step| if lane as i64 & step == 0 { -step } else { step });
            fold(machine, x.clone(), steps)
        }
        Op::Flatten => Ok(x.clone()),
        Op::Rope { cos, sin } => {
            let (cos, sin) = (layout(0).plain(cos, 0.0), layout(0).plain(sin, 0.0));
            machine.dot_plain(&[(x, cos), (inputs[1], sin)])
        }
        Op::Append { .. } => match inputs {
            [x, cache] => machine.add(cache, x),
            _ => Ok(x.clone()),
        },
        Op::Scores(heads) => scores(machine, heads, inputs),
        Op::SumTokens(heads) => {
            let stride = heads.channel_stride();
            let mut sum = x.clone();
            for further in &inputs[1..] {
                sum = machine.add(&sum, further)?;
            }
            let groups = doubling(stride * heads.queries(), stride * heads.parts());
            let sum = fold(machine, sum, groups)?;
            fold(machine, sum, doubling(1, heads.lanes()))
        }
        Op::Several(_) => unreachable!("lowered where tokens are"),
        Op::WeightedValues(heads) => {
            let stride = (heads.channel_stride() * heads.queries()) as i64;
            let steps: Vec<i64> = (1..heads.groups() as i64).map(|s| s * stride).collect();
            let turned = if steps.is_empty() {
                Vec::new()
            } else {
                machine.rotate_many(x, &steps)?
            };
            let pairs: Vec<_> = std::iter::once(x)
                .chain(&turned)
                .zip(inputs[1..].iter().copied())
                .collect();
            let sum = machine.dot(&pairs)?;
            fold(machine, sum, doubling(1, heads.lanes()))
        }
    }
}

/// `from, 2 from, 4 from, ...` below `to`.
pub(crate) fn doubling(from: usize, to: usize) -> impl Iterator<Item = i64> {
    std::iter::successors(Some(from), |step| Some(2 * step))
        .take_while(move |&step| step < to)
        .map(|step| step as i64)
}

/// `a = a + rot(a, step)` for every step.
pub(crate) fn fold<M: Machine>(
    machine: &mut M,
    mut a: M::Value,
    steps: impl Iterator<Item = i64>,
) -> Result<M::Value, M::Error> {
    for step in steps {
        let turned = machine.rotate(&a, step)?;
        a = machine.add(&a, &turned)?;
    }
    Ok(a)
}

fn scores<M: Machine>(
    machine: &mut M,
    heads: &Heads,
    inputs: &[&M::Value],
) -> Result<M::Value, M::Error> {
    let (stride, parts) = (heads.channel_stride(), heads.parts());
    let (queries, keys) = inputs.split_at(heads.queries());
    let mut products = Vec::with_capacity(keys.len());
    for (query, key) in queries.iter().cycle().zip(keys) {
        products.push(machine.mul(query, key)?);
    }
    if parts == 1 {
        return fold(
            machine,
            products.swap_remove(0),
            doubling(stride, stride * heads.channels()),
        );
    }
    // Channel c of the result takes part p = c mod P. Summand r takes the products of every part from channels c = p + r mod P, so that
    // one rotation by r channels brings them where they belong. The channels that are left, P apart, are summed for all parts at
    // once: P - 1 + log2(C / P) rotations instead of P * log2(C).
    let mut sum: Option<M::Value> = None;
    for r in 0..parts {
        let masked: Vec<_> = products
            .iter()
            .enumerate()
            .map(|(part, product)| (product, part_mask(heads, (part + r) % parts)))
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
        doubling(stride * parts, stride * heads.channels()),
    )
}

/// One at the channels `c = part mod P`, zero at the others.
fn part_mask(heads: &Heads, part: usize) -> Plain {
    let Layout { values: period, .. } = heads.scores();
    let stride = heads.channel_stride();
    Plain::new(
        PlainId::of(("part mask", period, stride, part)),
        period,
        move |out| {
            out[part * stride..][..stride].fill(1.0);
        },
    )
}
