//! Sums of products, reduced once: base conversion and key products.

use super::lanes::*;
use crate::{
    Modulus,
    automorphism::{LANES, MapPart},
    conversion::Target,
};
use std::arch::x86_64::{_mm512_permutexvar_epi64, _mm512_setzero_si512};

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn add_quotient(quotient: &mut [u64], y: &[u64], weight: u64) {
    let weight = splat(weight);
    for (r, y) in groups_mut(quotient).iter_mut().zip(groups(y)) {
        store(r, madd_high(load(r), load(y), weight));
    }
}

/// Registers of accumulators: as many independent sums as hide the multiplier's latency.
const WIDTH: usize = 4;

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn target(p: Modulus, out: &mut [u64], ys: &[&[u64]], target: &Target) {
    let prime = Prime::new(p);
    // Each product adds less than p/4 to the high sum: p < 2^50, and digits and factors are below 2^50 and p.
    let terms = target.factors.len() as u64;
    let bounds: &[u64] = match terms {
        0..=8 => &[2, 1],
        9..=20 => &[4, 2, 1],
        _ => &[16, 8, 4, 2, 1],
    };
    let finish = |low, high| {
        let mut sum = prime.reduce_wide(low, high);
        for &bound in bounds {
            sum = reduce(sum, splat(bound * p.value()));
        }
        sum
    };
    let (wide, narrow) = groups_mut(out).as_chunks_mut::<WIDTH>();
    for (k, out) in wide.iter_mut().enumerate() {
        let mut low = [_mm512_setzero_si512(); WIDTH];
        let mut high = low;
        for (row, &factor) in ys.iter().zip(&target.factors) {
            let factor = splat(factor);
            let row: &[[u64; LANES]; WIDTH] = groups(row)[WIDTH * k..]
                .first_chunk()
                .expect("rows are as long as the output");
            for lane in 0..WIDTH {
                let y = load(&row[lane]);
                low[lane] = madd_low(low[lane], y, factor);
                high[lane] = madd_high(high[lane], y, factor);
            }
        }
        for lane in 0..WIDTH {
            store(&mut out[lane], finish(low[lane], high[lane]));
        }
    }
    let done = WIDTH * wide.len();
    for (k, out) in narrow.iter_mut().enumerate() {
        let (mut low, mut high) = (_mm512_setzero_si512(), _mm512_setzero_si512());
        for (row, &factor) in ys.iter().zip(&target.factors) {
            let (y, factor) = (load(&groups(row)[done + k]), splat(factor));
            low = madd_low(low, y, factor);
            high = madd_high(high, y, factor);
        }
        store(out, finish(low, high));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn key_product(
    q: Modulus,
    out: [&mut [u64]; 2],
    digits: &[&[u64]],
    keys: &[[&[u64]; 2]],
    map: Option<MapPart<'_>>,
    accumulate: bool,
) {
    let p = Prime::new(q);
    let unwind = p.factor(splat(q.r2()));
    // Sixteen products leave less than 5q; below 3q the next factor fits 52 bits.
    let finish = |low, high| p.mul(reduce(p.reduce_wide(low, high), p.two_q), unwind);
    let [out0, out1] = out.map(groups_mut);
    for (k, (out0, out1)) in out0.iter_mut().zip(out1).enumerate() {
        let (mut low0, mut high0) = (_mm512_setzero_si512(), _mm512_setzero_si512());
        let (mut low1, mut high1) = (low0, high0);
        let source = map.map(|map| map.group(map.sources()[k]));
        if let Some(&ahead) = map.and_then(|map| map.sources().get(k + AHEAD)) {
            digits
                .iter()
                .for_each(|digit| prefetch(&groups(digit)[ahead as usize / LANES]));
        }
        for (digit, key) in digits.iter().zip(keys) {
            let digit = match source {
                None => load(&groups(digit)[k]),
                Some((start, shuffle)) => {
                    _mm512_permutexvar_epi64(load(shuffle), load(&groups(digit)[start / LANES]))
                }
            };
            let [key0, key1] = key.map(|key| load(&groups(key)[k]));
            low0 = madd_low(low0, digit, key0);
            high0 = madd_high(high0, digit, key0);
            low1 = madd_low(low1, digit, key1);
            high1 = madd_high(high1, digit, key1);
        }
        let (mut sum0, mut sum1) = (finish(low0, high0), finish(low1, high1));
        if accumulate {
            sum0 = reduce(add(load(out0), sum0), p.q);
            sum1 = reduce(add(load(out1), sum1), p.q);
        }
        store(out0, sum0);
        store(out1, sum1);
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn weighted_sum(
    q: Modulus,
    out: [&mut [u64]; 2],
    weights: &[&[u64]],
    terms: &[[&[u64]; 2]],
    stride: usize,
) {
    let p = Prime::new(q);
    let unwind = p.factor(splat(q.r2()));
    // As for key products: at most sixteen terms.
    let finish = |low, high| p.mul(reduce(p.reduce_wide(low, high), p.two_q), unwind);
    let run = stride / LANES;
    let [out0, out1] = out.map(groups_mut);
    for (k, (out0, out1)) in out0.iter_mut().zip(out1).enumerate() {
        let (mut low0, mut high0) = (_mm512_setzero_si512(), _mm512_setzero_si512());
        let (mut low1, mut high1) = (low0, high0);
        for (weight, term) in weights.iter().zip(terms) {
            let weight = splat(weight[k / run]);
            let [term0, term1] = term.map(|term| load(&groups(term)[k]));
            low0 = madd_low(low0, weight, term0);
            high0 = madd_high(high0, weight, term0);
            low1 = madd_low(low1, weight, term1);
            high1 = madd_high(high1, weight, term1);
        }
        store(out0, finish(low0, high0));
        store(out1, finish(low1, high1));
    }
}
