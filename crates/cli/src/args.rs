//! Flags: one definition each.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args as Group, Parser, Subcommand, ValueEnum};

use crate::device::{Choice, KeyHalves};
use crate::number::{positive, real, whole};
use crate::passes::PassSize;
use crate::size;
use crate::strategy::Strategy;
use crate::system;
use taciturn_models::Selection;

/// Text generation with a language model that never sees the text.
#[derive(Parser)]
#[command(name = "taciturn", version, about)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Threads to compute with, at most one per core of this machine; by default all.
    #[arg(long, global = true, value_name = "N", value_parser = positive)]
    pub threads: Option<NonZeroUsize>,
}

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// Generate text from a prompt under encryption, client and server in one process.
    Generate(GenerateArgs),
    /// Show levels, bootstraps, keys, predicted seconds and memory of a step.
    Plan(PlanArgs),
    /// Compare a model's predictions on a text with those of the clear model.
    Eval(EvalArgs),
    /// Measure a model's ranges on sample text and write the table beside it.
    Calibrate(CalibrateArgs),
    /// Write a random checkpoint of a published shape, for measuring.
    RandomModel(RandomModelArgs),
    /// Say what this machine offers and what will run on it.
    Doctor(DoctorArgs),
    /// Measure this machine.
    #[command(subcommand)]
    Bench(Bench),
}

/// The measurements.
#[derive(Subcommand)]
pub enum Bench {
    /// The ring's operations by themselves, against the memory's bandwidth.
    Kernels(KernelsArgs),
    /// Transforms, products and rotations by level.
    Primitives(PrimitivesArgs),
    /// One bootstrap: time, precision, keys.
    Bootstrap(BootstrapArgs),
    /// Products of a vector with a square matrix, in every layout.
    Product(ProductArgs),
    /// Approximations of the models' functions: error, depth, predicted time.
    Approximation(ApproximationArgs),
    /// Every operation beside this machine's limits: memory bandwidth and multiply-adds.
    Roofline(RooflineArgs),
}

/// Which model.
#[derive(Group)]
pub struct ModelArgs {
    /// Folder with config.json, safetensors weights and tokenizer.json; by default the demonstration model.
    #[arg(long, value_name = "DIR")]
    pub model: Option<PathBuf>,
}

/// Which parameters.
#[derive(Group)]
pub struct ParamsArgs {
    /// Named parameter set.
    #[arg(long, value_name = "NAME", default_value = "n16-128")]
    pub params: String,
    /// Permit parameter sets without security; for tests only.
    #[arg(long)]
    pub allow_insecure: bool,
}

/// What non-linear functions are approximated by.
#[derive(Group)]
pub struct SelectionArgs {
    /// What a site is approximated by, in place of what the plan chooses: SITE as `plan --sites` shows it, its function (norm, exp, inverse,
    /// gelu, silu) or a pattern as `*.norm1` or `*.softmax.exp`; NAME as `bench approximation` shows it, alone or with its numbers as
    /// minimax-newton/31+1. Repeatable; the last for a site holds.
    #[arg(long = "approximation", value_name = "SITE=NAME", value_parser = selected)]
    pub approximations: Vec<(String, String)>,
}

impl SelectionArgs {
    /// What is selected.
    pub fn selection(&self) -> Selection {
        Selection::new(self.approximations.clone())
    }
}

fn selected(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((site, name)) if !site.is_empty() && !name.is_empty() => {
            Ok((site.to_owned(), name.to_owned()))
        }
        _ => Err("expected SITE=NAME, as layer0.hidden=composite".to_owned()),
    }
}

/// How much memory may be used.
#[derive(Group)]
pub struct MemoryArgs {
    /// Refuse work that is predicted to need more than this, as 12GB, 12GiB, 500MB or bytes; by default what the machine has available.
    #[arg(long, value_name = "SIZE", value_parser = size::bytes)]
    pub memory_limit: Option<u64>,
}

impl MemoryArgs {
    /// Bytes that may be used.
    pub fn limit(&self) -> u64 {
        self.memory_limit
            .unwrap_or_else(|| system::memory().available)
    }
}

/// `taciturn generate`.
#[derive(Group)]
pub struct GenerateArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub params: ParamsArgs,
    #[command(flatten)]
    pub device: DeviceArgs,
    #[command(flatten)]
    pub rows: RowsArgs,
    #[command(flatten)]
    pub memory: MemoryArgs,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Text to continue.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: String,
    /// Text before the prompt that the server may know, as a system prompt: it is computed in the clear.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub public_prefix: Option<String>,
    /// Tokens of the prompt that are computed side by side: a power of two, off for one after the other, or auto for what is predicted to take
    /// least time.
    #[arg(long, value_name = "N", default_value = "auto")]
    pub pass_size: PassSize,
    /// A plan made by `taciturn plan --out`; by default one is made.
    #[arg(long, value_name = "FILE", conflicts_with = "approximations")]
    pub plan: Option<PathBuf>,
    /// Tokens to generate; fewer where the model ends the text.
    #[arg(long, value_name = "N", default_value = "16", value_parser = positive)]
    pub max_new_tokens: NonZeroUsize,
    /// 0 takes the most likely token; above, tokens are drawn.
    #[arg(
        long,
        value_name = "T",
        default_value_t = 0.0,
        allow_hyphen_values = true,
        value_parser = real
    )]
    pub temperature: f64,
    /// Draw among the most likely tokens that together have this probability.
    #[arg(
        long,
        value_name = "P",
        default_value_t = 1.0,
        allow_hyphen_values = true,
        value_parser = real
    )]
    pub top_p: f64,
    /// Equal seeds give equal draws; without one it is random, and reported.
    #[arg(long, value_name = "SEED", value_parser = whole::<u64>)]
    pub seed: Option<u64>,
    /// Run the clear model beside it and report how far the decrypted results are from it.
    #[arg(long)]
    pub compare: bool,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    pub json: bool,
}

/// `taciturn plan`.
#[derive(Group)]
pub struct PlanArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub params: ParamsArgs,
    #[command(flatten)]
    pub memory: MemoryArgs,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Tokens that the exchange must have room for: the beginning-of-text token, the prompt and the new tokens. Memory and time grow with
    /// them. By default 64, or as many as the model is calibrated for.
    #[arg(long, value_name = "N", value_parser = positive)]
    pub context: Option<NonZeroUsize>,
    /// What computes: cpu, cuda, cuda:N or auto, as it is here; or h200, whose costs are an estimate where nobody measured them.
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub device: String,
    /// Measure the costs first, of this machine or of the GPU asked for, and keep them.
    #[arg(long)]
    pub measure: bool,
    /// How bootstraps are placed.
    #[arg(long, value_enum, value_name = "NAME", default_value_t)]
    pub placement: Strategy,
    /// Show what each placement predicts.
    #[arg(long)]
    pub compare: bool,
    /// Show what every non-linear function is approximated by, and what else it could be.
    #[arg(long)]
    pub sites: bool,
    /// Show time by kind of operation, bootstraps apart.
    #[arg(long)]
    pub operations: bool,
    /// Show time and memory by context length, up to 1,024 tokens.
    #[arg(long)]
    pub contexts: bool,
    /// Draw memory by context length.
    #[arg(long, value_name = "FILE.svg")]
    pub memory_svg: Option<PathBuf>,
    /// Draw the time of a token by context length.
    #[arg(long, value_name = "FILE.svg")]
    pub time_svg: Option<PathBuf>,
    /// Draw the levels over one decoder block.
    #[arg(long, value_name = "FILE.svg")]
    pub levels: Option<PathBuf>,
    /// Show what prompts take in passes of several tokens side by side.
    #[arg(long)]
    pub passes: bool,
    /// Write the plan to a file, for `generate --plan`.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    pub json: bool,
}

/// How predictions are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// The exact model.
    Clear,
    /// The approximations and the plan's noise, without ciphertexts.
    Simulated,
    /// On ciphertexts.
    Encrypted,
}

/// `taciturn eval`.
#[derive(Group)]
pub struct EvalArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub params: ParamsArgs,
    #[command(flatten)]
    pub device: DeviceArgs,
    #[command(flatten)]
    pub memory: MemoryArgs,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Text whose tokens are predicted, each from those before it.
    #[arg(long, value_name = "FILE")]
    pub text: PathBuf,
    /// How predictions are computed.
    #[arg(long, value_enum)]
    pub mode: Mode,
    /// Predictions to make, fewer than the text has tokens; by default 64, or as many as it has.
    #[arg(long, value_name = "N", value_parser = positive)]
    pub positions: Option<NonZeroUsize>,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    pub json: bool,
}

/// `taciturn calibrate`.
#[derive(Group)]
pub struct CalibrateArgs {
    /// Folder of the checkpoint; the table is written into it.
    #[arg(long, value_name = "DIR")]
    pub model: PathBuf,
    /// Sample text like what will be generated.
    #[arg(long, value_name = "FILE")]
    pub text: PathBuf,
    /// Tokens per window, the beginning-of-text token included: the longest exchange that the table serves.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = whole::<usize>)]
    pub context: usize,
    /// Most windows measured.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = whole::<usize>)]
    pub windows: usize,
    /// Text that is not measured: report where its values would leave the table.
    #[arg(long, value_name = "FILE")]
    pub held_out: Option<PathBuf>,
    /// Share by which intervals are widened.
    #[arg(long, value_name = "SHARE", default_value_t = 0.2, value_parser = real)]
    pub margin: f64,
    /// Least rounds of normalise-and-square; more are taken where a softmax's sums spread too far.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<u32>)]
    pub squarings: u32,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    pub json: bool,
}

/// `taciturn random-model`.
#[derive(Group)]
pub struct RandomModelArgs {
    /// Published shape, as llama-3-8b; a wrong one lists them all.
    #[arg(long, value_name = "NAME")]
    pub shape: String,
    /// Folder to write; made where it is missing.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Decoder blocks, instead of the shape's own number.
    #[arg(long, value_name = "N")]
    pub layers: Option<NonZeroUsize>,
    /// Equal seeds give equal weights.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    pub json: bool,
}

/// `taciturn doctor`.
#[derive(Group)]
pub struct DoctorArgs {
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    pub json: bool,
}

/// What computes.
#[derive(Group)]
pub struct DeviceArgs {
    /// Where to compute on ciphertexts: cpu, cuda, cuda:N for GPU number N, or auto for a GPU if there is one. Results are the same.
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub device: Choice,
    /// Where a GPU takes the halves of keys from that a seed stands for. Results are the same.
    #[arg(long, value_enum, value_name = "WAY", default_value_t)]
    pub key_halves: KeyHalves,
}

/// Results as they come.
#[derive(Group)]
pub struct RowsArgs {
    /// Add each result to this file as soon as it is known, a line of JSON each: what is there when a run is cut off.
    #[arg(long, value_name = "FILE")]
    pub rows: Option<PathBuf>,
}

/// `taciturn bench kernels`.
#[derive(Group)]
pub struct KernelsArgs {
    #[command(flatten)]
    pub params: ParamsArgs,
    #[command(flatten)]
    pub device: DeviceArgs,
    #[command(flatten)]
    pub rows: RowsArgs,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    pub json: bool,
}

/// `taciturn bench primitives`.
#[derive(Group)]
pub struct PrimitivesArgs {
    #[command(flatten)]
    pub params: ParamsArgs,
    #[command(flatten)]
    pub device: DeviceArgs,
    #[command(flatten)]
    pub rows: RowsArgs,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    pub json: bool,
}

/// `taciturn bench bootstrap`.
#[derive(Group)]
pub struct BootstrapArgs {
    #[command(flatten)]
    pub params: ParamsArgs,
    #[command(flatten)]
    pub device: DeviceArgs,
    #[command(flatten)]
    pub rows: RowsArgs,
    /// log2 of the distinct slots; by default all of them.
    #[arg(long, value_name = "LOG2", value_parser = whole::<u32>)]
    pub slots: Option<u32>,
    /// Level to refresh to, the levels of the next bootstrap's first transforms included.
    #[arg(long, value_name = "LEVEL", default_value_t = 14, value_parser = whole::<usize>)]
    pub level: usize,
    /// More levels to refresh to, each measured by itself.
    #[arg(long, value_name = "LEVEL,...", value_delimiter = ',', value_parser = whole::<usize>)]
    pub levels: Vec<usize>,
    /// Counted bootstraps.
    #[arg(long, value_name = "N", default_value = "3", value_parser = positive)]
    pub runs: NonZeroUsize,
    /// Refresh complex slots: two real values in one bootstrap.
    #[arg(long)]
    pub complex: bool,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    pub json: bool,
}

/// `taciturn bench product`.
#[derive(Group)]
pub struct ProductArgs {
    #[command(flatten)]
    pub params: ParamsArgs,
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Widths of the matrix; others than powers of two are padded.
    #[arg(long, value_name = "D,...", default_value = "768,2048,4096", value_delimiter = ',', value_parser = positive)]
    pub width: Vec<NonZeroUsize>,
    /// Levels of the input.
    #[arg(long, value_name = "LEVEL,...", default_value = "1,4,13", value_delimiter = ',', value_parser = whole::<u32>)]
    pub level: Vec<u32>,
    /// Run the products on ciphertexts, where they fit into memory and are predicted to take at most --longest.
    #[arg(long)]
    pub measure: bool,
    /// Longest predicted time of a product that is run.
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = real)]
    pub longest: f64,
    /// Counted runs of each, after one that encodes its weights.
    #[arg(long, value_name = "N", default_value = "3", value_parser = positive)]
    pub runs: NonZeroUsize,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    pub json: bool,
}

/// `taciturn bench approximation`.
#[derive(Group)]
pub struct ApproximationArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub params: ParamsArgs,
    /// Site of the model, as layer0.exponents: its function on its calibrated interval; by default all functions on intervals of the literature.
    #[arg(long, value_name = "NAME")]
    pub site: Option<String>,
    /// Precision of the approximations that have a choice.
    #[arg(long, value_name = "BITS", default_value_t = 14.0, value_parser = real)]
    pub bits: f64,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    pub json: bool,
}

/// `taciturn bench roofline`.
#[derive(Group)]
pub struct RooflineArgs {
    #[command(flatten)]
    pub params: ParamsArgs,
    /// Bootstraps of every size too, which takes minutes.
    #[arg(long)]
    pub bootstraps: bool,
    /// Draw the roofline to this file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    pub json: bool,
}
