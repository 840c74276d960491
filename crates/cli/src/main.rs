//! The `taciturn` command.

mod bench;

use clap::{Parser, Subcommand};
use taciturn_ckks::{Level, named};

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Bootstrap {
        #[arg(long, default_value_t = 10)]
        slots: u32,
        #[arg(long, default_value = "n16-128")]
        params: String,
        #[arg(long, default_value_t = 14)]
        level: usize,
        #[arg(long, default_value_t = 1)]
        runs: usize,
        #[arg(long)]
        complex: bool,
    },
}

fn main() -> anyhow::Result<()> {
    match Args::parse().command {
        Command::Bootstrap {
            slots,
            params,
            level,
            runs,
            complex,
        } => {
            let report =
                bench::bootstrap::run(&named(&params)?, slots, complex, Level(level), runs)?;
            println!("{}", serde_json::to_string_pretty(&report)?);
        }
    }
    Ok(())
}
