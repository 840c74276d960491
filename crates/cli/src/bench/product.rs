//! `taciturn bench product`: layouts of a vector's product with a matrix, counted, predicted and measured.

mod measure;

use std::fmt::Write;

use anyhow::Result;
use serde::Serialize;
use taciturn_ckks::Parameters;
use taciturn_graph::{
    CostTable, Counter, Counts, Level, Matrix, NEXUS_STEPS, ProductLayout, nexus_counts,
};

use crate::args::ProductArgs;
use crate::costs::{Costs, Origin};
use crate::failure::usage;
use crate::setup::parameters;
use crate::system;
use measure::{Bench, Measured};

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    params: String,
    backend: &'static str,
    threads: usize,
    slots: usize,
    /// Of the predictions.
    costs: Origin,
    products: Vec<Row>,
    peak_rss_bytes: u64,
}

/// One layout at one width and level.
#[derive(Serialize)]
struct Row {
    layout: &'static str,
    source: String,
    /// As asked for.
    width: usize,
    /// As computed with.
    padded_width: usize,
    /// Of the input.
    level: u32,
    depth: u32,
    /// All, hoisted ones included.
    rotations: usize,
    hoisted_rotations: usize,
    /// Masks included.
    plain_products: usize,
    /// Different rotations, each with a key.
    rotation_keys: Option<usize>,
    /// The keys, both halves expanded.
    key_bytes: Option<usize>,
    predicted_ms: Option<f64>,
    #[serde(flatten)]
    measured: Measured,
}

/// Runs the command.
pub fn run(args: &ProductArgs) -> Result<()> {
    let params = parameters(&args.params)?;
    check(args, &params)?;
    let costs = Costs::load(&params)?;
    let mut bench = Bench::new(args, &params)?;
    let mut products = Vec::new();
    for width in args.width.iter().map(|width| width.get()) {
        for &level in &args.level {
            for layout in ProductLayout::ALL {
                let size = (width, Level(level));
                products.push(row(&params, &costs.table, layout, size, &mut bench)?);
            }
            products.push(nexus(&costs.table, width, Level(level)));
        }
    }
    let report = Report {
        params: params.name().to_owned(),
        backend: params.ring().backend_name(),
        threads: system::threads(),
        slots: params.slots(),
        costs: costs.origin,
        products,
        peak_rss_bytes: system::peak_rss_bytes(),
    };
    if args.json {
        return system::print_json(&report);
    }
    system::print_text(&text(&report))
}

/// Refuses widths and levels that the parameters do not have.
fn check(args: &ProductArgs, params: &Parameters) -> Result<()> {
    let most = params.slots() / 2;
    if let Some(width) = args
        .width
        .iter()
        .find(|width| !(2..=most).contains(&width.get()))
    {
        return Err(usage(format!(
            "--width: expected 2 to {most} with {}, got {width}",
            params.name()
        )));
    }
    let most = params.max_level().0 as u32;
    if let Some(level) = args.level.iter().find(|level| !(1..=most).contains(level)) {
        return Err(usage(format!(
            "--level: expected 1 to {most} with {}, got {level}",
            params.name()
        )));
    }
    if args.longest.is_nan() || args.longest < 0.0 {
        return Err(usage(format!(
            "--longest: expected seconds, not negative, got {}",
            args.longest
        )));
    }
    Ok(())
}

fn row(
    params: &Parameters,
    table: &CostTable,
    layout: ProductLayout,
    (width, level): (usize, Level),
    bench: &mut Bench,
) -> Result<Row> {
    let padded = width.next_power_of_two();
    // Counts are the same at every level; a layout that is deeper than the input is counted where it has room.
    let reached = level >= Level(layout.depth());
    let counted_at = level.max(Level(layout.depth()));
    let matrix = Matrix::computed("counted", padded, padded, |_, _| 1.0);
    let mut counter = Counter::new(params.slots(), table);
    layout.apply(&mut counter, &counted_at, &matrix)?;
    let request = measure::key_request(params, &counter);
    let measured = if reached {
        bench.measure(layout, (padded, level), &counter, &request)?
    } else {
        Measured::not(format!("takes {} levels", layout.depth()))
    };
    let counts = *counter.counts();
    Ok(Row {
        rotation_keys: Some(counter.rotations().len()),
        key_bytes: reached.then(|| request.resident_bytes(params)),
        predicted_ms: reached.then(|| counter.milliseconds()),
        measured,
        ..counted(
            layout.name(),
            layout.source().to_owned(),
            layout.depth(),
            width,
            level,
            &counts,
        )
    })
}

/// By its formula, predicted from operations' times.
fn nexus(table: &CostTable, width: usize, level: Level) -> Row {
    let counts = nexus_counts(width);
    let cost = table.level(level);
    let predicted = counts.rotations as f64 * cost.rotate_ms
        + counts.plain_products as f64 * (cost.plain_product_ms + cost.encode_ms);
    Row {
        padded_width: width,
        predicted_ms: Some(predicted),
        measured: Measured::not("by formula; the client takes part".to_owned()),
        ..counted(
            "nexus",
            format!("Cachemir, Table 2, over {NEXUS_STEPS} steps"),
            1,
            width,
            level,
            &counts,
        )
    }
}

fn counted(
    layout: &'static str,
    source: String,
    depth: u32,
    width: usize,
    level: Level,
    counts: &Counts,
) -> Row {
    Row {
        layout,
        source,
        width,
        padded_width: width.next_power_of_two(),
        level: level.0,
        depth,
        rotations: counts.rotations + counts.hoisted_rotations,
        hoisted_rotations: counts.hoisted_rotations,
        plain_products: counts.plain_products,
        rotation_keys: None,
        key_bytes: None,
        predicted_ms: None,
        measured: Measured::default(),
    }
}

fn text(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{}, {} slots, {} threads of {}; predicted from {} costs",
        report.params,
        report.slots,
        report.threads,
        report.backend,
        match report.costs {
            Origin::Measured => "measured",
            Origin::BuiltIn => "built-in",
            Origin::Estimated => "estimated",
        }
    );
    let mut size = None;
    for row in &report.products {
        if size != Some((row.width, row.level)) {
            size = Some((row.width, row.level));
            let padded = match row.padded_width {
                padded if padded == row.width => String::new(),
                padded => format!(" (padded to {padded})"),
            };
            let _ = writeln!(
                out,
                "\nwidth {}{padded}, input at level {}",
                row.width, row.level
            );
            let _ = writeln!(
                out,
                "{:<20}{:>10}{:>10}{:>7}{:>7}{:>10}{:>12}{:>12}",
                "layout",
                "rotations",
                "products",
                "depth",
                "keys",
                "keys GB",
                "predicted s",
                "measured s"
            );
        }
        let seconds = |ms: Option<f64>| ms.map_or("-".to_owned(), |ms| format!("{:.2}", ms / 1e3));
        let _ = writeln!(
            out,
            "{:<20}{:>10}{:>10}{:>7}{:>7}{:>10}{:>12}{:>12}  {}",
            row.layout,
            row.rotations,
            row.plain_products,
            row.depth,
            row.rotation_keys
                .map_or("-".to_owned(), |keys| keys.to_string()),
            row.key_bytes
                .map_or("-".to_owned(), |bytes| format!("{:.2}", bytes as f64 / 1e9)),
            seconds(row.predicted_ms),
            seconds(row.measured.measured_ms),
            row.measured.not_measured.as_deref().unwrap_or_default()
        );
    }
    out
}
