//! `taciturn bench kernels`: the ring's operations by themselves, against the bandwidth of the memory that they run in.

use std::convert::Infallible;
use std::fmt::Write;

use anyhow::{Result, anyhow, ensure};
use serde::Serialize;
use taciturn_ckks::{GadgetName, Parameters};
use taciturn_ring::{Basis, Form, Poly, Ring};

use super::device_kernels::{self, KernelRow, Limits, REPEATS};
use super::timing::{median, sorted_queued_ms};
use crate::args::KernelsArgs;
use crate::device::{self, GpuReport};
use crate::rows::Rows;
use crate::setup::parameters;
use crate::system;

/// Measurements of each operation, of which the median counts.
const RUNS: usize = 15;
/// Calls of one measurement on a device, which works on while the next is prepared.
const QUEUED: u32 = 10;

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    params: String,
    backend: &'static str,
    gpu: Option<GpuReport>,
    threads: usize,
    /// Words that copying a polynomial reads and writes, per second.
    copy_gb_per_s: f64,
    operations: Vec<Operation>,
    /// Of the device, where there is one.
    limits: Option<Limits>,
    /// Each kernel of all operations, where a device has kernels.
    kernels: Vec<KernelRow>,
}

/// One operation. All were compared with the processor's words before they were timed.
#[derive(Serialize)]
struct Operation {
    name: &'static str,
    /// Limbs of the result, or of all digits.
    limbs: usize,
    ms: f64,
    /// Operands read once and results written once.
    bytes: usize,
    gb_per_s: f64,
    /// Of the bandwidth of a copy.
    share_of_copy: f64,
}

/// Operands on one ring: what all operations are made of.
struct Operands<'a> {
    ring: &'a Ring,
    evaluation: Poly,
    coefficients: Poly,
    digits: Vec<Poly>,
    key: Vec<(Poly, Poly)>,
    params: &'a Parameters,
}

impl<'a> Operands<'a> {
    fn new(params: &'a Parameters) -> Self {
        let ring = params.ring();
        let all = ring.full_basis();
        let uniform = |number: u8| ring.uniform(&[number; 32], all);
        // Sums, which lie where the ring computes: what is copied there is not what is measured.
        let sum = |number: u8| {
            let mut sum = uniform(number);
            ring.add_assign(&mut sum, &uniform(number + 1));
            sum
        };
        let mut coefficients = sum(2);
        coefficients.set_form(Form::Coefficient);
        let count = params.gadget(GadgetName::Bootstrap).digits.len() as u8;
        Self {
            ring,
            evaluation: sum(0),
            coefficients,
            digits: (0..count).map(|j| uniform(10 + j)).collect(),
            key: (0..count)
                .map(|j| (uniform(30 + j), uniform(50 + j)))
                .collect(),
            params,
        }
    }

    fn special(&self) -> Basis {
        self.params.gadget(GadgetName::Bootstrap).special
    }

    /// The named operations, each with the limbs that it reads and writes and its results.
    fn run(&self, name: &str) -> Vec<Poly> {
        let (ring, a, b) = (self.ring, &self.evaluation, &self.digits[0]);
        let pair = |(x, y): (Poly, Poly)| vec![x, y];
        match name {
            "copy" => vec![a.clone()],
            "ntt" => {
                let mut out = self.coefficients.clone();
                ring.ntt(&mut out);
                vec![out]
            }
            "intt" => {
                let mut out = a.clone();
                ring.intt(&mut out);
                vec![out]
            }
            "add" => {
                let mut out = a.clone();
                ring.add_assign(&mut out, b);
                vec![out]
            }
            "mul" => vec![ring.mul_new(a, b)],
            "automorphism" => vec![ring.automorphism(a, 5)],
            "key_product" => {
                pair(ring.key_product_automorphism(&self.digits, &self.key, 5, ring.full_basis()))
            }
            "mod_up" => {
                let digits = &self.params.gadget(GadgetName::Bootstrap).digits;
                ring.extend_digits(&self.coefficients, a, digits, ring.full_basis())
            }
            "mod_down" => ring.mod_down_all(std::slice::from_ref(a), self.special()),
            _ => unreachable!("operations are those of the table"),
        }
    }

    /// Polynomials of all limbs that an operation reads and writes.
    fn traffic(&self, name: &str) -> usize {
        let count = self.digits.len();
        match name {
            "copy" | "automorphism" => 2,
            // A copy is made first, so that each call has the same input.
            "ntt" | "intt" => 4,
            "add" => 5,
            "mul" => 3,
            "key_product" => 3 * count + 2,
            "mod_up" => 2 + count,
            _ => 2,
        }
    }
}

const NAMES: [&str; 9] = [
    "copy",
    "ntt",
    "intt",
    "add",
    "mul",
    "automorphism",
    "key_product",
    "mod_up",
    "mod_down",
];

/// Runs the command.
pub fn run(args: &KernelsArgs) -> Result<()> {
    let host = parameters(&args.params)?;
    let (params, gpu) = device::place(&host, &args.device)?;
    let (operands, reference) = (Operands::new(&params), Operands::new(&host));
    let mut rows = Rows::open(args.rows.rows.as_deref())?;
    let mut operations: Vec<Operation> = Vec::new();
    for name in NAMES {
        ensure!(
            gpu.is_none() || operands.run(name) == reference.run(name),
            "{name}: the words of {} differ from the processor's",
            params.ring().backend_name()
        );
        let ms = time(params.ring(), || drop(operands.run(name)));
        let bytes = operands.traffic(name) * operands.evaluation.bytes();
        let gb_per_s = bytes as f64 / ms / 1e6;
        let copy = operations.first().map_or(gb_per_s, |copy| copy.gb_per_s);
        let operation = Operation {
            name,
            limbs: params.ring().moduli().len(),
            ms,
            bytes,
            gb_per_s,
            share_of_copy: gb_per_s / copy,
        };
        rows.add("operation", &operation)?;
        operations.push(operation);
    }
    let (limits, kernels) = profile(&operands)?;
    device_kernels::add_rows(&mut rows, limits.as_ref(), &kernels)?;
    let report = Report {
        params: params.name().to_owned(),
        backend: params.ring().backend_name(),
        gpu,
        threads: system::threads(),
        copy_gb_per_s: operations[0].gb_per_s,
        operations,
        limits,
        kernels,
    };
    if args.json {
        return system::print_json(&report);
    }
    system::print_text(&text(&report))
}

/// Median milliseconds of one call.
fn time(ring: &Ring, f: impl Fn()) -> f64 {
    let times = sorted_queued_ms(ring, RUNS, QUEUED, || {
        f();
        Ok::<(), Infallible>(())
    });
    match times {
        Ok(times) => median(&times),
        Err(never) => match never {},
    }
}

/// The kernels of all operations, one after the other.
fn profile(operands: &Operands<'_>) -> Result<(Option<Limits>, Vec<KernelRow>)> {
    let Some(queue) = operands.ring.queue() else {
        return Ok((None, Vec::new()));
    };
    let recorded = queue.record(&[], &mut |_| {
        Some(NAMES.iter().flat_map(|name| operands.run(name)).collect())
    });
    let recording = recorded
        .recording
        .map_err(|reason| anyhow!("kernels: the operations were not recorded: {reason}"))?;
    let limits = device_kernels::limits(&queue.limits());
    let rows = device_kernels::rows(&recording.profile(REPEATS), &limits);
    Ok((Some(limits), rows))
}

fn text(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{} on {}: a copy moves {:.0} GB/s",
        report.params,
        report.gpu.as_ref().map_or(report.backend, |gpu| &gpu.name),
        report.copy_gb_per_s
    );
    let _ = writeln!(out, "operation        ms    GB/s  of a copy");
    for op in &report.operations {
        let _ = writeln!(
            out,
            "{:<12} {:>7.3} {:>7.0} {:>9.0}%",
            op.name,
            op.ms,
            op.gb_per_s,
            op.share_of_copy * 100.0
        );
    }
    if let Some(limits) = &report.limits {
        device_kernels::text(&mut out, limits, &report.kernels);
    }
    out
}
