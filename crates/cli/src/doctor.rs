//! `taciturn doctor`: what this machine offers, and what will run on it.

use std::fmt::Write;

use anyhow::Result;
use serde::Serialize;
use taciturn_ckks::{named, names};

use crate::args::{DoctorArgs, ModelArgs};
use crate::checkpoint::Loaded;
use crate::costs::Costs;
use crate::setup::Setup;
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
    gpu: bool,
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
    /// Peak memory of the demonstration model under it; absent where that model is not here.
    demonstration_bytes: Option<u64>,
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
        let bytes = demonstration.as_ref().ok().and_then(|loaded| {
            let costs = Costs::load(&params).ok()?;
            let context = CONTEXT.min(loaded.longest_context());
            Some(
                Setup::new(loaded, &params, costs, context)
                    .ok()?
                    .memory
                    .peak,
            )
        });
        sets.push(SetReport {
            name: name.to_owned(),
            log_n: params.literal().log_n,
            log_qp: params.log_qp(),
            security_bits: params.security_bits(),
            demonstration_bytes: bytes,
            fits: bytes.map(|bytes| bytes <= memory.available),
        });
    }
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        arch: std::env::consts::ARCH,
        backend,
        threads: system::threads(),
        gpu: false,
        memory_bytes: memory,
        params: sets,
    };
    if args.json {
        return system::print_json(&report);
    }
    system::print_text(&text(&report))
}

fn text(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "taciturn {} on {}", report.version, report.arch);
    let _ = writeln!(out, "arithmetic   {}", report.backend);
    let _ = writeln!(out, "threads      {}", report.threads);
    let _ = writeln!(out, "GPU          not used by this version");
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
        let fit = match (set.demonstration_bytes, set.fits) {
            (Some(bytes), Some(true)) => {
                format!(
                    "demonstration model takes {}: fits",
                    system::gigabytes(bytes)
                )
            }
            (Some(bytes), _) => {
                format!(
                    "demonstration model takes {}: does not fit",
                    system::gigabytes(bytes)
                )
            }
            _ => "demonstration model not here".to_owned(),
        };
        let _ = writeln!(
            out,
            "{:<12} N = 2^{}, log2(QP) = {:.0}, {security}; {fit}",
            set.name, set.log_n, set.log_qp
        );
    }
    out
}
