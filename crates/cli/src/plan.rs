//! `taciturn plan`: what a step will cost, before any of it is paid.

mod contexts;
pub mod file;
pub mod fit;
mod levels;
mod operations;
mod report;
mod sites;

use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Context, Result};
use taciturn_ckks::Parameters;

use self::contexts::{ContextReport, contexts};
use self::report::{Report, Tables};
use crate::args::{DeviceArgs, PlanArgs};
use crate::checkpoint::Loaded;
use crate::costs::Costs;
use crate::device::{self, KeyHalves};
use crate::failure::usage;
use crate::setup::{Setup, Wanted, parameters};
use crate::strategy::compare;
use crate::system;

/// Tokens of an exchange where none are asked for: a prompt of some lines and as much text after it.
const DEFAULT_CONTEXT: usize = 64;

/// Runs the command. A plan that does not fit into memory is printed and then fails.
pub fn run(args: &PlanArgs) -> Result<()> {
    let params = parameters(&args.params)?;
    let loaded = Loaded::new(&args.model)?;
    let longest = loaded.longest_context();
    let context = args
        .context
        .map_or(DEFAULT_CONTEXT.min(longest), NonZeroUsize::get);
    if !(2..=longest).contains(&context) {
        return Err(usage(format!(
            "--context: expected 2 to {longest} tokens, as the model in {} is calibrated for {}; got {context}",
            loaded.folder.display(),
            loaded.calibration.context,
        )));
    }
    let costs = costs(&params, args)?;
    let wanted = Wanted {
        context,
        strategy: args.placement,
        selection: &args.selection.selection(),
    };
    let mut setup = Setup::new(&loaded, &params, costs, &wanted)?;
    let fits = setup.fit_memory(&args.memory);
    if let Some(path) = &args.out {
        file::write(path, &setup.plan)?;
    }
    let compared = if args.compare {
        let graph = setup.model.graph(context - 1)?;
        let shallow = setup.shallow.as_ref().unwrap_or(&graph);
        Some(compare(&graph, shallow, &setup.costs)?)
    } else {
        None
    };
    if let Some(path) = &args.levels {
        let graph = setup.model.graph(context - 1)?;
        let layers = loaded.checkpoint.config.layers;
        write("--levels", path, &levels::svg(&graph, &setup.plan, layers)?)?;
    }
    let drawn = [&args.memory_svg, &args.time_svg];
    let contexts = if args.contexts || drawn.iter().any(|path| path.is_some()) {
        Some(contexts(&loaded, &setup, &wanted)?)
    } else {
        None
    };
    if let Some(contexts) = &contexts {
        let title = format!("{}, {}", loaded.name(), params.name());
        if let Some(path) = &args.memory_svg {
            let title = format!("memory of {title}");
            let picture = ContextReport::memory_svg(contexts, &title);
            write("--memory-svg", path, &picture)?;
        }
        if let Some(path) = &args.time_svg {
            let title = format!("time of a token of {title}");
            write(
                "--time-svg",
                path,
                &ContextReport::time_svg(contexts, &title),
            )?;
        }
    }
    let sites = if args.sites {
        Some(sites::sites(&setup, context)?)
    } else {
        None
    };
    let operations = if args.operations {
        let graph = setup.model.graph(context - 1)?;
        let table = &setup.costs.table;
        Some(operations::operations(&graph, &setup.plan, table))
    } else {
        None
    };
    let tables = Tables {
        compare: compared,
        operations,
        contexts,
        sites,
    };
    let report = Report::new(&setup, &params, context, args.placement, tables);
    let report = match args.passes {
        true => report.with_passes(setup.pass_reports(&args.memory)?),
        false => report,
    };
    if args.json {
        system::print_json(&report)?;
    } else {
        system::print_text(&report.text())?;
    }
    fits
}

/// What operations take on the machine asked for.
fn costs(params: &Parameters, args: &PlanArgs) -> Result<Costs> {
    if args.device == "h200" {
        return match args.measure {
            false => Costs::load_h200(params),
            true => estimate(params),
        };
    }
    let Ok(device) = args.device.parse() else {
        return Err(usage(format!(
            "--device: no costs of {} were measured yet, nor of any other GPU, so that nothing can be predicted for one; on a machine that \
             has it, `taciturn plan --measure --device cuda` measures them; without it expected cpu, cuda, cuda:N, auto, or h200 for an \
             estimate",
            args.device
        )));
    };
    let device = DeviceArgs {
        device,
        key_halves: KeyHalves::default(),
    };
    match (device::place(params, &device)?, args.measure) {
        ((_, None), true) => Costs::measure(params),
        ((_, None), false) => Costs::load(params),
        ((on_gpu, Some(gpu)), true) => Costs::measure_gpu(params, &on_gpu, &gpu.name),
        ((_, Some(gpu)), false) => Costs::load_gpu(params, &gpu.name),
    }
}

/// Estimates the costs of an H200, and leaves the table in a file where the command runs: the one that is built in was made so.
#[cfg(any(feature = "cuda", feature = "shim"))]
fn estimate(params: &Parameters) -> Result<Costs> {
    let costs = Costs::estimate(params, &device::modelled(params)?)?;
    let file = Path::new("h200-estimated.json");
    write("--measure", file, &serde_json::to_string_pretty(&costs)?)?;
    eprintln!("{}: the estimate", file.display());
    Ok(costs)
}

#[cfg(not(any(feature = "cuda", feature = "shim")))]
fn estimate(_: &Parameters) -> Result<Costs> {
    Err(usage(
        "--device h200: estimating anew needs a program built with --features cuda; without --measure its estimate is built in",
    ))
}

fn write(flag: &str, path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text)
        .with_context(|| format!("{flag}: {} cannot be written", path.display()))
}
