//! Kernels for AVX-512 with the 52-bit multiply-add of IFMA: eight words at a time.

mod convert;
mod lanes;
mod ntt;
mod pointwise;
mod products;

use super::{Kernels, KeyProducts, portable::Portable};
use crate::{Automorphism, Modulus, automorphism::MapPart, conversion::Target, tables::NttTable};

/// Exists only where the processor has AVX-512 F and IFMA.
#[derive(Copy, Clone)]
pub(crate) struct Avx512(());

impl Avx512 {
    pub(crate) fn detect() -> Option<Self> {
        let here = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512ifma");
        here.then_some(Self(()))
    }
}

/// Calls a function compiled for these features; `self` is the proof that the processor has them.
macro_rules! with_features {
    ($proof:ident, $call:expr) => {{
        let Self(()) = $proof;
        // SAFETY: an `Avx512` exists only where the features were detected.
        unsafe { $call }
    }};
}

impl Kernels for Avx512 {
    const NAME: &'static str = "avx512ifma";

    fn reduce_signed(self, q: Modulus, out: &mut [u64], x: &[i64]) {
        with_features!(self, pointwise::reduce_signed(q, out, x))
    }

    fn reduce_narrow(self, q: Modulus, out: &mut [u64], x: &[i32]) {
        with_features!(self, pointwise::reduce_narrow(q, out, x))
    }

    fn ntt(self, table: NttTable<'_>, a: &mut [u64]) {
        if a.len() < ntt::MIN_WORDS {
            return Portable.ntt(table, a);
        }
        with_features!(self, ntt::forward(table, a))
    }

    fn ntt_narrow(self, table: NttTable<'_>, out: &mut [u64], x: &[i32]) {
        if out.len() < ntt::MIN_WORDS {
            return Portable.ntt_narrow(table, out, x);
        }
        with_features!(self, ntt::forward_narrow(table, out, x))
    }

    fn ntt_mul(
        self,
        table: NttTable<'_>,
        scratch: &mut [u64],
        integers: Option<&[i32]>,
        out: [&mut [u64]; 2],
        terms: [&[u64]; 2],
        accumulate: bool,
    ) {
        if scratch.len() < ntt::MIN_WORDS {
            return Portable.ntt_mul(table, scratch, integers, out, terms, accumulate);
        }
        with_features!(
            self,
            ntt::forward_mul(table, scratch, integers, out, terms, accumulate)
        )
    }

    fn ntt_sub_scale(self, table: NttTable<'_>, out: &mut [u64], a: &[u64], factor: u64) {
        if a.len() < ntt::MIN_WORDS {
            return Portable.ntt_sub_scale(table, out, a, factor);
        }
        with_features!(self, ntt::forward_sub_scale(table, out, a, factor))
    }

    fn intt(self, table: NttTable<'_>, a: &mut [u64]) {
        if a.len() < ntt::MIN_WORDS {
            return Portable.intt(table, a);
        }
        with_features!(self, ntt::inverse(table, a))
    }

    fn intt_into(self, table: NttTable<'_>, out: &mut [u64], a: &[u64]) {
        if a.len() < ntt::MIN_WORDS {
            return Portable.intt_into(table, out, a);
        }
        with_features!(self, ntt::inverse_into(table, out, a))
    }

    fn add(self, q: Modulus, a: &mut [u64], b: &[u64]) {
        with_features!(self, pointwise::add(q, a, b))
    }

    fn sub(self, q: Modulus, a: &mut [u64], b: &[u64]) {
        with_features!(self, pointwise::sub(q, a, b))
    }

    fn neg(self, q: Modulus, a: &mut [u64]) {
        with_features!(self, pointwise::neg(q, a))
    }

    fn mul(self, q: Modulus, a: &mut [u64], b: &[u64]) {
        with_features!(self, pointwise::mul(q, a, b))
    }

    fn mul_add(self, q: Modulus, acc: &mut [u64], a: &[u64], b: &[u64]) {
        with_features!(self, pointwise::mul_add(q, acc, a, b))
    }

    fn mul_into(self, q: Modulus, out: &mut [u64], a: &[u64], b: &[u64]) {
        with_features!(self, pointwise::mul_into(q, out, a, b))
    }

    fn scale(self, q: Modulus, a: &mut [u64], factor: u64) {
        with_features!(self, pointwise::scale(q, a, factor))
    }

    fn scale_add(self, q: Modulus, acc: &mut [u64], a: &[u64], factor: u64) {
        with_features!(self, pointwise::scale_add(q, acc, a, factor))
    }

    fn shift(self, q: Modulus, a: &mut [u64], term: u64) {
        with_features!(self, pointwise::shift(q, a, term))
    }

    fn sub_scale(self, q: Modulus, out: &mut [u64], a: &[u64], factor: u64) {
        with_features!(self, pointwise::sub_scale(q, out, a, factor))
    }

    fn automorphism(self, out: &mut [u64], a: &[u64], map: &Automorphism) {
        with_features!(self, pointwise::automorphism(out, a, map))
    }

    fn automorphism_add(self, q: Modulus, acc: &mut [u64], a: &[u64], map: MapPart<'_>) {
        with_features!(self, pointwise::automorphism_add(q, acc, a, map))
    }

    fn key_product(
        self,
        q: Modulus,
        out: [&mut [u64]; 2],
        products: KeyProducts<'_>,
        accumulate: bool,
    ) {
        with_features!(self, products::key_product(q, out, products, accumulate))
    }

    fn add_products(self, sums: [&mut [u64]; 4], products: KeyProducts<'_>) {
        with_features!(self, products::add_products(sums, products))
    }

    fn reduce_sums(self, q: Modulus, out: [&mut [u64]; 2], sums: [&[u64]; 4]) {
        with_features!(self, products::reduce_sums(q, out, sums))
    }

    fn weighted_sum(
        self,
        q: Modulus,
        out: [&mut [u64]; 2],
        weights: &[&[u64]],
        terms: &[[&[u64]; 2]],
        stride: usize,
    ) {
        with_features!(self, products::weighted_sum(q, out, weights, terms, stride))
    }

    fn add_quotient(self, quotient: &mut [u64], y: &[u64], weight: u64) {
        with_features!(self, convert::add_quotient(quotient, y, weight))
    }

    fn convert_quotient(self, quotient: &mut [u64]) {
        Portable.convert_quotient(quotient);
    }

    fn convert_target(self, p: Modulus, out: &mut [u64], ys: &[&[u64]], target: &Target) {
        with_features!(self, convert::target(p, out, ys, target))
    }
}
