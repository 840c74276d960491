//! `taciturn calibrate`: the ranges of a model's values, measured on sample text.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::Result;
use serde::Serialize;
use taciturn_models::{
    CALIBRATION_FILE, CalibrationOptions, Checkpoint, TextTokenizer, calibrate, measure_bounds,
    overshoot, save_calibration,
};

use crate::args::CalibrateArgs;
use crate::system;

/// Windows on which the approximated step is simulated for the magnitudes of its values.
const SIMULATED_WINDOWS: usize = 32;

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    table: String,
    model_hash: String,
    context: usize,
    tokens: usize,
    sites: usize,
    bounds: usize,
    /// Places where the text held out leaves its interval, each with the worst excess as a share of the interval; absent without such a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    outside: Option<BTreeMap<String, f64>>,
}

/// Runs the command.
pub fn run(args: &CalibrateArgs) -> Result<()> {
    let checkpoint = Checkpoint::load(&args.model)?;
    let tokenizer = TextTokenizer::load(&args.model, &checkpoint.config)?;
    let tokens = tokenizer.encode(&system::read_text("--text", &args.text)?)?;
    let held_out = match &args.held_out {
        None => None,
        Some(path) => Some(tokenizer.encode(&system::read_text("--held-out", path)?)?),
    };
    let options = CalibrationOptions {
        context: args.context,
        windows: args.windows,
        margin: args.margin,
        squarings: args.squarings,
    };
    let mut calibration = calibrate(&checkpoint, &tokens, &options)?;
    let windows = args.windows.min(SIMULATED_WINDOWS);
    measure_bounds(&checkpoint, &mut calibration, &tokens, windows)?;
    save_calibration(&args.model, &calibration)?;
    let outside = match held_out {
        None => None,
        Some(tokens) => Some(overshoot(&checkpoint, &tokens, &calibration)?),
    };
    let report = Report {
        table: args.model.join(CALIBRATION_FILE).display().to_string(),
        model_hash: calibration.model_hash.clone(),
        context: calibration.context,
        tokens: tokens.len(),
        sites: calibration.sites.len(),
        bounds: calibration.bounds.len(),
        outside,
    };
    if args.json {
        return system::print_json(&report);
    }
    let mut out = format!(
        "{}: ranges at {} places and bounds of {} values for {} tokens of context\n",
        report.table, report.sites, report.bounds, report.context
    );
    if let Some(outside) = &report.outside {
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "the text held out leaves the ranges at {} places",
            outside.len()
        );
        for (place, share) in outside {
            let _ = writeln!(
                out,
                "  {place}: by {:.1}% of the range's length",
                100.0 * share
            );
        }
    }
    system::print_text(&out)
}
