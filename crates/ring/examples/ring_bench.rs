//! Times the ring's operations on this machine and prints one JSON object.
//!
//! `cargo run --release -p taciturn-ring --example ring_bench [portable] [THREADS]`

use std::time::Instant;
use taciturn_ring::{
    BackendKind, Basis, Form, Hoisted, IntegerPoly, Poly, Ring, Rotation, primes_near,
};

const LOG_N: u32 = 16;
const LIMBS_Q: usize = 28;
const LIMBS_P: usize = 9;
const DIGITS: usize = 3;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let portable = arguments.iter().any(|a| a == "portable");
    let threads = arguments.iter().find_map(|a| a.parse().ok()).unwrap_or(1);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()?;
    let mut moduli = primes_near(2f64.powi(50), LOG_N, LIMBS_P + 12, &[])?;
    moduli.rotate_left(LIMBS_P);
    moduli.splice(
        12..12,
        primes_near(2f64.powi(40), LOG_N, LIMBS_Q - 12, &[])?,
    );
    let kind = if portable {
        BackendKind::Portable
    } else {
        BackendKind::Auto
    };
    let ring = Ring::with_backend(LOG_N, &moduli, kind)?;
    pool.install(|| report(&ring, threads));
    Ok(())
}

/// The time in milliseconds of one call: the lower quartile, since other work on the machine only adds.
fn time<T>(mut call: impl FnMut() -> T) -> f64 {
    let start = Instant::now();
    drop(call());
    let runs = (0.4 / start.elapsed().as_secs_f64().max(1e-6)).clamp(5.0, 2000.0) as usize;
    let mut times: Vec<f64> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            drop(call());
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[runs / 4]
}

/// The times in milliseconds of a forward and of an inverse transform, as [`time`] takes them.
fn transforms(ring: &Ring, limbs: Basis, runs: usize) -> (f64, f64) {
    let mut a = ring.uniform(&[2; 32], limbs);
    let (mut forward, mut inverse) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let start = Instant::now();
        ring.intt(&mut a);
        let middle = Instant::now();
        ring.ntt(&mut a);
        inverse.push((middle - start).as_secs_f64() * 1e3);
        forward.push(middle.elapsed().as_secs_f64() * 1e3);
    }
    forward.sort_by(f64::total_cmp);
    inverse.sort_by(f64::total_cmp);
    (forward[runs / 4], inverse[runs / 4])
}

fn report(ring: &Ring, threads: usize) {
    let q = Basis::range(0..LIMBS_Q);
    let p = Basis::range(LIMBS_Q..LIMBS_Q + LIMBS_P);
    let all = q.union(p);
    let random = |seed: u8, basis| ring.uniform(&[seed; 32], basis);
    let mut fields: Vec<(&str, f64)> = Vec::new();
    let mut measure = |name, time: f64| fields.push((name, time));

    // One limb of 50 and one of 40 bits, which stay in the cache.
    let (forward, inverse) = transforms(ring, Basis::single(0), 400);
    measure("ntt_50_bits_ms", forward);
    measure("intt_50_bits_ms", inverse);
    let (forward, inverse) = transforms(ring, Basis::single(12), 400);
    measure("ntt_40_bits_ms", forward);
    measure("intt_40_bits_ms", inverse);
    let (forward, inverse) = transforms(ring, all, 15);
    measure("ntt_ms", forward / all.len() as f64);
    measure("intt_ms", inverse / all.len() as f64);
    let weight = IntegerPoly::from(vec![-77; ring.n()]);
    let five = Basis::range(12..17);
    let of_integers = || ring.transform_integers(&weight, five);
    measure("transform_integers_5_limbs_ms", time(of_integers));

    let x = random(3, q);
    let mut acc = random(4, q);
    measure("add_ms", time(|| ring.add_assign(&mut acc, &x)));
    measure("mul_ms", time(|| ring.mul_assign(&mut acc, &x)));
    measure("mul_add_ms", time(|| ring.mul_add_assign(&mut acc, &x, &x)));
    measure("automorphism_ms", time(|| ring.automorphism(&x, 5)));
    measure("uniform_ms", time(|| random(5, q)));
    let small = vec![-77; ring.n()];
    measure("from_signed_ms", time(|| ring.from_signed(&small, q)));

    let mut coefficient = x.clone();
    ring.intt(&mut coefficient);
    let digit = |j: usize| Basis::range(j * LIMBS_Q / DIGITS..(j + 1) * LIMBS_Q / DIGITS);
    let first = ring.restrict(&coefficient, digit(0));
    measure("convert_ms", time(|| ring.convert(&first, all)));
    measure(
        "extend_digit_ms",
        time(|| ring.extend_digit(&coefficient, &x, digit(0), all)),
    );
    let all_digits: Vec<Basis> = (0..DIGITS).map(digit).collect();
    let decompose = |x: &Poly| ring.decompose(x, &all_digits, all);
    let digits = decompose(&x);
    measure("decompose_ms", time(|| decompose(&x)));
    let key: Vec<(Poly, Poly)> = (0..DIGITS as u8)
        .map(|j| (random(10 + 2 * j, all), random(11 + 2 * j, all)))
        .collect();
    measure(
        "key_product_ms",
        time(|| ring.key_product(&digits, &key, all)),
    );
    measure(
        "key_product_automorphism_ms",
        time(|| ring.key_product_automorphism(&digits, &key, 5, all)),
    );
    // Sums of rotations: a step of a trace, and more rotations with keys of one digit; keys are read from memory.
    let keys: Vec<Vec<(Poly, Poly)>> = (0..8)
        .map(|i| {
            let half = |j: u8| random(20 + 6 * i + j, all);
            (0..3).map(|j| (half(2 * j), half(2 * j + 1))).collect()
        })
        .collect();
    let rotations = |digits: usize, count: usize| -> Vec<Rotation<'_>> {
        let keys =
            keys.iter()
                .take(count)
                .zip([5, 25, 125, 625, 3125, 15625, 78125, 390625 % 131072]);
        keys.map(|(key, galois)| Rotation {
            galois,
            key: &key[..digits],
        })
        .collect()
    };
    for (name, count, digits) in [
        ("sum_of_3_rotations_ms", 3, &digits[..]),
        ("sum_of_8_one_digit_rotations_ms", 8, &digits[..1]),
    ] {
        let hoisted = Hoisted {
            value: [&x, &x],
            digits,
        };
        let rotations = rotations(digits.len(), count);
        measure(
            name,
            time(|| ring.sum_of_rotations(hoisted, &rotations, all)),
        );
    }
    let product = ring.key_product(&digits, &key, all);
    measure("mod_down_ms", time(|| ring.mod_down(&product.0, p)));
    measure(
        "rescale_ms",
        time(|| ring.mod_down(&x, Basis::single(LIMBS_Q - 1))),
    );
    let one = ring.restrict(&coefficient, Basis::single(0));
    measure("raise_ms", time(|| ring.raise(&one, q)));
    let rotate = |c: &(Poly, Poly), digits: &[Basis], special: Basis| {
        let target = c.0.basis().union(special);
        let digits = ring.decompose(&c.1, digits, target);
        let (a, b) = ring.key_product_automorphism(&digits, &key, 5, target);
        let mut out = ring.mod_down_all(&[a, b], special);
        ring.add_automorphism_assign(&mut out[0], &c.0, 5);
        out
    };
    let ciphertext = (x.clone(), random(6, q));
    assert_eq!(ciphertext.0.form(), Form::Evaluation);
    measure("rotate_ms", time(|| rotate(&ciphertext, &all_digits, p)));
    // As at a model's levels: one digit of five limbs, five special ones.
    let (limbs, special) = (
        Basis::single(0).union(Basis::range(12..16)),
        Basis::range(28..33),
    );
    let low = (
        ring.restrict(&x, limbs),
        ring.restrict(&ciphertext.1, limbs),
    );
    let at_five = || rotate(&low, &[limbs], special);
    measure("rotate_5_limbs_ms", time(at_five));
    let dot = || ring.dot_integers(&[([&low.0, &low.1], &weight)], limbs);
    measure("plain_product_5_limbs_ms", time(dot));

    let fields: Vec<String> = fields
        .iter()
        .map(|(name, ms)| format!("\"{name}\": {ms:.4}"))
        .collect();
    println!(
        "{{\"backend\": \"{}\", \"threads\": {threads}, \"log_n\": {LOG_N}, \"limbs_q\": {LIMBS_Q}, \"limbs_p\": {LIMBS_P}, {}}}",
        ring.backend_name(),
        fields.join(", ")
    );
}
