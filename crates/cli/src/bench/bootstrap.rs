//! `taciturn bench bootstrap`: time, precision and memory of one bootstrap.

use std::time::Instant;

use anyhow::{Result, ensure};
use serde::Serialize;
use taciturn_circuits::{
    BootstrapShape, Bootstrapper, MESSAGE_RATIO_BITS, Values, slots_to_coeffs_levels,
};
use taciturn_ckks::{Complex64, Encoder, Evaluator, KeyRequest, Level, Parameters};
use taciturn_secret::Keyholder;

use super::device_kernels::{self, KernelRow, Limits, REPEATS};
use super::timing;
use crate::args::BootstrapArgs;
use crate::device::{self, GpuReport};
use crate::failure::usage;
use crate::rows::Rows;
use crate::setup::parameters;
use crate::system;

/// Precision of one input vector, in bits of its worst and mean absolute error.
#[derive(Serialize)]
struct Precision {
    /// Which vector.
    input: &'static str,
    /// Worst slot.
    bits_min: f64,
    /// Mean over the slots.
    bits_mean: f64,
}

/// What `bench bootstrap` prints.
#[derive(Serialize)]
struct Report {
    /// Name of the parameter set.
    params: String,
    /// Backend of the ring.
    backend: &'static str,
    /// What computed, where that was a GPU.
    gpu: Option<GpuReport>,
    /// Threads.
    threads: usize,
    /// log2 of the distinct slots.
    log_slots: u32,
    /// Whether they are complex.
    complex: bool,
    /// Median time.
    bootstrap_ms: f64,
    /// Fastest run.
    bootstrap_ms_min: f64,
    /// Slowest run.
    bootstrap_ms_max: f64,
    /// Kernel by kernel, without a recording; where a device computes.
    plain_ms: Option<f64>,
    /// Kernels of one bootstrap.
    launches: Option<usize>,
    /// Why the bootstrap was not recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_recorded: Vec<&'static str>,
    /// Why its kernels are not queued as one graph.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    no_graph: Vec<String>,
    /// Of the device.
    limits: Option<Limits>,
    /// Each kernel of one bootstrap.
    kernels: Vec<KernelRow>,
    /// Refreshes to other levels.
    levels: Vec<LevelReport>,
    /// Level of the result, those that the next bootstrap's SlotsToCoeffs takes included.
    output_level: usize,
    /// Levels that SlotsToCoeffs takes.
    input_level: usize,
    /// Bits of scale per level.
    level_bits: u32,
    /// Bits of the worst slot on uniform reals.
    bits_min: f64,
    /// Mean bits on uniform reals.
    bits_mean: f64,
    /// Uniform, constant and one-hot vectors.
    precision: Vec<Precision>,
    /// log2(QP).
    log_qp: f64,
    /// Time for all keys.
    keygen_s: f64,
    /// Keys as stored.
    key_bytes: usize,
    /// Keys in memory.
    key_resident_bytes: usize,
    /// Peak memory of the process.
    peak_rss_bytes: u64,
}

/// Bootstraps to one level.
#[derive(Serialize)]
struct LevelReport {
    /// Of the result.
    level: usize,
    /// Median time.
    bootstrap_ms: f64,
    /// Fastest run.
    bootstrap_ms_min: f64,
    /// Slowest run.
    bootstrap_ms_max: f64,
}

impl LevelReport {
    /// Of sorted times.
    fn new(level: usize, times: &[f64]) -> Self {
        Self {
            level,
            bootstrap_ms: timing::median(times),
            bootstrap_ms_min: timing::shortest(times),
            bootstrap_ms_max: times[times.len() - 1],
        }
    }
}

/// Runs the command.
pub fn run(args: &BootstrapArgs) -> Result<()> {
    let host = parameters(&args.params)?;
    let (params, gpu) = device::place(&host, &args.device)?;
    let log_slots = args.slots.unwrap_or(params.log_slots());
    let expected = |flag: &str, most: usize, got: usize| {
        usage(format!(
            "{flag}: expected at most {most} with {}, got {got}",
            params.name()
        ))
    };
    if log_slots > params.log_slots() {
        return Err(expected(
            "--slots",
            params.log_slots() as usize,
            log_slots as usize,
        ));
    }
    for (flag, level) in std::iter::once(("--level", args.level))
        .chain(args.levels.iter().map(|&level| ("--levels", level)))
    {
        if level > params.max_level().0 {
            return Err(expected(flag, params.max_level().0, level));
        }
    }
    let report = measure(
        &host,
        &params,
        gpu,
        log_slots,
        args.complex,
        Level(args.level),
        &args.levels,
        args.runs.get(),
        &mut Rows::open(args.rows.rows.as_deref())?,
    )?;
    if args.json {
        return system::print_json(&report);
    }
    system::print_text(&format!(
        "{}, {} threads of {}: 2^{} slots to level {} in {:.1} ms ({:.1} to {:.1}); \
         {:.1} bits mean, {:.1} worst; keys {}\n",
        report.params,
        report.threads,
        report.backend,
        report.log_slots,
        report.output_level,
        report.bootstrap_ms,
        report.bootstrap_ms_min,
        report.bootstrap_ms_max,
        report.bits_mean,
        report.bits_min,
        system::gigabytes(report.key_bytes as u64)
    ))
}

/// Measures bootstraps of 2^log_slots slots to a level, and to some others.
#[expect(clippy::too_many_arguments, reason = "what the flags say, checked")]
fn measure(
    host: &Parameters,
    params: &Parameters,
    gpu: Option<GpuReport>,
    log_slots: u32,
    complex: bool,
    target: Level,
    others: &[usize],
    runs: usize,
    rows: &mut Rows,
) -> Result<Report> {
    let mut client = Keyholder::new(host)?;
    let encoder = Encoder::new(params);
    let shape = BootstrapShape {
        log_slots,
        bound: 1.0,
        values: if complex {
            Values::Complex
        } else {
            Values::Real
        },
        message_ratio_bits: MESSAGE_RATIO_BITS,
    };
    let bootstrapper = Bootstrapper::new(&encoder, shape)?;
    let mut request = KeyRequest::default();
    for level in others.iter().copied().chain([target.0]) {
        bootstrapper.request_keys(Level(level), &mut request)?;
    }
    let start = Instant::now();
    let on_host = client.evaluator(&request)?;
    let ev = Evaluator::new(params, on_host.keys().clone());
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
        let ct = client.encrypt(&values, Level(input_level))?.expand(params);
        let mut out = None;
        let refresh = || {
            out = Some(bootstrapper.bootstrap(&encoder, &ev, &ct, target)?);
            Ok::<_, anyhow::Error>(())
        };
        if times.is_empty() {
            times = timing::sorted_queued_ms(params.ring(), runs, 1, refresh)?;
        } else {
            let mut refresh = refresh;
            refresh()?;
        }
        let out = out.expect("the bootstrap ran");
        if gpu.is_some() && precision.is_empty() {
            let bootstrapper = Bootstrapper::new(client.encoder(), shape)?;
            let want = bootstrapper.bootstrap(client.encoder(), &on_host, &ct, target)?;
            ensure!(
                out.polys == want.polys,
                "bootstrap: the words of {} differ from the processor's",
                params.ring().backend_name()
            );
        }
        if precision.is_empty() {
            rows.add("bootstrap", &LevelReport::new(target.0, &times))?;
        }
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
    // Before other levels are recorded.
    let profile = params.ring().queue().map(|queue| {
        let limits = device_kernels::limits(&queue.limits());
        let times = ev.kernel_times(REPEATS).into_iter().next();
        (limits, times.unwrap_or_default())
    });
    let (limits, kernels) = match &profile {
        Some((limits, times)) => (Some(*limits), device_kernels::rows(times, limits)),
        None => (None, Vec::new()),
    };
    device_kernels::add_rows(rows, limits.as_ref(), &kernels)?;
    let input = client
        .encrypt(&vec![Complex64::ZERO; d], Level(input_level))?
        .expand(params);
    let timed = |ev: &Evaluator, level: usize| {
        timing::sorted_queued_ms(params.ring(), runs, 1, || {
            let out = bootstrapper.bootstrap(&encoder, ev, &input, Level(level));
            out.map(drop)
        })
    };
    let plain_ms = match &profile {
        Some(_) => {
            let plain = ev.clone().without_recordings();
            Some(timing::median(&timed(&plain, target.0)?))
        }
        None => None,
    };
    let level_report = |&level: &usize| -> Result<LevelReport> {
        let report = LevelReport::new(level, &timed(&ev, level)?);
        rows.add("level", &report)?;
        Ok(report)
    };
    let levels = others.iter().map(level_report).collect::<Result<_>>()?;
    Ok(Report {
        plain_ms,
        launches: profile
            .as_ref()
            .map(|(_, times)| times.iter().map(|time| time.launches).sum()),
        not_recorded: ev.refused_recordings(),
        no_graph: ev.queued_singly(),
        kernels,
        limits,
        levels,
        params: params.name().into(),
        backend: params.ring().backend_name(),
        gpu,
        threads: system::threads(),
        log_slots,
        complex,
        bootstrap_ms: timing::median(&times),
        bootstrap_ms_min: timing::shortest(&times),
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
        peak_rss_bytes: system::peak_rss_bytes(),
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
