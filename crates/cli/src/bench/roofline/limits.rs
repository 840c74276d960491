//! What the machine can do at most, measured: memory traffic and multiply-adds.

use std::hint::black_box;
use std::time::Instant;

use rayon::prelude::*;
use serde::Serialize;
use taciturn_ring::{Form, Poly, Ring};

/// Bytes of the last cache where its size is unknown.
const DEFAULT_CACHE: usize = 64 << 20;
const RUNS: usize = 7;
/// Rounds of the multiply-add loop.
const ROUNDS: usize = 4_000_000;
/// Sums at a time: more than latency times throughput of any processor, fewer than there are registers.
const SUMS: usize = 16;

/// The limits with some number of threads.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Limits {
    /// Threads.
    pub threads: usize,
    /// Of a triad `a = b + s·c` over vectors larger than the last cache: two words read, one written.
    pub bytes_per_second: f64,
    /// 52-bit multiply-adds of one word each.
    pub multiply_adds_per_second: f64,
    /// The instruction that they were measured with.
    pub instruction: &'static str,
}

/// Measures them on the current threads; memory in the polynomials of a ring.
pub fn measure(ring: &Ring) -> Limits {
    let threads = rayon::current_num_threads();
    let (instruction, multiply_adds_per_second) = multiply_adds(threads);
    Limits {
        threads,
        bytes_per_second: triad(ring),
        multiply_adds_per_second,
        instruction,
    }
}

/// The best of some runs, in units per second: other work on the machine only slows it down.
fn best(units: f64, mut f: impl FnMut()) -> f64 {
    let mut shortest = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        f();
        shortest = shortest.min(start.elapsed().as_secs_f64());
    }
    units / shortest
}

/// Over polynomials' memory, whose large pages a plain vector would not have.
fn triad(ring: &Ring) -> f64 {
    let basis = ring.full_basis();
    let polys = (2 * last_cache_bytes()).div_ceil(basis.len() * ring.n() * size_of::<u64>());
    let vector = || -> Vec<Poly> {
        let poly = || ring.zero(basis, Form::Evaluation);
        (0..polys).map(|_| poly()).collect()
    };
    let (mut a, b, c) = (vector(), vector(), vector());
    let words = polys * basis.len() * ring.n();
    let scale = black_box(3.0);
    let rate = best((3 * words * size_of::<u64>()) as f64, || {
        let operands = b.iter().zip(&c);
        let chunks = a.iter_mut().zip(operands).flat_map(|(a, (b, c))| {
            let operands = b.words().chunks(ring.n()).zip(c.words().chunks(ring.n()));
            a.words_mut().chunks_mut(ring.n()).zip(operands)
        });
        let chunks: Vec<_> = chunks.collect();
        chunks.into_par_iter().for_each(|(a, (b, c))| {
            for (a, (&b, &c)) in a.iter_mut().zip(b.iter().zip(c)) {
                *a = (f64::from_bits(b) + scale * f64::from_bits(c)).to_bits();
            }
        });
        black_box(&mut a);
    });
    drop((a, b, c));
    taciturn_ring::trim_pool();
    rate
}

/// Bytes of the third-level cache.
fn last_cache_bytes() -> usize {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index3/size");
    let kib = text.ok().and_then(|text| {
        let text = text.trim().strip_suffix('K')?.to_owned();
        text.parse::<usize>().ok()
    });
    kib.map_or(DEFAULT_CACHE, |kib| kib << 10)
}

fn multiply_adds(threads: usize) -> (&'static str, f64) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512ifma")
    {
        let units = (threads * ROUNDS * SUMS * 8) as f64;
        let rate = best(units, || {
            // SAFETY: the processor has these instructions.
            each_thread(threads, || unsafe { ifma() });
        });
        return ("AVX-512 IFMA, eight words", rate);
    }
    // A product of 64-bit words gives both halves at once.
    let units = (threads * ROUNDS * SUMS * 2) as f64;
    ("64-bit product", best(units, || each_thread(threads, wide)))
}

fn each_thread(threads: usize, f: impl Fn() + Sync) {
    (0..threads).into_par_iter().for_each(|_| f());
}

/// Sums that do not depend on each other.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512ifma")]
fn ifma() {
    use std::arch::x86_64::{_mm512_madd52lo_epu64, _mm512_set1_epi64};
    let (a, b) = (
        _mm512_set1_epi64(black_box(0x000f_1234_5678_9abc)),
        _mm512_set1_epi64(black_box(0x000e_cba9_8765_4321)),
    );
    let mut sums = [a; SUMS];
    for _ in 0..ROUNDS {
        for sum in &mut sums {
            *sum = _mm512_madd52lo_epu64(*sum, a, b);
        }
    }
    black_box(sums);
}

fn wide() {
    let a = black_box(0x9e37_79b9_7f4a_7c15_u64);
    let mut words = [a; SUMS];
    for _ in 0..ROUNDS {
        for word in &mut words {
            let product = u128::from(*word) * u128::from(a);
            *word = product as u64 ^ (product >> 64) as u64;
        }
    }
    black_box(words);
}
