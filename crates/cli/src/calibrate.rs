//! `taciturn calibrate`: the ranges of a model's values, measured on sample text.

use anyhow::{Context, Result};
use serde::Serialize;
use taciturn_models::{
    CALIBRATION_FILE, CalibrationOptions, Checkpoint, TextTokenizer, calibrate, measure_bounds,
    save_calibration,
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
}

/// Runs the command.
pub fn run(args: &CalibrateArgs) -> Result<()> {
    let checkpoint = Checkpoint::load(&args.model)?;
    let tokenizer = TextTokenizer::load(&args.model, &checkpoint.config)?;
    let text = std::fs::read_to_string(&args.text).with_context(|| {
        format!(
            "--text {}: expected a readable UTF-8 file",
            args.text.display()
        )
    })?;
    let tokens = tokenizer.encode(&text)?;
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
    let report = Report {
        table: args.model.join(CALIBRATION_FILE).display().to_string(),
        model_hash: calibration.model_hash.clone(),
        context: calibration.context,
        tokens: tokens.len(),
        sites: calibration.sites.len(),
        bounds: calibration.bounds.len(),
    };
    if args.json {
        return system::print_json(&report);
    }
    system::print_text(&format!(
        "{}: ranges at {} places and bounds of {} values for {} tokens of context\n",
        report.table, report.sites, report.bounds, report.context
    ))
}
