//! The logical meaning of every operation, on compact vectors without slots.

use crate::{Heads, NonLinear, Op};

/// Which non-linear functions are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fidelity {
    /// The exact ones: the clear reference.
    Exact,
    /// Their polynomials: what an encrypted run computes, noise apart.
    Polynomial,
}

impl Fidelity {
    /// The function's value as meant.
    pub fn evaluate(self, nonlinear: &NonLinear, u: f64) -> f64 {
        match self {
            Fidelity::Exact => nonlinear.function.evaluate(u),
            Fidelity::Polynomial => nonlinear.polynomial.evaluate(u),
        }
    }
}

impl Fidelity {
    /// The value after squarings that follow the function.
    pub(crate) fn image(self, function: &NonLinear, squarings: u32, at: f64) -> f64 {
        (0..squarings).fold(self.evaluate(function, at), |value, _| value * value)
    }
}

/// The logical entries of an operation's result from those of its inputs.
///
/// # Panics
/// On input nodes, which are not computed.
pub(crate) fn evaluate(op: &Op, inputs: &[&[f64]], fidelity: Fidelity) -> Vec<f64> {
    let x = *inputs.first().expect("input nodes are not evaluated");
    let map = |f: &dyn Fn(usize, f64) -> f64| x.iter().enumerate().map(|(i, &x)| f(i, x)).collect();
    match op {
        Op::Input { .. } => unreachable!("input nodes have no inputs"),
        Op::Add => zip(x, inputs[1], |a, b| a + b),
        Op::Sub => zip(x, inputs[1], |a, b| a - b),
        Op::Mul => zip(x, inputs[1], |a, b| a * b),
        Op::Square => map(&|_, x| x * x),
        Op::AddPlain { vector, .. } => map(&|i, x| x + vector.at(i)),
        Op::MulPlain { vector } => map(&|i, x| x * vector.at(i)),
        Op::SumEntries { left } => {
            let mut sums = vec![0.0; *left];
            x.iter().enumerate().for_each(|(i, x)| sums[i % left] += x);
            sums
        }
        Op::Turn { by } => map(&|i, _| x[(i + by) % x.len()]),
        Op::Select { of, which } => x.iter().skip(*which).step_by(*of).copied().collect(),
        Op::Interleave => (0..x.len())
            .flat_map(|i| inputs.iter().map(move |value| value[i]))
            .collect(),
        Op::Polynomial(nonlinear) => map(&|_, x| fidelity.evaluate(nonlinear, x)),
        Op::SubtractImage {
            function,
            squarings,
            at,
            counts,
        } => {
            let image = fidelity.image(function, *squarings, *at);
            map(&|i, x| x - counts.at(i) * image)
        }
        Op::ProductSpaced { matrix, .. } | Op::ProductPeriodic { matrix } => matrix.apply(x),
        Op::Repeat => x.to_vec(),
        // How often each entry occurs is in the layouts: see `flatten`.
        Op::Flatten => unreachable!("flattening needs the run"),
        Op::Rope { cos, sin } => map(&|i, x| x * cos.at(i) + inputs[1][i] * sin.at(i)),
        // The cache has a run of lanes per entry; the value that comes is zero elsewhere, and which of the lanes it goes
        // to is in its layout: see `append`.
        Op::Append { .. } => unreachable!("appending needs the lane"),
        Op::Scores(heads) => scores(heads, inputs),
        Op::SumTokens(heads) => {
            let mut sums = vec![0.0; heads.heads() * heads.queries()];
            for (i, value) in inputs.iter().flat_map(|input| input.iter().enumerate()) {
                sums[i / heads.lanes() % (heads.heads() * heads.queries())] += value;
            }
            sums
        }
        Op::Several(_) => unreachable!("evaluated where tokens are"),
        Op::WeightedValues(heads) => weighted_values(heads, x, &inputs[1..]),
    }
}

/// A cache's member after `x` was added at `lane` of runs of `run` slots.
pub(crate) fn append(x: &[f64], cache: Option<&[f64]>, run: usize, lane: usize) -> Vec<f64> {
    let mut cache = cache.map_or_else(|| vec![0.0; x.len() * run], <[f64]>::to_vec);
    for (i, x) in x.iter().enumerate() {
        cache[i * run + lane] += x;
    }
    cache
}

/// Every entry `run` times in a row.
pub(crate) fn flatten(x: &[f64], run: usize) -> Vec<f64> {
    x.iter()
        .flat_map(|&x| std::iter::repeat_n(x, run))
        .collect()
}

fn zip(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    (0..a.len().max(b.len()))
        .map(|i| f(a[i % a.len()], b[i % b.len()]))
        .collect()
}

fn scores(heads: &Heads, inputs: &[&[f64]]) -> Vec<f64> {
    let (lanes, stride) = (heads.lanes(), heads.channel_stride());
    let (queries, keys) = inputs.split_at(heads.queries());
    let mut scores = vec![0.0; heads.parts() * stride];
    let pairs = queries.iter().cycle().zip(keys);
    for ((query, key), scores) in pairs.zip(scores.chunks_mut(stride)) {
        for (query, key) in query.chunks(heads.heads()).zip(key.chunks(stride)) {
            for (i, score) in scores.iter_mut().enumerate() {
                *score += query[i / lanes] * key[i];
            }
        }
    }
    scores
}

fn weighted_values(heads: &Heads, weights: &[f64], values: &[&[f64]]) -> Vec<f64> {
    let (lanes, stride) = (heads.lanes(), heads.channel_stride());
    let queries = heads.queries();
    let mut sums = vec![0.0; heads.width()];
    for (s, values) in values.iter().enumerate() {
        for (c, values) in values.chunks(stride).enumerate() {
            let part = heads.value_group(c, s) * queries + c % queries;
            let weights = &weights[part * stride..][..stride];
            for (i, (weight, value)) in weights.iter().zip(values).enumerate() {
                sums[c * heads.heads() + i / lanes] += weight * value;
            }
        }
    }
    sums
}
