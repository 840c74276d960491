//! `taciturn random-model`: a checkpoint of a published shape with random weights, for measuring what the shape costs.

use anyhow::Result;
use serde::Serialize;
use taciturn_models::random::{PUBLISHED, write_published};

use crate::args::RandomModelArgs;
use crate::failure::usage;
use crate::system;

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    folder: String,
    shape: &'static str,
    weights: usize,
}

/// Runs the command.
pub fn run(args: &RandomModelArgs) -> Result<()> {
    let Some(shape) = PUBLISHED.iter().find(|shape| shape.name == args.shape) else {
        let names: Vec<&str> = PUBLISHED.iter().map(|shape| shape.name).collect();
        return Err(usage(format!(
            "--shape: expected one of {}; got `{}`",
            names.join(", "),
            args.shape
        )));
    };
    // What is in a folder of weights may have taken long to get.
    if args.out.join("config.json").exists() {
        return Err(usage(format!(
            "--out {}: expected a folder without a model, got one with a config.json; name another or empty it",
            args.out.display()
        )));
    }
    let layers = args.layers.map(Into::into);
    write_published(shape, layers, args.seed, &args.out)?;
    let report = Report {
        folder: args.out.display().to_string(),
        shape: shape.name,
        weights: shape.weights(layers)?,
    };
    if args.json {
        return system::print_json(&report);
    }
    system::print_text(&format!(
        "{}: {:.1} million random weights in the shape of {}\n",
        report.folder,
        report.weights as f64 / 1e6,
        report.shape,
    ))
}
