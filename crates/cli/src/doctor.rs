//! `taciturn doctor`: what this machine offers, and what will run on it.

use std::fmt::Write;

use anyhow::Result;
use serde::Serialize;
use taciturn_ckks::{Parameters, named, names};
use taciturn_models::Selection;

use crate::args::{DoctorArgs, ModelArgs};
use crate::checkpoint::Loaded;
use crate::costs::Costs;
use crate::device::{self, GpuReport};
use crate::setup::{Setup, Wanted};
use crate::strategy::Strategy;
use crate::system::{self, Memory};

/// Tokens that the demonstration model is planned for.
const CONTEXT: usize = 32;

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    version: &'static str,
    arch: &'static str,
    /// Backend of the ring that this processor runs.
    backend: &'static str,
    threads: usize,
    /// Whether a GPU can be used.
    gpu: bool,
    gpus: Vec<GpuReport>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_error: Option<String>,
    memory_bytes: Memory,
    params: Vec<SetReport>,
}

/// One parameter set.
#[derive(Serialize)]
struct SetReport {
    name: String,
    log_n: u32,
    log_qp: f64,
    security_bits: u32,
    /// Peak memory of the demonstration model under it; absent where it cannot be planned.
    demonstration_bytes: Option<u64>,
    /// Why it cannot be planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    demonstration_error: Option<String>,
    fits: Option<bool>,
}

/// Runs the command.
pub fn run(args: &DoctorArgs) -> Result<()> {
    let memory = system::memory();
    let demonstration = Loaded::new(&ModelArgs { model: None });
    let mut backend = "";
    let mut sets = Vec::new();
    for name in names() {
        let params = named(name)?;
        backend = params.ring().backend_name();
        let peak = match &demonstration {
            Ok(loaded) => demonstration_peak(loaded, &params).map_err(|error| format!("{error:#}")),
            Err(error) => Err(format!("{error:#}")),
        };
        let bytes = peak.as_ref().ok().copied();
        sets.push(SetReport {
            name: name.to_owned(),
            log_n: params.literal().log_n,
            log_qp: params.log_qp(),
            security_bits: params.security_bits(),
            demonstration_bytes: bytes,
            demonstration_error: peak.err(),
            fits: bytes.map(|bytes| bytes <= memory.available),
        });
    }
    let (gpus, gpu_error) = match device::gpus() {
        Ok(gpus) => (gpus, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        arch: std::env::consts::ARCH,
        backend,
        threads: system::threads(),
        gpu: !gpus.is_empty(),
        gpus,
        gpu_error,
        memory_bytes: memory,
        params: sets,
    };
    if args.json {
        return system::print_json(&report);
    }
    system::print_text(&text(&report))
}

/// Peak memory of an exchange with the demonstration model.
fn demonstration_peak(loaded: &Loaded, params: &Parameters) -> Result<u64> {
    let context = CONTEXT.min(loaded.longest_context());
    let wanted = Wanted {
        context,
        strategy: Strategy::default(),
        selection: &Selection::default(),
    };
    let setup = Setup::new(loaded, params, Costs::load(params)?, &wanted)?;
    Ok(setup.memory.peak)
}

fn text(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "taciturn {} on {}", report.version, report.arch);
    let _ = writeln!(out, "arithmetic   {}", report.backend);
    let _ = writeln!(out, "threads      {}", report.threads);
    for gpu in &report.gpus {
        let _ = writeln!(
            out,
            "GPU          {}, compute capability {}, {}; use it with --device cuda",
            gpu.name,
            gpu.capability,
            system::gigabytes(gpu.memory_bytes)
        );
    }
    if report.gpus.is_empty() {
        let reason = report
            .gpu_error
            .as_deref()
            .unwrap_or("the driver sees none");
        let _ = writeln!(out, "GPU          none: {reason}");
    }
    let _ = writeln!(
        out,
        "memory       {} available of {}",
        system::gigabytes(report.memory_bytes.available),
        system::gigabytes(report.memory_bytes.total)
    );
    for set in &report.params {
        let security = match set.security_bits {
            0 => "no security, tests only".to_owned(),
            bits => format!("{bits} bits of security"),
        };
        let fit = match (set.demonstration_bytes, &set.demonstration_error) {
            (Some(bytes), _) => format!(
                "demonstration model takes {}: {}",
                system::gigabytes(bytes),
                if set.fits == Some(true) {
                    "fits"
                } else {
                    "does not fit"
                }
            ),
            (None, Some(error)) => format!("demonstration model cannot be planned: {error}"),
            (None, None) => String::new(),
        };
        let _ = writeln!(
            out,
            "{:<12} N = 2^{}, log2(QP) = {:.0}, {security}; {fit}",
            set.name, set.log_n, set.log_qp
        );
    }
    out
}
