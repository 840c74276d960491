//! Sums of products, reduced once: key products, sums over rotations, and sums with weights.

use super::lanes::*;
use crate::{
    Modulus,
    automorphism::{LANES, MapPart},
    kernels::{KeyProducts, UNREDUCED},
};
use std::arch::x86_64::{_mm512_permutexvar_epi64, _mm512_setzero_si512};

/// How sums of low and of high words of products end.
#[derive(Clone, Copy)]
struct Finish {
    p: Prime,
    four_q: Words,
    unwind: Factor,
}

impl Finish {
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn new(q: Modulus) -> Self {
        let p = Prime::new(q);
        Self {
            p,
            four_q: splat(4 * q.value()),
            unwind: p.factor(splat(q.r2())),
        }
    }

    /// Of at most sixteen products, which leave less than 5q; below 3q the next factor fits 52 bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn few(self, low: Words, high: Words) -> Words {
        let sum = self.p.reduce_wide(low, high);
        self.p.mul(reduce(sum, self.p.two_q), self.unwind)
    }

    /// Of at most [`UNREDUCED`] products, which leave less than 10q; below 4q the next factor fits 52 bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn many(self, low: Words, high: Words) -> Words {
        const { assert!(UNREDUCED <= 32) };
        let sum = self.p.reduce_wide(low, high);
        let sum = reduce(reduce(sum, self.four_q), self.four_q);
        self.p.mul(sum, self.unwind)
    }
}

/// Low and high words of both halves' sums.
type Sums = [Words; 4];

/// The operands of the products with `D` digits, as groups.
struct Operands<'a, const D: usize> {
    digits: [&'a [[u64; LANES]]; D],
    keys: [[&'a [[u64; LANES]]; 2]; D],
    value: Option<&'a [[u64; LANES]]>,
}

impl<'a, const D: usize> Operands<'a, D> {
    /// For `count` groups of the result.
    fn new(products: &KeyProducts<'a>, count: usize) -> Self {
        Self {
            digits: std::array::from_fn(|j| groups(products.digits[j])),
            keys: std::array::from_fn(|j| products.keys[j].map(|key| &groups(key)[..count])),
            value: products.value.map(groups),
        }
    }

    /// `sums` plus what belongs to group `k`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn add_to(&self, sums: Sums, k: usize, map: Option<MapPart<'_>>) -> Sums {
        match map {
            None => self.add_unmapped(sums, k),
            Some(map) => self.add_mapped(sums, k, map),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn add_unmapped(&self, mut sums: Sums, k: usize) -> Sums {
        for j in 0..D {
            sums = self.add_digit(sums, j, k, load(&self.digits[j][k]));
        }
        if let Some(value) = self.value {
            sums[0] = add(sums[0], load(&value[k]));
        }
        sums
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn add_mapped(&self, mut sums: Sums, k: usize, map: MapPart<'_>) -> Sums {
        let (start, shuffle) = map.group(map.sources()[k]);
        let (at, shuffle) = (start / LANES, load(shuffle));
        let ahead = map
            .sources()
            .get(k + AHEAD)
            .map_or(at, |&ahead| ahead as usize / LANES);
        for j in 0..D {
            prefetch(&self.digits[j][ahead]);
            let digit = _mm512_permutexvar_epi64(shuffle, load(&self.digits[j][at]));
            sums = self.add_digit(sums, j, k, digit);
        }
        if let Some(value) = self.value {
            prefetch(&value[ahead]);
            sums[0] = add(sums[0], _mm512_permutexvar_epi64(shuffle, load(&value[at])));
        }
        sums
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn add_digit(
        &self,
        [low0, high0, low1, high1]: Sums,
        j: usize,
        k: usize,
        digit: Words,
    ) -> Sums {
        let [key0, key1] = [load(&self.keys[j][0][k]), load(&self.keys[j][1][k])];
        [
            madd_low(low0, digit, key0),
            madd_high(high0, digit, key0),
            madd_low(low1, digit, key1),
            madd_high(high1, digit, key1),
        ]
    }
}

/// The most digits whose operands are kept at hand together.
const TOGETHER: usize = 3;

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn key_product(
    q: Modulus,
    out: [&mut [u64]; 2],
    products: KeyProducts<'_>,
    accumulate: bool,
) {
    let [out0, out1] = out;
    for (i, few) in products.parts(TOGETHER).enumerate() {
        let (out, accumulate) = ([&mut *out0, &mut *out1], accumulate || i > 0);
        match few.digits.len() {
            1 => key_product_of::<1>(q, out, few, accumulate),
            2 => key_product_of::<2>(q, out, few, accumulate),
            _ => key_product_of::<TOGETHER>(q, out, few, accumulate),
        }
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn key_product_of<const D: usize>(
    q: Modulus,
    out: [&mut [u64]; 2],
    products: KeyProducts<'_>,
    accumulate: bool,
) {
    let (finish, zero) = (Finish::new(q), _mm512_setzero_si512());
    let [out0, out1] = out.map(groups_mut);
    let operands = Operands::<D>::new(&products, out0.len());
    for (k, (out0, out1)) in out0.iter_mut().zip(out1).enumerate() {
        let before = if accumulate {
            [load(out0), zero, load(out1), zero]
        } else {
            [zero; 4]
        };
        let [low0, high0, low1, high1] = operands.add_to(before, k, products.map);
        store(out0, finish.few(low0, high0));
        store(out1, finish.few(low1, high1));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn add_products(sums: [&mut [u64]; 4], products: KeyProducts<'_>) {
    let [low0, high0, low1, high1] = sums;
    for few in products.parts(TOGETHER) {
        let sums = [&mut *low0, &mut *high0, &mut *low1, &mut *high1];
        match few.digits.len() {
            1 => add_products_of::<1>(sums, few),
            2 => add_products_of::<2>(sums, few),
            _ => add_products_of::<TOGETHER>(sums, few),
        }
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn add_products_of<const D: usize>(sums: [&mut [u64]; 4], products: KeyProducts<'_>) {
    let [low0, high0, low1, high1] = sums.map(groups_mut);
    let count = low0.len();
    let operands = Operands::<D>::new(&products, count);
    let (high0, low1, high1) = (&mut high0[..count], &mut low1[..count], &mut high1[..count]);
    for k in 0..count {
        let before = [
            load(&low0[k]),
            load(&high0[k]),
            load(&low1[k]),
            load(&high1[k]),
        ];
        let after = operands.add_to(before, k, products.map);
        store(&mut low0[k], after[0]);
        store(&mut high0[k], after[1]);
        store(&mut low1[k], after[2]);
        store(&mut high1[k], after[3]);
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn reduce_sums(q: Modulus, out: [&mut [u64]; 2], sums: [&[u64]; 4]) {
    let finish = Finish::new(q);
    let [low0, high0, low1, high1] = sums;
    let [out0, out1] = out;
    for (out, low, high) in [(out0, low0, high0), (out1, low1, high1)] {
        for (out, (low, high)) in groups_mut(out)
            .iter_mut()
            .zip(groups(low).iter().zip(groups(high)))
        {
            store(out, finish.many(load(low), load(high)));
        }
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
    let finish = Finish::new(q);
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
        store(out0, finish.few(low0, high0));
        store(out1, finish.few(low1, high1));
    }
}
