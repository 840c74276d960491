//! Kernels in plain Rust: the reference for all others.

use super::{Kernels, KeyProducts};
use crate::{
    Automorphism, Modulus,
    automorphism::{LANES, MapPart},
    conversion::Target,
    modulus::{WORD, reduce_once},
    tables::NttTable,
};

/// Runs everywhere.
#[derive(Copy, Clone)]
pub(crate) struct Portable;

impl Kernels for Portable {
    const NAME: &'static str = "portable";

    fn reduce_signed(self, q: Modulus, out: &mut [u64], x: &[i64]) {
        out.iter_mut()
            .zip(x)
            .for_each(|(out, &x)| *out = q.from_i64(x));
    }

    fn reduce_narrow(self, q: Modulus, out: &mut [u64], x: &[i32]) {
        out.iter_mut()
            .zip(x)
            .for_each(|(out, &x)| *out = q.from_i64(x.into()));
    }

    /// Cooley-Tukey with the powers of `psi` merged in: natural order in, bit-reversed order out.
    ///
    /// Words stay below `4q` between stages (Harvey, "Faster arithmetic for number-theoretic transforms", 2014).
    fn ntt(self, table: NttTable<'_>, a: &mut [u64]) {
        let NttTable { modulus, roots, .. } = table;
        let two_q = 2 * modulus.value();
        let (mut blocks, mut half) = (1, a.len() / 2);
        while half > 0 {
            for (block, &root) in a.chunks_exact_mut(2 * half).zip(&roots[blocks..]) {
                let (low, high) = block.split_at_mut(half);
                for (x, y) in low.iter_mut().zip(high) {
                    let u = reduce_once(*x, two_q);
                    let t = modulus.montgomery_mul_lazy(*y, root);
                    *x = u + t;
                    *y = u + two_q - t;
                }
            }
            blocks *= 2;
            half /= 2;
        }
        for x in a {
            let u = reduce_once(*x, two_q);
            *x = modulus.correct(u);
        }
    }

    fn ntt_narrow(self, table: NttTable<'_>, out: &mut [u64], x: &[i32]) {
        self.reduce_narrow(table.modulus, out, x);
        self.ntt(table, out);
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
        match integers {
            None => self.ntt(table, scratch),
            Some(x) => self.ntt_narrow(table, scratch, x),
        }
        for (out, term) in out.into_iter().zip(terms) {
            if accumulate {
                self.mul_add(table.modulus, out, scratch, term);
            } else {
                self.mul_into(table.modulus, out, scratch, term);
            }
        }
    }

    fn ntt_sub_scale(self, table: NttTable<'_>, out: &mut [u64], a: &[u64], factor: u64) {
        self.ntt(table, out);
        self.sub_scale(table.modulus, out, a, factor);
    }

    /// Gentleman-Sande, the mirror image: words stay below `2q`, and `1/N` goes into the last stage.
    ///
    /// `psi^-e = -psi^(N-e)`, so a stage's inverse powers are its forward powers read backwards, with the sign in the
    /// difference.
    fn intt(self, table: NttTable<'_>, a: &mut [u64]) {
        let NttTable {
            modulus,
            roots,
            last_inverse,
        } = table;
        let two_q = 2 * modulus.value();
        let (mut blocks, mut half) = (a.len() / 2, 1);
        while blocks > 1 {
            for (block, &root) in a
                .chunks_exact_mut(2 * half)
                .zip(roots[blocks..2 * blocks].iter().rev())
            {
                let (low, high) = block.split_at_mut(half);
                for (x, y) in low.iter_mut().zip(high) {
                    let (u, v) = (*x, *y);
                    *x = reduce_once(u + v, two_q);
                    *y = modulus.montgomery_mul_lazy(v + two_q - u, root);
                }
            }
            blocks /= 2;
            half *= 2;
        }
        let (low, high) = a.split_at_mut(half);
        for (x, y) in low.iter_mut().zip(high) {
            let (u, v) = (*x, *y);
            *x = modulus.montgomery_mul(u + v, last_inverse[0]);
            *y = modulus.montgomery_mul(v + two_q - u, last_inverse[1]);
        }
    }

    fn intt_into(self, table: NttTable<'_>, out: &mut [u64], a: &[u64]) {
        out.copy_from_slice(a);
        self.intt(table, out);
    }

    fn add(self, q: Modulus, a: &mut [u64], b: &[u64]) {
        a.iter_mut().zip(b).for_each(|(a, &b)| *a = q.add(*a, b));
    }

    fn sub(self, q: Modulus, a: &mut [u64], b: &[u64]) {
        a.iter_mut().zip(b).for_each(|(a, &b)| *a = q.sub(*a, b));
    }

    fn neg(self, q: Modulus, a: &mut [u64]) {
        a.iter_mut().for_each(|a| *a = q.neg(*a));
    }

    fn mul(self, q: Modulus, a: &mut [u64], b: &[u64]) {
        a.iter_mut().zip(b).for_each(|(a, &b)| *a = q.mul(*a, b));
    }

    fn mul_add(self, q: Modulus, acc: &mut [u64], a: &[u64], b: &[u64]) {
        acc.iter_mut()
            .zip(a.iter().zip(b))
            .for_each(|(acc, (&a, &b))| *acc = q.add(*acc, q.mul(a, b)));
    }

    fn mul_into(self, q: Modulus, out: &mut [u64], a: &[u64], b: &[u64]) {
        out.iter_mut()
            .zip(a.iter().zip(b))
            .for_each(|(out, (&a, &b))| *out = q.mul(a, b));
    }

    fn scale(self, q: Modulus, a: &mut [u64], factor: u64) {
        let factor = q.to_montgomery(factor);
        a.iter_mut().for_each(|a| *a = q.montgomery_mul(*a, factor));
    }

    fn scale_add(self, q: Modulus, acc: &mut [u64], a: &[u64], factor: u64) {
        let factor = q.to_montgomery(factor);
        acc.iter_mut()
            .zip(a)
            .for_each(|(acc, &a)| *acc = q.add(*acc, q.montgomery_mul(a, factor)));
    }

    fn shift(self, q: Modulus, a: &mut [u64], term: u64) {
        a.iter_mut().for_each(|a| *a = q.add(*a, term));
    }

    fn sub_scale(self, q: Modulus, out: &mut [u64], a: &[u64], factor: u64) {
        out.iter_mut()
            .zip(a)
            .for_each(|(out, &a)| *out = q.montgomery_mul(q.sub(a, *out), factor));
    }

    fn automorphism(self, out: &mut [u64], a: &[u64], map: &Automorphism) {
        for (out, (start, shuffle)) in out.chunks_exact_mut(LANES).zip(map.groups()) {
            for (out, &lane) in out.iter_mut().zip(shuffle) {
                *out = a[start + lane as usize];
            }
        }
    }

    fn automorphism_add(self, q: Modulus, acc: &mut [u64], a: &[u64], map: MapPart<'_>) {
        for (acc, &source) in acc.chunks_exact_mut(LANES).zip(map.sources()) {
            let (start, shuffle) = map.group(source);
            for (acc, &lane) in acc.iter_mut().zip(shuffle) {
                *acc = q.add(*acc, a[start + lane as usize]);
            }
        }
    }

    fn key_product(
        self,
        q: Modulus,
        out: [&mut [u64]; 2],
        products: KeyProducts<'_>,
        accumulate: bool,
    ) {
        let [out0, out1] = out;
        for k in 0..out0.len() {
            let before = if accumulate {
                [out0[k], out1[k]]
            } else {
                [0, 0]
            };
            let sums = add_products_of(before.map(u128::from), &products, k);
            [out0[k], out1[k]] = sums.map(|sum| reduce_sum(q, sum));
        }
    }

    fn add_products(self, sums: [&mut [u64]; 4], products: KeyProducts<'_>) {
        let [low0, high0, low1, high1] = sums;
        let whole = |low: u64, high: u64| u128::from(high) << 64 | u128::from(low);
        for k in 0..low0.len() {
            let before = [whole(low0[k], high0[k]), whole(low1[k], high1[k])];
            let [sum0, sum1] = add_products_of(before, &products, k);
            (low0[k], high0[k]) = (sum0 as u64, (sum0 >> 64) as u64);
            (low1[k], high1[k]) = (sum1 as u64, (sum1 >> 64) as u64);
        }
    }

    fn reduce_sums(self, q: Modulus, out: [&mut [u64]; 2], sums: [&[u64]; 4]) {
        let ([low0, high0, low1, high1], [out0, out1]) = (sums, out);
        for (out, low, high) in [(out0, low0, high0), (out1, low1, high1)] {
            for (out, (&low, &high)) in out.iter_mut().zip(low.iter().zip(high)) {
                *out = reduce_sum(q, u128::from(high) << 64 | u128::from(low));
            }
        }
    }

    fn weighted_sum(
        self,
        q: Modulus,
        out: [&mut [u64]; 2],
        weights: &[&[u64]],
        terms: &[[&[u64]; 2]],
        stride: usize,
    ) {
        let [out0, out1] = out;
        for k in 0..out0.len() {
            let sum = |c: usize| -> u64 {
                let products = weights.iter().zip(terms);
                let sum: u128 = products
                    .map(|(w, term)| w[k / stride] as u128 * term[c][k] as u128)
                    .sum();
                reduce_sum(q, sum)
            };
            (out0[k], out1[k]) = (sum(0), sum(1));
        }
    }

    fn add_quotient(self, quotient: &mut [u64], y: &[u64], weight: u64) {
        for (r, &y) in quotient.iter_mut().zip(y) {
            *r += ((y as u128 * weight as u128) >> WORD) as u64;
        }
    }

    fn convert_quotient(self, quotient: &mut [u64]) {
        quotient
            .iter_mut()
            .for_each(|r| *r = (*r + (1 << 31)) >> 32);
    }

    fn convert_target(self, p: Modulus, out: &mut [u64], ys: &[&[u64]], target: &Target) {
        for (k, out) in out.iter_mut().enumerate() {
            let terms = target.factors.iter().zip(ys);
            let sum: u128 = terms
                .map(|(&factor, y)| factor as u128 * y[k] as u128)
                .sum();
            *out = p.montgomery_reduce(sum) % p.value();
        }
    }
}

/// `sums` plus the products that belong to word `k`.
fn add_products_of(mut sums: [u128; 2], products: &KeyProducts<'_>, k: usize) -> [u128; 2] {
    let source = products.map.map_or(k, |map| {
        let (start, shuffle) = map.group(map.sources()[k / LANES]);
        start + shuffle[k % LANES] as usize
    });
    for (digit, key) in products.digits.iter().zip(products.keys) {
        for (sum, key) in sums.iter_mut().zip(key) {
            *sum += u128::from(digit[source]) * u128::from(key[k]);
        }
    }
    sums[0] += products.value.map_or(0, |value| u128::from(value[source]));
    sums
}

/// The reduction divides by 2^52; the product by 2^104 does so again, and takes both back.
fn reduce_sum(q: Modulus, sum: u128) -> u64 {
    q.montgomery_mul(q.montgomery_reduce(sum) % q.value(), q.r2())
}
