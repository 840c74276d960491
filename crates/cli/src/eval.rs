//! `taciturn eval`: how far a way of computing is from the clear model, on a text.

use std::collections::HashMap;

use anyhow::Result;
use serde::Serialize;
use taciturn_ckks::Parameters;
use taciturn_graph::{Logical, NoiseLevels};
use taciturn_models::{StepModel, log_sum_exp};

use crate::args::{EvalArgs, Mode};
use crate::checkpoint::Loaded;
use crate::costs::Costs;
use crate::device;
use crate::distribution::{distance, top};
use crate::exchange::Exchange;
use crate::failure::usage;
use crate::progress;
use crate::reference::Reference;
use crate::setup::{ParamsReport, Setup, parameters};
use crate::system;

/// Predictions where no number is asked for.
const DEFAULT_POSITIONS: usize = 64;

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<ParamsReport>,
    positions: usize,
    perplexity: f64,
    perplexity_clear: f64,
    kl_mean: f64,
    kl_max: f64,
    top1_agreement: f64,
    max_abs_logit_error: f64,
    peak_rss_bytes: u64,
}

/// Runs the command. The text is cut into exchanges of the calibrated length, each after a beginning-of-text token; a prediction is
/// made after every token but that one.
pub fn run(args: &EvalArgs) -> Result<()> {
    let loaded = Loaded::new(&args.model)?;
    let tokens = loaded
        .tokenizer
        .encode(&system::read_text("--text", &args.text)?)?;
    if tokens.len() < 2 {
        return Err(usage(format!(
            "--text {}: expected at least two tokens, got {}",
            args.text.display(),
            tokens.len()
        )));
    }
    let most = tokens.len() - 1;
    let positions = match args.positions {
        None => DEFAULT_POSITIONS.min(most),
        Some(asked) if asked.get() <= most => asked.get(),
        Some(asked) => {
            return Err(usage(format!(
                "--positions: expected at most {most}, as {} has {} tokens and each but the last predicts the next; got {asked}",
                args.text.display(),
                tokens.len()
            )));
        }
    };
    // Each exchange takes one token more than it predicts from.
    let longest = loaded.longest_context() - 1;
    let context = 1 + positions.min(longest);
    let params = match args.mode {
        Mode::Clear => None,
        _ => Some(parameters(&args.params)?),
    };
    let setup = match &params {
        None => None,
        Some(params) => Some(Setup::new(&loaded, params, Costs::load(params)?, context)?),
    };
    if let (Mode::Encrypted, Some(setup)) = (args.mode, &setup) {
        setup.check_memory(&args.memory)?;
    }
    let server = match &setup {
        Some(setup) => Some(device::place(&setup.params, args.device.device)?.0),
        None => None,
    };
    let mut totals = Totals::default();
    let bar = progress::bar(positions, "predicting");
    let pairs: Vec<(u32, u32)> = tokens
        .iter()
        .copied()
        .zip(tokens[1..].iter().copied())
        .collect();
    for window in pairs[..positions].chunks(longest) {
        let mut clear = Reference::new(&loaded)?;
        let mut other = Predictor::new(args.mode, setup.as_ref().zip(server.as_ref()))?;
        for &(token, next) in window {
            let reference = clear.step(token)?;
            let logits = match &mut other {
                Predictor::Clear => reference.clone(),
                Predictor::Simulated(simulated) => simulated.step(token)?,
                Predictor::Encrypted(exchange) => exchange.step(token, |_, _, _| {})?.logits,
            };
            totals.add(&reference, &logits, next)?;
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let report = totals.report(args.mode, params.as_ref().map(ParamsReport::new));
    if args.json {
        return system::print_json(&report);
    }
    system::print_text(&format!(
        "{} over {} positions: perplexity {:.4} (clear {:.4}), divergence {:.2e} mean, {:.2e} worst, \
         same first choice {:.1}%, largest logit error {:.2e}\n",
        report.mode,
        report.positions,
        report.perplexity,
        report.perplexity_clear,
        report.kl_mean,
        report.kl_max,
        100.0 * report.top1_agreement,
        report.max_abs_logit_error
    ))
}

/// A way of computing, after the beginning-of-text token.
enum Predictor<'a> {
    Clear,
    Simulated(Box<Simulated<'a>>),
    Encrypted(Box<Exchange>),
}

impl<'a> Predictor<'a> {
    fn new(mode: Mode, setup: Option<(&'a Setup, &Parameters)>) -> Result<Self> {
        match (mode, setup) {
            (Mode::Simulated, Some((setup, _))) => {
                Ok(Predictor::Simulated(Box::new(Simulated::new(setup))))
            }
            (Mode::Encrypted, Some((setup, server))) => Ok(Predictor::Encrypted(Box::new(
                Exchange::begin(setup, server)?,
            ))),
            _ => Ok(Predictor::Clear),
        }
    }
}

/// The approximations and the plan's noise on vectors.
struct Simulated<'a> {
    setup: &'a Setup,
    machine: Logical,
    inputs: HashMap<String, Vec<f64>>,
    position: usize,
}

impl<'a> Simulated<'a> {
    fn new(setup: &'a Setup) -> Self {
        let caches = setup.model.prefix_caches();
        let params = &setup.params;
        let level_bits = f64::from(params.literal().level_bits);
        let noise = NoiseLevels::of_ciphertexts(params.ring().n(), level_bits);
        Simulated {
            setup,
            machine: Logical::simulated(noise, 1),
            inputs: caches
                .into_iter()
                .map(|(name, plain)| (name, plain.values()))
                .collect(),
            position: 1,
        }
    }

    fn step(&mut self, token: u32) -> Result<Vec<f64>> {
        let model = &self.setup.model;
        let graph = model.graph(self.position)?;
        let embedding = model.embed(token, self.position)?;
        self.inputs
            .insert(StepModel::input_name().into(), embedding);
        let mut outputs = self
            .machine
            .run(&graph, Some(&self.setup.plan), &self.inputs)?;
        for (name, id) in graph.outputs() {
            if graph.node(*id).op.cache_family().is_some()
                && let Some(cache) = outputs.remove(name)
            {
                self.inputs.insert(name.clone(), cache);
            }
        }
        self.position += 1;
        // The simulation is on entries: blocks of logits in order are the logits.
        let mut logits: Vec<f64> = model
            .logit_outputs(&graph)
            .iter()
            .flat_map(|(name, _)| outputs.remove(name).unwrap_or_default())
            .collect();
        logits.truncate(model.config().vocabulary);
        Ok(logits)
    }
}

/// Sums over positions.
#[derive(Default)]
struct Totals {
    positions: usize,
    surprise: f64,
    surprise_clear: f64,
    kl: f64,
    kl_max: f64,
    agreed: usize,
    error: f64,
}

impl Totals {
    fn add(&mut self, clear: &[f64], other: &[f64], next: u32) -> Result<()> {
        let surprise = |logits: &[f64]| log_sum_exp(logits) - logits[next as usize];
        let distance = distance(clear, other)?;
        self.positions += 1;
        self.surprise += surprise(other);
        self.surprise_clear += surprise(clear);
        self.kl += distance.kl;
        self.kl_max = self.kl_max.max(distance.kl);
        self.error = self.error.max(distance.max_abs_logit_error);
        self.agreed += usize::from(top(clear) == top(other));
        Ok(())
    }

    fn report(&self, mode: Mode, params: Option<ParamsReport>) -> Report {
        let mean = |sum: f64| sum / self.positions as f64;
        Report {
            mode: match mode {
                Mode::Clear => "clear",
                Mode::Simulated => "simulated",
                Mode::Encrypted => "encrypted",
            },
            params,
            positions: self.positions,
            perplexity: mean(self.surprise).exp(),
            perplexity_clear: mean(self.surprise_clear).exp(),
            kl_mean: mean(self.kl),
            kl_max: self.kl_max,
            top1_agreement: mean(self.agreed as f64),
            max_abs_logit_error: self.error,
            peak_rss_bytes: system::peak_rss_bytes(),
        }
    }
}
