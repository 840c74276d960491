//! The canonical embedding's fast transform as a product of sparse matrices.

use num_complex::Complex64;
use taciturn_ckks::Encoder;

use crate::Diagonals;

/// How many of the log2(d) butterfly layers go into each stage: as even as possible, later stages taking what is left.
fn stage_sizes(layers: u32, stages: u32) -> Vec<u32> {
    (0..stages)
        .map(|s| (layers * (s + 1)) / stages - (layers * s) / stages)
        .filter(|&n| n > 0)
        .collect()
}

/// Slots to bit-reversed coefficients, stage by stage in the order of application: SlotsToCoeffs.
pub(crate) fn slots_to_coeffs(encoder: &Encoder, log_d: u32, stages: u32) -> Vec<Diagonals> {
    group(&layers(encoder, log_d), &stage_sizes(log_d, stages))
}

/// Slots of a real value of period 2^log_d to the bit-reversed coefficients of 2^(log_d - 1) complex slots: a first layer takes `(v, w)` to
/// `(v + iw, v + iw)`.
pub(crate) fn real_slots_to_coeffs(encoder: &Encoder, log_d: u32, stages: u32) -> Vec<Diagonals> {
    let (d, half) = (1usize << log_d, 1i64 << (log_d - 1));
    let mut fold = Diagonals::new(d);
    for i in 0..d {
        let (own, other) = if (i as i64) < half {
            (Complex64::ONE, Complex64::I)
        } else {
            (Complex64::I, Complex64::ONE)
        };
        fold.add(0, i, own);
        fold.add(half, i, other);
    }
    let mut sizes = stage_sizes(log_d, stages);
    sizes[0] -= 1;
    let folded_alone = sizes[0] == 0;
    if folded_alone {
        sizes.remove(0);
    }
    let mut matrices: Vec<Diagonals> = group(&layers(encoder, log_d - 1), &sizes)
        .iter()
        .map(|m| m.with_period(d))
        .collect();
    if folded_alone {
        matrices.insert(0, fold);
    } else {
        matrices[0] = matrices[0].compose(&fold);
    }
    matrices
}

/// Bit-reversed coefficients to slots, the inverse of [`slots_to_coeffs`].
pub(crate) fn coeffs_to_slots(encoder: &Encoder, log_d: u32, stages: u32) -> Vec<Diagonals> {
    let layers: Vec<_> = (1..=log_d)
        .rev()
        .map(|i| inverse_layer(encoder, 1 << log_d, 1 << i))
        .collect();
    // The first layers' offsets wrap around the period, so that the first stage bears more of them.
    let mut sizes = stage_sizes(log_d, stages);
    sizes.reverse();
    group(&layers, &sizes)
}

/// [`coeffs_to_slots`] to vectors of twice the period whose real part is `(Re z, Im z)`.
pub(crate) fn coeffs_to_real_slots(encoder: &Encoder, log_d: u32, stages: u32) -> Vec<Diagonals> {
    let d = 1usize << log_d;
    let mut turn = Diagonals::new(2 * d);
    for i in 0..2 * d {
        turn.add(0, i, if i < d { Complex64::ONE } else { -Complex64::I });
    }
    let mut matrices = coeffs_to_slots(encoder, log_d, stages);
    match matrices.pop() {
        Some(last) => matrices.push(turn.compose(&last.with_period(2 * d))),
        None => matrices.push(turn),
    }
    matrices
}

fn layers(encoder: &Encoder, log_d: u32) -> Vec<Diagonals> {
    (1..=log_d)
        .map(|i| layer(encoder, 1 << log_d, 1 << i))
        .collect()
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
