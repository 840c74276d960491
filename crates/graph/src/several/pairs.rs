//! Products between all pairs of tokens: scores and weighted values, slot by slot.
//!
//! Turned by `s`, a cached value brings token `j` the cached token `(j + s) mod T`: two rotations, of which each serves the tokens on its side of
//! the border. Channels are split into a few classes by their number modulo `m`, so that one ciphertext meets `m` turned ones at a time.

use super::{PairScores, PairValues, SideBySide};
use crate::lower::{doubling, fold};
use crate::{Heads, Layout, Machine, Plain, PlainId, Vector};
use std::ops::Range;

/// Classes of channels, where there are as many parts: more take more products between ciphertexts, fewer more products with masks.
const CLASSES: usize = 4;

/// Products that are summed before they are relinearized: with more, more turned values are held at a time.
pub(super) const SUMMED: usize = 32;

/// Rotations of a value by up to T - 1 tokens to either side.
struct Shifted<V> {
    tokens: usize,
    /// By 0, by 1 to T - 1, and by 1 - T to -1.
    values: Vec<V>,
}

impl<V: Clone> Shifted<V> {
    fn new<M: Machine<Value = V>>(machine: &mut M, x: &V, tokens: usize) -> Result<Self, M::Error> {
        let tokens_ahead = tokens as i64;
        let steps: Vec<i64> = (1..tokens_ahead).chain(1 - tokens_ahead..0).collect();
        let mut values = vec![x.clone()];
        values.extend(machine.rotate_many(x, &steps)?);
        Ok(Shifted { tokens, values })
    }

    /// What a turn takes: rotations, and the tokens that each serves.
    fn turned(&self, turn: usize) -> impl Iterator<Item = (&V, Range<usize>)> {
        let border = self.tokens - turn;
        let ahead = (&self.values[turn], 0..border);
        // The rotation by turn - T is turn places after the last to the left.
        let back = (turn > 0).then(|| (&self.values[self.tokens + turn - 1], border..self.tokens));
        std::iter::once(ahead).chain(back)
    }
}

/// One for these tokens at the channels of a class, of runs of `stride` slots for each channel; zero elsewhere.
fn class_mask(
    stride: usize,
    tokens: &Range<usize>,
    of: usize,
    class: usize,
    classes: usize,
) -> Plain {
    let id = PlainId::of((
        "class",
        stride,
        tokens.start,
        tokens.end,
        of,
        class,
        classes,
    ));
    let tokens = tokens.clone();
    Plain::new(id, classes * stride, move |out| {
        let runs = out[class * stride..][..stride].chunks_mut(of);
        runs.for_each(|run| run[tokens.clone()].fill(1.0));
    })
}

/// The value one level down, where there is nothing to mask.
fn lowered<M: Machine>(machine: &mut M, x: &M::Value) -> Result<M::Value, M::Error> {
    let level = machine.level(x);
    machine.drop_to(x, level.after(1).unwrap_or(level))
}

/// Scores of pairs of tokens.
///
/// Part `p` of the `P` parts, a number and a query, comes to the channels `c = p mod P`. Queries are masked to the channels `c = b mod m` for every
/// `b`, so that `m` parts can be summed before they are relinearized: `Y_k` takes of part `p` the channels `c = p + k mod m`, and the sum of
/// the `Y_k`, rotated by `k` channels, has each of them at its class. These sums are collected as the parts of scores of one token, each summed
/// over the first few of its channels before its masks where there are many; the masks leave out what a token does not meet.
pub(super) fn pair_scores<M: Machine>(
    machine: &mut M,
    scores: &PairScores,
    inputs: &[&M::Value],
) -> Result<M::Value, M::Error> {
    let (pairs, tokens) = (&scores.pairs, scores.tokens());
    let (parts, count) = (pairs.parts(), pairs.queries());
    let classes = CLASSES.min(parts);
    let stride = pairs.channel_stride() * tokens;
    let (queries, keys) = inputs.split_at(count);
    let mut masked = Vec::with_capacity(count * classes);
    for query in queries {
        for class in 0..classes {
            masked.push(match classes {
                1 => lowered(machine, query)?,
                _ => {
                    let mask = class_mask(stride, &(0..1), 1, class, classes);
                    machine.mul_plain(query, &mask)?
                }
            });
        }
    }

    let (collected, unit) = (parts / classes, classes * stride);
    let presummed = (collected / 8).max(1);
    let mut sums: Vec<(usize, M::Value)> = Vec::with_capacity(collected);
    let mut ready: Vec<(usize, M::Value)> = Vec::with_capacity(classes);
    for (key, group) in keys.iter().zip(scores.given()) {
        let shifted = Shifted::new(machine, key, tokens)?;
        let numbers = (0..pairs.groups()).filter(|&number| scores.turned(number).0 == group);
        for number in numbers {
            let turned = turned_key(machine, &shifted, scores.turned(number).1)?;
            for query in 0..count {
                let key = match scores.shifts.get(query) {
                    Some(shift) => shifted_key(machine, pairs, tokens, &turned, shift)?,
                    None => turned.clone(),
                };
                let part = number * count + query;
                ready.push((part, key));
                // The numbers in use end with a whole group, which may be fewer parts than there are classes.
                if part % classes + 1 == classes {
                    let sum = summed(machine, &masked, &ready, (classes, count, stride))?;
                    let sum = fold(machine, sum, doubling(unit, unit * presummed))?;
                    sums.push((part / classes, sum));
                    ready.clear();
                }
            }
        }
    }
    if let Some((part, _)) = ready.first() {
        let number = part / classes;
        let sum = summed(machine, &masked, &ready, (classes, count, stride))?;
        sums.push((
            number,
            fold(machine, sum, doubling(unit, unit * presummed))?,
        ));
    }

    let mut sum: Option<M::Value> = None;
    for r in (0..collected).step_by(presummed) {
        let masked: Vec<_> = (sums.iter())
            .map(|(number, value)| {
                let place = (number + r) % collected;
                (value, pair_mask(scores, classes, *number, place))
            })
            .collect();
        let summand = machine.dot_plain(&masked)?;
        sum = Some(match sum {
            None => summand,
            Some(sum) => {
                let turned = machine.rotate(&summand, (r * unit) as i64)?;
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

fn turned_key<M: Machine>(
    machine: &mut M,
    shifted: &Shifted<M::Value>,
    turn: usize,
) -> Result<M::Value, M::Error> {
    if turn == 0 {
        return lowered(machine, &shifted.values[0]);
    }
    let masked: Vec<_> = (shifted.turned(turn))
        .map(|(value, served)| {
            (
                value,
                class_mask(shifted.tokens, &served, shifted.tokens, 0, 1),
            )
        })
        .collect();
    machine.dot_plain(&masked)
}

/// What a token does not meet is masked after the product, so that the shift may be added everywhere.
fn shifted_key<M: Machine>(
    machine: &mut M,
    pairs: &Heads,
    tokens: usize,
    key: &M::Value,
    shift: &[f64],
) -> Result<M::Value, M::Error> {
    let plain =
        Layout::repeated(pairs.width(), pairs.lanes()).plain(&Vector::from(shift.to_vec()), 0.0);
    SideBySide::new(machine, tokens).add_plain(key, &plain)
}

/// The products of neighbouring parts with their queries, of every part at the channels of its class.
fn summed<M: Machine>(
    machine: &mut M,
    masked: &[M::Value],
    keys: &[(usize, M::Value)],
    (classes, queries, stride): (usize, usize, usize),
) -> Result<M::Value, M::Error> {
    let mut sum: Option<M::Value> = None;
    for k in 0..classes {
        let products: Vec<_> = (keys.iter())
            .map(|(part, key)| {
                let class = (part + k) % classes;
                (&masked[part % queries * classes + class], key)
            })
            .collect();
        let product = machine.dot(&products)?;
        sum = Some(match sum {
            None => product,
            Some(sum) => {
                let turned = machine.rotate(&product, (k * stride) as i64)?;
                machine.add(&sum, &turned)?
            }
        });
    }
    Ok(sum.expect("there is at least one class"))
}

/// One for the pairs of neighbouring parts that meet, at the channels of one place; zero elsewhere.
fn pair_mask(scores: &PairScores, classes: usize, neighbours: usize, place: usize) -> Plain {
    let (pairs, tokens) = (scores.pairs, scores.tokens());
    let stride = pairs.channel_stride() * tokens;
    let period = pairs.parts() * stride;
    let unit = classes * stride;
    let meets = move |scores: &PairScores, slot: usize| {
        let number = (neighbours * classes + slot / stride) / pairs.queries();
        let (lane, j) = (slot / tokens % pairs.lanes(), slot % tokens);
        scores.meets(number, lane, j)
    };
    if (0..unit).all(|slot| meets(scores, slot)) {
        let id = PlainId::of(("pair mask", period, unit, place));
        return Plain::new(id, period, move |out| out[place * unit..][..unit].fill(1.0));
    }
    let id = PlainId::of((
        "pair mask",
        (pairs, scores.first, classes, neighbours, place),
        &scores.positions,
    ));
    let scores = scores.clone();
    Plain::new(id, period, move |out| {
        for (slot, out) in out[place * unit..][..unit].iter_mut().enumerate() {
            *out = f64::from(u8::from(meets(&scores, slot)));
        }
    })
}

/// Values weighted by exponentials of pairs.
///
/// A number's exponentials sit at one channel in `N`, for `N` numbers (a channel of every query of a head, which stay apart). They are masked `m`
/// neighbouring numbers at a time and spread over the channels, so that channel `c` has number `c mod m`; rotated by `k` channels, they meet
/// values that have at channel `c` what number `c + k mod m` meets.
pub(super) fn weighted<M: Machine>(
    machine: &mut M,
    values: &PairValues,
    tokens: usize,
    inputs: &[&M::Value],
) -> Result<M::Value, M::Error> {
    let pairs = &values.pairs;
    let numbers = pairs.groups();
    let classes = CLASSES.min(numbers);
    let unit = pairs.channel_stride() * pairs.queries() * tokens;
    let (weights, groups) = inputs.split_at(values.parts);
    let turns: Vec<i64> = (1..classes as i64).map(|k| k * unit as i64).collect();
    let mut sum: Option<M::Value> = None;
    for (part, weights) in weights.iter().enumerate() {
        let known = |number: usize| values.turned(part, number, tokens);
        let first = part * numbers / tokens;
        let last = ((part + 1) * numbers).div_ceil(tokens).min(values.groups);
        let shifted = (groups[first..last].iter())
            .map(|group| Shifted::new(machine, group, tokens))
            .collect::<Result<Vec<_>, _>>()?;
        let mut products: Vec<(M::Value, M::Value)> = Vec::new();
        for neighbours in (0..numbers).step_by(classes) {
            if known(neighbours).is_none() {
                break;
            }
            let own = spread(machine, weights, (numbers, classes, neighbours), unit)?;
            let mut turned = vec![own.clone()];
            if !turns.is_empty() {
                turned.extend(machine.rotate_many(&own, &turns)?);
            }
            for (k, weights) in turned.into_iter().enumerate() {
                let mut met = Vec::new();
                for i in 0..classes {
                    let Some((group, turn)) = known(neighbours + i) else {
                        continue;
                    };
                    let class = (i + classes - k) % classes;
                    for (value, served) in shifted[group - first].turned(turn) {
                        met.push((value, class_mask(unit, &served, tokens, class, classes)));
                    }
                }
                products.push((weights, machine.dot_plain(&met)?));
            }
            if products.len() >= SUMMED {
                add_products(machine, &mut sum, &mut products)?;
            }
        }
        add_products(machine, &mut sum, &mut products)?;
    }
    let sum = sum.expect("there is at least one number");
    let lanes = doubling(tokens, tokens * pairs.lanes());
    fold(machine, sum, lanes)
}

/// The exponentials of some neighbouring numbers, at all channels of their classes.
fn spread<M: Machine>(
    machine: &mut M,
    weights: &M::Value,
    (numbers, classes, neighbours): (usize, usize, usize),
    unit: usize,
) -> Result<M::Value, M::Error> {
    if classes == numbers {
        return lowered(machine, weights);
    }
    let id = PlainId::of(("neighbours", numbers, classes, neighbours, unit));
    let mask = Plain::new(id, numbers * unit, move |out| {
        out[neighbours * unit..][..classes * unit].fill(1.0);
    });
    let masked = machine.mul_plain(weights, &mask)?;
    let steps = doubling(classes * unit, numbers * unit).map(|step| -step);
    fold(machine, masked, steps)
}

/// Adds the sum of products, relinearized as a whole.
fn add_products<M: Machine>(
    machine: &mut M,
    sum: &mut Option<M::Value>,
    products: &mut Vec<(M::Value, M::Value)>,
) -> Result<(), M::Error> {
    if products.is_empty() {
        return Ok(());
    }
    let pairs: Vec<_> = products.iter().map(|(a, b)| (a, b)).collect();
    let product = machine.dot(&pairs)?;
    *sum = Some(match sum.take() {
        None => product,
        Some(sum) => machine.add(&sum, &product)?,
    });
    products.clear();
    Ok(())
}
