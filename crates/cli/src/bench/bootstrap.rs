//! `taciturn bench bootstrap`: time, precision and memory of one bootstrap.

use std::time::Instant;

use anyhow::Result;
use serde::Serialize;
use taciturn_circuits::{BootstrapShape, Bootstrapper, slots_to_coeffs_levels};
use taciturn_ckks::{Complex64, KeyRequest, Level, Parameters};

use super::{keys::Client, timing};

/// Precision of one input vector, in bits of its worst and mean absolute error.
#[derive(Serialize)]
pub struct Precision {
    /// Which vector.
    pub input: &'static str,
    /// Worst slot.
    pub bits_min: f64,
    /// Mean over the slots.
    pub bits_mean: f64,
}

/// What `bench bootstrap` prints.
#[derive(Serialize)]
pub struct Report {
    /// Name of the parameter set.
    pub params: String,
    /// Backend of the ring.
    pub backend: &'static str,
    /// Threads.
    pub threads: usize,
    /// log2 of the distinct slots.
    pub log_slots: u32,
    /// Whether they are complex.
    pub complex: bool,
    /// Median time.
    pub bootstrap_ms: f64,
    /// Fastest run.
    pub bootstrap_ms_min: f64,
    /// Slowest run.
    pub bootstrap_ms_max: f64,
    /// Level of the result, those that the next bootstrap's SlotsToCoeffs takes included.
    pub output_level: usize,
    /// Levels that SlotsToCoeffs takes.
    pub input_level: usize,
    /// Bits of scale per level.
    pub level_bits: u32,
    /// Bits of the worst slot on uniform reals.
    pub bits_min: f64,
    /// Mean bits on uniform reals.
    pub bits_mean: f64,
    /// Uniform, constant and one-hot vectors.
    pub precision: Vec<Precision>,
    /// log2(QP).
    pub log_qp: f64,
    /// Time for all keys.
    pub keygen_s: f64,
    /// Keys as stored.
    pub key_bytes: usize,
    /// Keys in memory.
    pub key_resident_bytes: usize,
    /// Peak memory of the process.
    pub peak_rss_bytes: u64,
}

/// Measures bootstraps of 2^log_slots slots to a level.
pub fn run(
    params: &Parameters,
    log_slots: u32,
    complex: bool,
    target: Level,
    runs: usize,
) -> Result<Report> {
    let mut client = Client::new(params)?;
    let bootstrapper = Bootstrapper::new(
        &client.encoder,
        BootstrapShape {
            log_slots,
            bound: 1.0,
            complex,
        },
    )?;
    let mut request = KeyRequest::default();
    bootstrapper.request_keys(target, &mut request);
    let start = Instant::now();
    let ev = client.evaluator(&request)?;
    let keygen_s = start.elapsed().as_secs_f64();
    let input_level = slots_to_coeffs_levels(log_slots);
    let d = 1usize << log_slots;
    let mut one_hot = vec![Complex64::ZERO; d];
    one_hot[d / 3] = Complex64::ONE;
    let inputs = [
        ("uniform", uniform(d, complex)),
        ("constant 0.9", vec![Complex64::new(0.9, 0.0); d]),
        ("one-hot", one_hot),
    ];
    let mut precision = Vec::new();
    let mut times = Vec::new();
    let mut output_level = target;
    for (input, values) in inputs {
        let ct = client.encrypt(&values, Level(input_level))?;
        let mut out = None;
        let refresh = || {
            out = Some(bootstrapper.bootstrap(&client.encoder, &ev, &ct, target)?);
            Ok::<_, anyhow::Error>(())
        };
        if times.is_empty() {
            times = timing::sorted_ms(runs, refresh)?;
        } else {
            let mut refresh = refresh;
            refresh()?;
        }
        let out = out.expect("the bootstrap ran");
        output_level = params.level_of(out.basis()).unwrap_or(target);
        let have = client.decrypt(&out, d)?;
        let errors: Vec<f64> = have
            .iter()
            .zip(&values)
            .map(|(a, b)| (a - b).norm())
            .collect();
        let worst = errors.iter().fold(0f64, |a, &b| a.max(b));
        let mean = errors.iter().sum::<f64>() / d as f64;
        precision.push(Precision {
            input,
            bits_min: -worst.log2(),
            bits_mean: -mean.log2(),
        });
    }
    Ok(Report {
        params: params.name().into(),
        backend: params.ring().backend_name(),
        threads: rayon::current_num_threads(),
        log_slots,
        complex,
        bootstrap_ms: times[times.len() / 2],
        bootstrap_ms_min: times[0],
        bootstrap_ms_max: times[times.len() - 1],
        output_level: output_level.0,
        input_level,
        level_bits: params.literal().level_bits,
        bits_min: precision[0].bits_min,
        bits_mean: precision[0].bits_mean,
        precision,
        log_qp: params.log_qp(),
        keygen_s,
        key_bytes: ev.keys().stored_bytes(),
        key_resident_bytes: ev.keys().resident_bytes(),
        peak_rss_bytes: timing::peak_rss_bytes(),
    })
}

/// Reproducible values in the unit square.
fn uniform(d: usize, complex: bool) -> Vec<Complex64> {
    let mut x = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        x = x
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (x >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..d)
        .map(|_| Complex64::new(next(), if complex { next() } else { 0.0 }))
        .collect()
}
