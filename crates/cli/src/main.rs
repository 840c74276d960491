//! The `taciturn` command: flags become checked configuration, checked configuration becomes calls.

mod args;
mod bench;
mod calibrate;
mod chart;
mod checkpoint;
mod costs;
mod device;
mod distribution;
mod doctor;
mod eval;
mod exchange;
mod failure;
mod generate;
mod memory;
mod number;
mod passes;
mod plan;
mod progress;
mod prompt;
mod random_model;
mod reference;
mod rows;
mod setup;
mod size;
mod strategy;
mod system;

use args::{Args, Bench, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    match device::with_errors(|| run(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}

fn run(args: Args) -> anyhow::Result<()> {
    system::use_threads(args.threads)?;
    match args.command {
        Command::Generate(args) => generate::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::RandomModel(args) => random_model::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Bench(Bench::Kernels(args)) => bench::kernels::run(&args),
        Command::Bench(Bench::Primitives(args)) => bench::primitives::run(&args),
        Command::Bench(Bench::Bootstrap(args)) => bench::bootstrap::run(&args),
        Command::Bench(Bench::Product(args)) => bench::product::run(&args),
        Command::Bench(Bench::Approximation(args)) => bench::approximation::run(&args),
        Command::Bench(Bench::Roofline(args)) => bench::roofline::run(&args),
    }
}
