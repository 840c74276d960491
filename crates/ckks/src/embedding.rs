//! The fast transform of the canonical embedding, in floating point.
//!
//! Layer by layer, for len = 2, 4, ..., d, (u, v) at distance len/2 becomes (u + w v, u - w v): this takes bit-reversed
//! coefficients to slots, and its mirror image slots to coefficients (Cheon et al. 2018, "Bootstrapping for approximate homomorphic
//! encryption", 5). The real and the imaginary parts lie in arrays of their own and the twiddle factors in the order of their use, so
//! that the compiler handles several butterflies at a time, more of them in the copy of each function for AVX-512. Operations and their
//! order are the same on every processor, without fused multiply-adds, and so are the results, bit for bit.

use num_complex::Complex64;

/// Blocks of so many values and their twiddle factors fit the nearest cache: all their layers come together.
const CACHED: usize = 512;

/// Twiddle factors for vectors of up to N/2 slots.
pub(crate) struct Embedding {
    /// For len = 2, 4, 8, ... those of the butterflies j = 0..len/2, from place len/2 - 1 on.
    re: Vec<f64>,
    im: Vec<f64>,
    /// Indices below N/2 in bit-reversed order.
    reversed: Vec<u32>,
}

/// For each function a copy that is compiled for AVX-512, which runs where the processor has it.
macro_rules! wide {
    ($($(#[$doc:meta])* fn $name:ident / $wide:ident / $body:ident(&self $(, $arg:ident: $type:ty)*) $(-> $out:ty)?;)*) => { $(
        $(#[$doc])*
        pub(crate) fn $name(&self $(, $arg: $type)*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx512f") {
                // SAFETY: the processor has the feature.
                return unsafe { self.$wide($($arg),*) };
            }
            self.$body($($arg),*)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f")]
        fn $wide(&self $(, $arg: $type)*) $(-> $out)? {
            self.$body($($arg),*)
        }
    )* };
}

/// The real and the imaginary parts of a vector.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) re: Vec<f64>,
    pub(crate) im: Vec<f64>,
}

impl Parts {
    /// Takes the values of a vector in place of its own.
    pub(crate) fn fill(&mut self, values: impl Iterator<Item = Complex64> + Clone) {
        self.re.clear();
        self.re.extend(values.clone().map(|v| v.re));
        self.im.clear();
        self.im.extend(values.map(|v| v.im));
    }
}

impl Embedding {
    /// Contract: `slots` is a power of two.
    pub(crate) fn new(slots: usize) -> Self {
        let order = 4 * slots;
        let angle = std::f64::consts::TAU / order as f64;
        let mut table = Self {
            re: Vec::with_capacity(slots),
            im: Vec::with_capacity(slots),
            reversed: vec![0],
        };
        let mut len = 2;
        while len <= slots {
            // Slot j is the value at the root with exponent 5^j.
            let mut exponent = 1;
            for _ in 0..len / 2 {
                let root = Complex64::cis(angle * (exponent * (order / (4 * len))) as f64);
                table.re.push(root.re);
                table.im.push(root.im);
                exponent = exponent * 5 % (4 * len);
            }
            len *= 2;
        }
        while table.reversed.len() < slots {
            let step = (slots / (2 * table.reversed.len())) as u32;
            table.reversed.extend_from_within(..);
            let half = table.reversed.len() / 2;
            table.reversed[half..].iter_mut().for_each(|r| *r += step);
        }
        table
    }

    /// That of butterfly `j` in the layer of blocks of `len`.
    pub(crate) fn twiddle(&self, len: usize, j: usize) -> Complex64 {
        let place = len / 2 - 1 + j;
        Complex64::new(self.re[place], self.im[place])
    }

    /// For each index of a vector of `d` values its place in bit-reversed order.
    pub(crate) fn reversed(&self, d: usize) -> impl Iterator<Item = usize> {
        let shift = (self.reversed.len() / d).trailing_zeros();
        self.reversed[..d]
            .iter()
            .map(move |r| (r >> shift) as usize)
    }

    wide! {
        /// In place: d·w_i for w_i = c_i + i c_{i+d} from slot values, in bit-reversed order.
        fn slots_to_coefficients / wide_slots_to_coefficients / inverse_layers(&self, values: &mut Parts);
        /// In place: slot values from w_i = c_i + i c_{i+d} in bit-reversed order.
        fn coefficients_to_slots / wide_coefficients_to_slots / layers(&self, values: &mut Parts);
        /// Multiplies by a number. Returns the largest magnitude; infinite or not a number if one is.
        fn scale / wide_scale / scale_parts(&self, values: &mut Parts, factor: f64) -> f64;
    }

    #[inline(always)]
    fn scale_parts(&self, values: &mut Parts, factor: f64) -> f64 {
        // Magnitudes have the order of their bits, and infinity and what is not a number lie above all.
        let mut largest = 0;
        for parts in [&mut values.re, &mut values.im] {
            for part in parts {
                *part *= factor;
                largest = largest.max(part.abs().to_bits());
            }
        }
        f64::from_bits(largest)
    }

    #[inline(always)]
    fn inverse_layers(&self, values: &mut Parts) {
        let Parts { re, im } = values;
        let mut len = re.len();
        while len > CACHED {
            self.inverse_layer(len, re, im);
            len /= 2;
        }
        for (re, im) in re.chunks_exact_mut(len).zip(im.chunks_exact_mut(len)) {
            let mut len = len;
            while len >= 2 {
                self.inverse_layer(len, re, im);
                len /= 2;
            }
        }
    }

    #[inline(always)]
    fn layers(&self, values: &mut Parts) {
        let Parts { re, im } = values;
        let d = re.len();
        let cached = d.min(CACHED);
        for (re, im) in re.chunks_exact_mut(cached).zip(im.chunks_exact_mut(cached)) {
            let mut len = 2;
            while len <= cached {
                self.layer(len, re, im);
                len *= 2;
            }
        }
        let mut len = 2 * cached;
        while len <= d {
            self.layer(len, re, im);
            len *= 2;
        }
    }

    #[inline(always)]
    fn inverse_layer(&self, len: usize, re: &mut [f64], im: &mut [f64]) {
        each_butterfly(
            self.twiddles(len),
            re,
            im,
            |[a_re, a_im], [b_re, b_im], [w_re, w_im]| {
                let (d_re, d_im) = (a_re - b_re, a_im - b_im);
                (
                    [a_re + b_re, a_im + b_im],
                    [d_re * w_re + d_im * w_im, d_im * w_re - d_re * w_im],
                )
            },
        );
    }

    #[inline(always)]
    fn layer(&self, len: usize, re: &mut [f64], im: &mut [f64]) {
        each_butterfly(
            self.twiddles(len),
            re,
            im,
            |[a_re, a_im], [b_re, b_im], [w_re, w_im]| {
                let v_re = b_re * w_re - b_im * w_im;
                let v_im = b_re * w_im + b_im * w_re;
                ([a_re + v_re, a_im + v_im], [a_re - v_re, a_im - v_im])
            },
        );
    }

    /// Those of the layer of blocks of `len` values.
    fn twiddles(&self, len: usize) -> [&[f64]; 2] {
        let places = len / 2 - 1..len - 1;
        [&self.re[places.clone()], &self.im[places]]
    }
}

/// One butterfly: new values at the lower and the upper place, from those there and the twiddle factor, each with its imaginary part.
trait Butterfly: Fn([f64; 2], [f64; 2], [f64; 2]) -> ([f64; 2], [f64; 2]) {}
impl<F: Fn([f64; 2], [f64; 2], [f64; 2]) -> ([f64; 2], [f64; 2])> Butterfly for F {}

/// All butterflies of one layer.
#[inline(always)]
fn each_butterfly(
    [w_re, w_im]: [&[f64]; 2],
    re: &mut [f64],
    im: &mut [f64],
    butterfly: impl Butterfly,
) {
    let half = w_re.len();
    match half {
        1 => return fixed_butterflies::<2>([w_re, w_im], re, im, butterfly),
        2 => return fixed_butterflies::<4>([w_re, w_im], re, im, butterfly),
        4 => return fixed_butterflies::<8>([w_re, w_im], re, im, butterfly),
        _ => {}
    }
    let w_im = &w_im[..half];
    let blocks = re
        .chunks_exact_mut(2 * half)
        .zip(im.chunks_exact_mut(2 * half));
    for (re, im) in blocks {
        let (a_re, b_re) = re.split_at_mut(half);
        let (a_im, b_im) = im.split_at_mut(half);
        let (b_re, a_im, b_im) = (&mut b_re[..half], &mut a_im[..half], &mut b_im[..half]);
        for j in 0..half {
            let (a, b) = butterfly([a_re[j], a_im[j]], [b_re[j], b_im[j]], [w_re[j], w_im[j]]);
            [a_re[j], a_im[j]] = a;
            [b_re[j], b_im[j]] = b;
        }
    }
}

/// All butterflies of one layer of short blocks, whose length the compiler has to know to handle several of them at a time.
#[inline(always)]
fn fixed_butterflies<const LEN: usize>(
    [w_re, w_im]: [&[f64]; 2],
    re: &mut [f64],
    im: &mut [f64],
    butterfly: impl Butterfly,
) {
    let half = LEN / 2;
    let mut w = [[0.0; 2]; LEN];
    for j in 0..half {
        w[j] = [w_re[j], w_im[j]];
    }
    let blocks = re.as_chunks_mut::<LEN>().0.iter_mut();
    for (re, im) in blocks.zip(im.as_chunks_mut::<LEN>().0) {
        for j in 0..half {
            let (a, b) = butterfly([re[j], im[j]], [re[j + half], im[j + half]], w[j]);
            [re[j], im[j]] = a;
            [re[j + half], im[j + half]] = b;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(d: usize) -> Vec<Complex64> {
        let mut state = d as u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        };
        (0..d).map(|_| Complex64::new(next(), next())).collect()
    }

    /// The polynomial sum of w_i Y^i with Y^d = i, evaluated at the roots: slot j's is Y = exp(2 pi i 5^j / 4d).
    #[test]
    fn slots_are_values_at_the_roots() {
        let embedding = Embedding::new(1 << 11);
        for log_d in 0..=11 {
            let d = 1usize << log_d;
            let coefficients = random(d);
            let mut w = Parts {
                re: vec![0.0; d],
                im: vec![0.0; d],
            };
            for (place, c) in embedding.reversed(d).zip(&coefficients) {
                (w.re[place], w.im[place]) = (c.re, c.im);
            }
            embedding.coefficients_to_slots(&mut w);
            let mut exponent = 1;
            for j in 0..d.min(16) {
                let angle = std::f64::consts::TAU * exponent as f64 / (4 * d) as f64;
                let value = (coefficients.iter().enumerate())
                    .map(|(i, c)| c * Complex64::cis(angle * i as f64))
                    .sum::<Complex64>();
                assert!(
                    (value - Complex64::new(w.re[j], w.im[j])).norm() < 1e-9,
                    "{d} slot {j}"
                );
                exponent = exponent * 5 % (4 * d);
            }
            embedding.slots_to_coefficients(&mut w);
            for (place, c) in embedding.reversed(d).zip(&coefficients) {
                let back = Complex64::new(w.re[place], w.im[place]) / d as f64;
                assert!((back - c).norm() < 1e-12, "{d}");
            }
        }
    }
}
