//! `taciturn bench approximation`: every approximation of a function, its error, depth, products and predicted time.

use std::fmt::Write;

use anyhow::Result;
use serde::Serialize;
use taciturn_approx::{Approximation, Gate, Target, catalogue, grid};
use taciturn_graph::{CostTable, Counter, Level, approximate};
use taciturn_models::Activation;

use crate::args::ApproximationArgs;
use crate::checkpoint::Loaded;
use crate::costs::{Costs, Origin};
use crate::failure::usage;
use crate::setup::parameters;
use crate::system;

/// Where no site is named: intervals like those of the literature.
const INTERVALS: [(Target, f64, f64); 8] = [
    (Target::Inverse, 1.0 / 128.0, 1.0),
    (Target::InverseSqrt, 1.0 / 64.0, 1.0),
    (Target::Exp, -16.0, 0.0),
    (Target::Activation(Gate::NormalByTanh), -8.0, 8.0),
    (Target::Activation(Gate::Normal), -8.0, 8.0),
    (Target::Activation(Gate::Logistic), -8.0, 8.0),
    (Target::Sign, -1.0, 1.0),
    (Target::Max, -1.0, 1.0),
];
/// Random arguments for each.
const RANDOM_POINTS: usize = 20_000;

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    params: String,
    backend: &'static str,
    threads: usize,
    /// Of the predictions.
    costs: Origin,
    /// Asked for, where an approximation has a choice.
    bits: f64,
    site: Option<String>,
    approximations: Vec<Row>,
}

/// One approximation.
#[derive(Serialize)]
struct Row {
    function: &'static str,
    low: f64,
    high: f64,
    name: &'static str,
    source: &'static str,
    #[serde(flatten)]
    found: Option<Found>,
    /// Why there is no approximation, or no prediction.
    reason: Option<String>,
}

/// What it is like.
#[derive(Serialize)]
struct Found {
    /// What errors are relative to.
    error_kind: &'static str,
    worst_error_grid: f64,
    worst_error_random: f64,
    /// Levels from an argument that is mapped to [-1, 1].
    depth: u32,
    /// Of ciphertexts.
    products: usize,
    /// From a value at that level to one at level 0.
    predicted_ms: Option<f64>,
}

/// Runs the command.
pub fn run(args: &ApproximationArgs) -> Result<()> {
    if !(args.bits > 0.0 && args.bits.is_finite()) {
        return Err(usage(format!(
            "--bits: expected a positive number, got {}",
            args.bits
        )));
    }
    let params = parameters(&args.params)?;
    let costs = Costs::load(&params)?;
    let targets = match &args.site {
        Some(site) => vec![of_site(&Loaded::new(&args.model)?, site)?],
        None => INTERVALS.to_vec(),
    };
    let mut approximations = Vec::new();
    for (target, low, high) in targets {
        for entry in catalogue(target, low, high, args.bits) {
            let (found, reason) = match entry.approximation {
                Ok(approximation) => measure(&approximation, params.slots(), &costs.table)?,
                Err(error) => (None, Some(error.to_string())),
            };
            approximations.push(Row {
                function: target.name(),
                low,
                high,
                name: entry.name,
                source: entry.source,
                found,
                reason,
            });
        }
    }
    let report = Report {
        params: params.name().to_owned(),
        backend: params.ring().backend_name(),
        threads: system::threads(),
        costs: costs.origin,
        bits: args.bits,
        site: args.site.clone(),
        approximations,
    };
    if args.json {
        return system::print_json(&report);
    }
    system::print_text(&text(&report))
}

/// The function at a site of a model, and its calibrated interval.
fn of_site(loaded: &Loaded, site: &str) -> Result<(Target, f64, f64)> {
    let gate = match loaded.checkpoint.config.activation {
        Activation::GeluTanh => Gate::NormalByTanh,
        Activation::GeluErf => Gate::Normal,
        Activation::Silu => Gate::Logistic,
    };
    let target = |site: &str| {
        let part = site.rsplit('.').next().unwrap_or_default();
        match part.trim_end_matches(|c: char| c.is_ascii_digit()) {
            "variance" => Some(Target::InverseSqrt),
            "exponents" => Some(Target::Exp),
            "denominator" => Some(Target::Inverse),
            "hidden" => Some(Target::Activation(gate)),
            _ => None,
        }
    };
    let sites = &loaded.calibration.sites;
    let (Some(range), Some(found)) = (sites.get(site), target(site)) else {
        let known: Vec<&str> = sites
            .keys()
            .map(String::as_str)
            .filter(|site| target(site).is_some())
            .collect();
        return Err(usage(format!(
            "--site: expected one of {}, got {site}",
            known.join(", ")
        )));
    };
    Ok((found, range.low(), range.high()))
}

fn measure(
    approximation: &Approximation,
    slots: usize,
    table: &CostTable,
) -> Result<(Option<Found>, Option<String>)> {
    let depth = approximation.depth();
    let mut counter = Counter::new(slots, table);
    approximate(&mut counter, approximation, &Level(depth))?;
    let most = table.max_level().0;
    let reason = (depth > most)
        .then(|| format!("no prediction: {depth} levels of {most}, so refreshes in between"));
    let (low, high) = approximation.interval();
    let found = Found {
        error_kind: approximation.error_kind(),
        worst_error_grid: approximation.worst_error(grid(low, high)),
        worst_error_random: approximation.worst_error(random(low, high)),
        depth,
        products: counter.counts().products,
        predicted_ms: reason.is_none().then(|| counter.milliseconds()),
    };
    Ok((Some(found), reason))
}

/// Equally distributed points, the same in every run.
fn random(low: f64, high: f64) -> impl Iterator<Item = f64> {
    let mut state = 1u64;
    (0..RANDOM_POINTS).map(move |_| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let share = (state >> 11) as f64 / (1u64 << 53) as f64;
        (low + (high - low) * share).clamp(low, high)
    })
}

fn text(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{}, {} threads of {}; {} bits asked for; predicted from {} costs",
        report.params,
        report.threads,
        report.backend,
        report.bits,
        match report.costs {
            Origin::Measured => "measured",
            Origin::BuiltIn => "built-in",
            Origin::Estimated => "estimated",
        }
    );
    let mut function = None;
    for row in &report.approximations {
        if function != Some(row.function) {
            function = Some(row.function);
            let kind = row.found.as_ref().map_or("-", |found| found.error_kind);
            let _ = writeln!(
                out,
                "\n{} on [{:.5}, {:.5}], errors: {kind}",
                row.function, row.low, row.high
            );
            let _ = writeln!(
                out,
                "{:<22}{:>10}{:>10}{:>7}{:>10}{:>14}  source",
                "name", "grid", "random", "depth", "products", "predicted ms"
            );
        }
        let reason = row
            .reason
            .as_deref()
            .map_or(String::new(), |r| format!(" ({r})"));
        let _ = match &row.found {
            Some(found) => writeln!(
                out,
                "{:<22}{:>10.1e}{:>10.1e}{:>7}{:>10}{:>14}  {}{reason}",
                row.name,
                found.worst_error_grid,
                found.worst_error_random,
                found.depth,
                found.products,
                found
                    .predicted_ms
                    .map_or("-".to_owned(), |ms| format!("{ms:.0}")),
                row.source
            ),
            None => writeln!(out, "{:<22}{}{reason}", row.name, row.source),
        };
    }
    out
}
