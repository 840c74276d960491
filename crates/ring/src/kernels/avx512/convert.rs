//! Base conversion: sums of products, reduced once.

use super::lanes::*;
use crate::{Modulus, automorphism::LANES, conversion::Target};
use std::arch::x86_64::_mm512_setzero_si512;

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
