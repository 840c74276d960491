//! The canonical embedding's fast transform as a product of sparse matrices.

use num_complex::Complex64;
use taciturn_ckks::Encoder;

use crate::Diagonals;

/// How many of the log2(d) butterfly layers go into each stage: as even as possible.
pub(crate) fn stage_sizes(log_d: u32, stages: u32) -> Vec<u32> {
    (0..stages)
        .map(|s| (log_d * (s + 1)) / stages - (log_d * s) / stages)
        .filter(|&n| n > 0)
        .collect()
}

/// Slots to bit-reversed coefficients, stage by stage in the order of application: SlotsToCoeffs.
pub(crate) fn slots_to_coeffs(encoder: &Encoder, log_d: u32, stages: u32) -> Vec<Diagonals> {
    let layers: Vec<_> = (1..=log_d)
        .map(|i| layer(encoder, 1 << log_d, 1 << i))
        .collect();
    group(&layers, &stage_sizes(log_d, stages))
}

/// Bit-reversed coefficients to slots, the inverse of [`slots_to_coeffs`].
pub(crate) fn coeffs_to_slots(encoder: &Encoder, log_d: u32, stages: u32) -> Vec<Diagonals> {
    let layers: Vec<_> = (1..=log_d)
        .rev()
        .map(|i| inverse_layer(encoder, 1 << log_d, 1 << i))
        .collect();
    group(&layers, &stage_sizes(log_d, stages))
}

fn group(layers: &[Diagonals], sizes: &[u32]) -> Vec<Diagonals> {
    let mut rest = layers.iter();
    sizes
        .iter()
        .map(|&n| {
            let first = rest.next().expect("sizes add up to the layers").clone();
            rest.by_ref()
                .take(n as usize - 1)
                .fold(first, |acc, next| next.compose(&acc))
        })
        .collect()
}

/// (u, v) -> (u + w v, u - w v) at distance len/2.
fn layer(encoder: &Encoder, d: usize, len: usize) -> Diagonals {
    let mut out = Diagonals::new(d);
    let half = len / 2;
    for i in 0..d {
        let j = i % len;
        if j < half {
            out.add(0, i, Complex64::ONE);
            out.add(half as i64, i, encoder.twiddle(len, j));
        } else {
            out.add(-(half as i64), i, Complex64::ONE);
            out.add(0, i, -encoder.twiddle(len, j - half));
        }
    }
    out
}

/// (a, b) -> ((a + b) / 2, conj(w) (a - b) / 2).
fn inverse_layer(encoder: &Encoder, d: usize, len: usize) -> Diagonals {
    let mut out = Diagonals::new(d);
    let half = len / 2;
    for i in 0..d {
        let j = i % len;
        if j < half {
            out.add(0, i, Complex64::new(0.5, 0.0));
            out.add(half as i64, i, Complex64::new(0.5, 0.0));
        } else {
            let w = encoder.twiddle(len, j - half).conj() * 0.5;
            out.add(-(half as i64), i, w);
            out.add(0, i, -w);
        }
    }
    out
}
