//! `taciturn bench roofline`: every operation beside what the machine could do at most.

mod cases;
mod limits;
mod plot;
mod work;

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;

use anyhow::{Context, Result};
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::Serialize;
use taciturn_ring::Ring;

use self::cases::{Case, Machine};
use self::limits::Limits;
use self::plot::Point;
use self::work::{Counter, Work};
use crate::args::RooflineArgs;
use crate::setup::parameters;
use crate::system::{self, Processor};

/// Seconds that one operation is repeated for, in about so many runs.
const SECONDS: f64 = 0.6;
const LEAST_RUNS: usize = 3;
const MOST_RUNS: usize = 401;

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    library: String,
    params: String,
    backend: &'static str,
    processor: Processor,
    limbs_q: usize,
    limbs_p: usize,
    log_qp: f64,
    level_bits: u32,
    /// One thread, then all.
    limits: Vec<Limits>,
    primitives: Vec<Row>,
    peak_rss_bytes: u64,
}

/// One operation.
#[derive(Serialize)]
struct Row {
    name: String,
    /// Of the operand.
    limbs: usize,
    /// Whether the operands stay in the second-level cache, so that the bandwidth of memory does not bound it.
    in_cache: bool,
    #[serde(flatten)]
    work: Work,
    multiply_adds_per_byte: f64,
    /// In the order of the limits.
    measured: Vec<Measured>,
}

/// Its time with some number of threads.
#[derive(Serialize)]
struct Measured {
    threads: usize,
    /// Median.
    ms: f64,
    /// Lower and upper quartile.
    ms_quartiles: [f64; 2],
    /// Of the measured bandwidth, from the counted bytes; above 1 where operands stay in a cache.
    bandwidth_share: f64,
    /// Of the measured rate of multiply-adds.
    multiply_add_share: f64,
    /// The least time that the limits permit, over the time that it took.
    limit_share: f64,
}

/// Runs the command.
pub fn run(args: &RooflineArgs) -> Result<()> {
    let params = parameters(&args.params)?;
    // Before minutes of work.
    let svg = args.svg.as_ref().map(|path| {
        let file = File::create(path);
        file.with_context(|| {
            format!(
                "--svg {}: expected a file that can be written",
                path.display()
            )
        })
    });
    let svg = svg.transpose()?;
    let counter = Arc::new(Counter::new(params.ring())?);
    let counting = params.on_backend(counter.clone())?;
    let bench = Bench::new(params.ring(), counter)?;

    let mut rows = Vec::new();
    let (machine, cases) = cases::primitives(&params)?;
    let on_counter = machine.on(&counting);
    for mut case in cases {
        let times = bench.times(&mut case, &machine)?;
        let work = bench.work(&mut case, &on_counter)?;
        rows.push(bench.row(case, &times, work));
    }
    drop((machine, on_counter));
    if args.bootstraps {
        cases::bootstraps(
            &params,
            &counting,
            |mut case, machine, mut counted, on_counter| {
                let times = bench.times(&mut case, machine)?;
                let work = bench.work(&mut counted, on_counter)?;
                rows.push(bench.row(case, &times, work));
                Ok(())
            },
        )?;
    }
    let (limbs_q, limbs_p) = params.limb_counts();
    let report = Report {
        library: format!("taciturn {}", env!("CARGO_PKG_VERSION")),
        params: params.name().to_owned(),
        backend: params.ring().backend_name(),
        processor: system::processor(),
        limbs_q,
        limbs_p,
        log_qp: params.log_qp(),
        level_bits: params.literal().level_bits,
        limits: bench.limits,
        primitives: rows,
        peak_rss_bytes: system::peak_rss_bytes(),
    };
    if let Some(mut file) = svg {
        file.write_all(picture(&report).as_bytes())
            .context("--svg: the picture could not be written")?;
    }
    if args.json {
        return system::print_json(&report);
    }
    system::print_text(&text(&report))
}

/// One thread and all of them, with what the machine can do under each.
struct Bench {
    pools: Vec<ThreadPool>,
    limits: Vec<Limits>,
    counter: Arc<Counter>,
}

impl Bench {
    fn new(ring: &Ring, counter: Arc<Counter>) -> Result<Self> {
        let mut threads = vec![1, system::threads()];
        threads.dedup();
        let pool = |&threads: &usize| ThreadPoolBuilder::new().num_threads(threads).build();
        let pools: Vec<ThreadPool> = threads.iter().map(pool).collect::<Result<_, _>>()?;
        let limits = pools.iter().map(|p| p.install(|| limits::measure(ring)));
        let limits = limits.collect();
        Ok(Self {
            pools,
            limits,
            counter,
        })
    }

    /// Sorted milliseconds, for each number of threads.
    fn times(&self, case: &mut Case, machine: &Machine) -> Result<Vec<Vec<f64>>> {
        let mut times = Vec::new();
        for pool in &self.pools {
            times.push(pool.install(|| repeated(case, machine))?);
        }
        Ok(times)
    }

    fn work(&self, case: &mut Case, on_counter: &Machine) -> Result<Work> {
        let before = self.counter.total();
        (case.run)(on_counter)?;
        let sum = self.counter.total() - before;
        let parts = f64::from(case.parts);
        Ok(Work {
            multiply_adds: sum.multiply_adds / parts,
            bytes: sum.bytes / parts,
        })
    }

    fn row(&self, case: Case, times: &[Vec<f64>], work: Work) -> Row {
        let measured = times.iter().zip(&self.limits).map(|(times, limits)| {
            let at = |quarter: usize| times[(times.len() - 1) * quarter / 4];
            let seconds = at(2) / 1e3;
            let bandwidth_share = work.bytes / seconds / limits.bytes_per_second;
            let multiply_add_share = work.multiply_adds / seconds / limits.multiply_adds_per_second;
            Measured {
                threads: limits.threads,
                ms: at(2),
                ms_quartiles: [at(1), at(3)],
                bandwidth_share,
                multiply_add_share,
                limit_share: if case.in_cache {
                    multiply_add_share
                } else {
                    bandwidth_share.max(multiply_add_share)
                },
            }
        });
        Row {
            measured: measured.collect(),
            name: case.name,
            limbs: case.limbs,
            in_cache: case.in_cache,
            work,
            multiply_adds_per_byte: work.multiply_adds / work.bytes,
        }
    }
}

/// Sorted milliseconds of one operation.
fn repeated(case: &mut Case, machine: &Machine) -> Result<Vec<f64>> {
    let first = (case.run)(machine)?.as_secs_f64() * f64::from(case.parts);
    let runs = (SECONDS / first.max(1e-9)) as usize;
    let mut times = Vec::new();
    for _ in 0..runs.clamp(LEAST_RUNS, MOST_RUNS) {
        times.push((case.run)(machine)?.as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

fn label(row: &Row) -> String {
    let (word, place) = match (row.limbs, row.in_cache) {
        (1, true) => ("limb", ", in cache"),
        (1, false) => ("limb", ""),
        _ => ("limbs", ""),
    };
    format!("{}, {} {word}{place}", row.name, row.limbs)
}

fn picture(report: &Report) -> String {
    let labels: Vec<String> = report.primitives.iter().map(label).collect();
    let mut points = Vec::new();
    for (index, row) in report.primitives.iter().enumerate() {
        for (limits, measured) in row.measured.iter().enumerate() {
            points.push(Point {
                number: index + 1,
                label: &labels[index],
                limits,
                intensity: row.multiply_adds_per_byte,
                rate: row.work.multiply_adds / measured.ms * 1e3,
            });
        }
    }
    let title = format!(
        "Roofline of {} on {}, {}",
        report.params, report.processor.name, report.backend
    );
    plot::svg(&title, &report.limits, &points)
}

fn text(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{}, {} on {} (family {}, model {})",
        report.params,
        report.backend,
        report.processor.name,
        report.processor.family,
        report.processor.model
    );
    for limits in &report.limits {
        let _ = writeln!(
            out,
            "limits, threads {}: {:.1} GB/s (triad), {:.1} G multiply-adds/s ({})",
            limits.threads,
            limits.bytes_per_second / 1e9,
            limits.multiply_adds_per_second / 1e9,
            limits.instruction
        );
    }
    let _ = writeln!(
        out,
        "{:<48} {:>7} {:>9} {:>9} {:>7}  {:>9} {:>21} {:>9} {:>8} {:>6}",
        "operation",
        "threads",
        "M madd",
        "MB",
        "madd/B",
        "ms",
        "quartiles",
        "bandwidth",
        "madd",
        "limit"
    );
    for row in &report.primitives {
        for measured in &row.measured {
            let _ = writeln!(
                out,
                "{:<48} {:>7} {:>9.2} {:>9.2} {:>7.2}  {:>9.3} {:>10.3}-{:<10.3} {:>8.0}% {:>7.0}% {:>5.0}%",
                label(row),
                measured.threads,
                row.work.multiply_adds / 1e6,
                row.work.bytes / 1e6,
                row.multiply_adds_per_byte,
                measured.ms,
                measured.ms_quartiles[0],
                measured.ms_quartiles[1],
                100.0 * measured.bandwidth_share,
                100.0 * measured.multiply_add_share,
                100.0 * measured.limit_share
            );
        }
    }
    out
}
