//! Word by word arithmetic.

use super::lanes::*;
use crate::{
    Automorphism, Modulus,
    automorphism::{LANES, MapPart},
};
use std::arch::x86_64::{
    _mm512_abs_epi64, _mm512_cmplt_epi64_mask, _mm512_mask_blend_epi64, _mm512_min_epu64,
    _mm512_permutexvar_epi64, _mm512_setzero_si512,
};

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn reduce_signed(q: Modulus, out: &mut [u64], x: &[i64]) {
    let p = Prime::new(q);
    let zero = _mm512_setzero_si512();
    let unwind = p.factor(splat(q.r2()));
    for (out, x) in groups_mut(out).iter_mut().zip(x.as_chunks::<LANES>().0) {
        let x = load_signed(x);
        // The reduction divides by 2^52; the product by 2^104 does so again, and takes both back.
        let magnitude = p.mul(p.reduce_wide(_mm512_abs_epi64(x), zero), unwind);
        let negative = _mm512_cmplt_epi64_mask(x, zero);
        let negated = reduce(super::lanes::sub(p.q, magnitude), p.q);
        store(out, _mm512_mask_blend_epi64(negative, magnitude, negated));
    }
}

#[target_feature(enable = "avx512f")]
pub(super) fn reduce_narrow(q: Modulus, out: &mut [u64], x: &[i32]) {
    let p = Prime::new(q);
    for (out, x) in groups_mut(out).iter_mut().zip(x.as_chunks::<LANES>().0) {
        let x = load_narrow(x);
        // As unsigned words negative ones are larger than they are with the modulus added.
        store(out, _mm512_min_epu64(x, super::lanes::add(x, p.q)));
    }
}

#[target_feature(enable = "avx512f")]
pub(super) fn add(q: Modulus, a: &mut [u64], b: &[u64]) {
    let p = Prime::new(q);
    for (a, b) in groups_mut(a).iter_mut().zip(groups(b)) {
        store(a, reduce(super::lanes::add(load(a), load(b)), p.q));
    }
}

#[target_feature(enable = "avx512f")]
pub(super) fn sub(q: Modulus, a: &mut [u64], b: &[u64]) {
    let p = Prime::new(q);
    for (a, b) in groups_mut(a).iter_mut().zip(groups(b)) {
        let difference = super::lanes::sub(load(a), load(b));
        store(a, reduce(super::lanes::add(difference, p.q), p.q));
    }
}

#[target_feature(enable = "avx512f")]
pub(super) fn neg(q: Modulus, a: &mut [u64]) {
    let p = Prime::new(q);
    for a in groups_mut(a) {
        store(a, reduce(super::lanes::sub(p.q, load(a)), p.q));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn mul(q: Modulus, a: &mut [u64], b: &[u64]) {
    let p = Barrett::new(q);
    for (a, b) in groups_mut(a).iter_mut().zip(groups(b)) {
        store(a, p.mul(load(a), load(b)));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn mul_add(q: Modulus, acc: &mut [u64], a: &[u64], b: &[u64]) {
    let (p, q) = (Barrett::new(q), splat(q.value()));
    for (acc, (a, b)) in groups_mut(acc)
        .iter_mut()
        .zip(groups(a).iter().zip(groups(b)))
    {
        store(
            acc,
            reduce(super::lanes::add(load(acc), p.mul(load(a), load(b))), q),
        );
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn mul_into(q: Modulus, out: &mut [u64], a: &[u64], b: &[u64]) {
    let p = Barrett::new(q);
    for (out, (a, b)) in groups_mut(out)
        .iter_mut()
        .zip(groups(a).iter().zip(groups(b)))
    {
        store(out, p.mul(load(a), load(b)));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn scale(q: Modulus, a: &mut [u64], factor: u64) {
    let p = Prime::new(q);
    let factor = p.factor(splat(q.to_montgomery(factor)));
    for a in groups_mut(a) {
        store(a, p.mul(load(a), factor));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn scale_add(q: Modulus, acc: &mut [u64], a: &[u64], factor: u64) {
    let p = Prime::new(q);
    let factor = p.factor(splat(q.to_montgomery(factor)));
    for (acc, a) in groups_mut(acc).iter_mut().zip(groups(a)) {
        let sum = super::lanes::add(load(acc), p.mul(load(a), factor));
        store(acc, reduce(sum, p.q));
    }
}

#[target_feature(enable = "avx512f")]
pub(super) fn shift(q: Modulus, a: &mut [u64], term: u64) {
    let (p, term) = (Prime::new(q), splat(term));
    for a in groups_mut(a) {
        store(a, reduce(super::lanes::add(load(a), term), p.q));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn sub_scale(q: Modulus, out: &mut [u64], a: &[u64], factor: u64) {
    let p = Prime::new(q);
    let factor = p.factor(splat(factor));
    for (out, a) in groups_mut(out).iter_mut().zip(groups(a)) {
        let difference = super::lanes::sub(super::lanes::add(load(a), p.q), load(out));
        store(out, p.mul(difference, factor));
    }
}

#[target_feature(enable = "avx512f")]
pub(super) fn automorphism(out: &mut [u64], a: &[u64], map: &Automorphism) {
    let a = groups(a);
    for (k, (out, (start, shuffle))) in groups_mut(out).iter_mut().zip(map.groups()).enumerate() {
        if let Some(&ahead) = map.whole().sources().get(k + AHEAD) {
            prefetch(&a[ahead as usize / LANES]);
        }
        store(
            out,
            _mm512_permutexvar_epi64(load(shuffle), load(&a[start / out.len()])),
        );
    }
}

#[target_feature(enable = "avx512f")]
pub(super) fn automorphism_add(q: Modulus, acc: &mut [u64], a: &[u64], map: MapPart<'_>) {
    let (p, a) = (Prime::new(q), groups(a));
    for (k, (acc, &source)) in groups_mut(acc).iter_mut().zip(map.sources()).enumerate() {
        let (start, shuffle) = map.group(source);
        if let Some(&ahead) = map.sources().get(k + AHEAD) {
            prefetch(&a[ahead as usize / LANES]);
        }
        let mapped = _mm512_permutexvar_epi64(load(shuffle), load(&a[start / LANES]));
        store(acc, reduce(super::lanes::add(load(acc), mapped), p.q));
    }
}
