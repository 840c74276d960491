//! `taciturn eval`: how far a way of computing is from the clear model, on a text.

mod agreement;
mod simulated;

use anyhow::Result;
use serde::Serialize;
use taciturn_ckks::Parameters;
use taciturn_models::log_sum_exp;

use self::agreement::{Agreement, Choice};
use self::simulated::Simulated;

use crate::args::{EvalArgs, Mode};
use crate::checkpoint::Loaded;
use crate::costs::Costs;
use crate::device;
use crate::distribution::{distance, margin, top};
use crate::exchange::Exchange;
use crate::failure::usage;
use crate::progress;
use crate::reference::Reference;
use crate::setup::{ParamsReport, Setup, Wanted, parameters};
use crate::strategy::Strategy;
use crate::system;

/// Predictions where no number is asked for.
const DEFAULT_POSITIONS: usize = 64;
/// Of the noise in simulations: equal runs give equal reports.
const SEEDS: [u64; 2] = [1, 2];

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
    #[serde(flatten)]
    agreement: Agreement,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulation: Option<Simulation>,
    peak_rss_bytes: u64,
}

/// The same positions in simulation, beside ciphertexts: what the noise model claims and how it holds.
#[derive(Clone, Copy, Default, Serialize)]
struct Simulation {
    /// Largest difference of a simulated logit from the clear model's.
    max_abs_logit_error: f64,
    /// Largest difference of a decrypted logit from the simulated one.
    max_abs_difference: f64,
    /// Largest difference between two simulations with noise of their own: what noise alone is claimed to do.
    max_abs_noise: f64,
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
    let mut setup = match &params {
        None => None,
        Some(params) => {
            let wanted = Wanted {
                context,
                strategy: Strategy::default(),
                selection: &args.selection.selection(),
            };
            Some(Setup::new(&loaded, params, Costs::load(params)?, &wanted)?)
        }
    };
    if let (Mode::Encrypted, Some(setup)) = (args.mode, &mut setup) {
        setup.fit_memory(&args.memory)?;
    }
    let server = match &setup {
        Some(setup) => {
            let (server, gpu) = device::place(&setup.params, &args.device)?;
            device::check_memory(gpu.as_ref(), &setup.memory, args.device.key_halves)?;
            Some(server)
        }
        None => None,
    };
    let mut totals = Totals::default();
    let bar = progress::bar(positions, "predicting");
    let pairs: Vec<(u32, u32)> = tokens
        .iter()
        .copied()
        .zip(tokens[1..].iter().copied())
        .collect();
    let mut predictor = Predictor::new(args.mode, setup.as_ref().zip(server.as_ref()))?;
    for window in pairs[..positions].chunks(longest) {
        let mut clear = Reference::new(&loaded)?;
        predictor.restart();
        for &(token, next) in window {
            let reference = clear.step(token)?;
            let logits = match &mut predictor {
                Predictor::Clear => reference.clone(),
                Predictor::Simulated { machine, .. } => machine.step(token)?,
                Predictor::Encrypted {
                    exchange, beside, ..
                } => {
                    let logits = exchange.step(token, |_, _, _| {})?.logits;
                    let [first, second] = beside.as_mut();
                    totals.simulated(
                        &reference,
                        &logits,
                        &first.step(token)?,
                        &second.step(token)?,
                    )?;
                    logits
                }
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
    let mut text = format!(
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
    );
    text += &report.agreement.text();
    if let Some(simulation) = &report.simulation {
        text += &format!(
            "simulated on the same positions: largest logit error {:.2e}; decrypted and simulated logits differ by {:.2e} at most, two simulations by {:.2e}\n",
            simulation.max_abs_logit_error, simulation.max_abs_difference, simulation.max_abs_noise
        );
    }
    system::print_text(&text)
}

/// A way of computing, after the beginning-of-text token.
enum Predictor<'a> {
    Clear,
    Simulated {
        setup: &'a Setup,
        machine: Box<Simulated<'a>>,
    },
    Encrypted {
        setup: &'a Setup,
        exchange: Box<Exchange>,
        /// The same on vectors, with noise of two seeds.
        beside: Box<[Simulated<'a>; 2]>,
    },
}

impl<'a> Predictor<'a> {
    /// Keys and encoded weights serve every window of the text.
    fn new(mode: Mode, setup: Option<(&'a Setup, &Parameters)>) -> Result<Self> {
        Ok(match (mode, setup) {
            (Mode::Simulated, Some((setup, _))) => Predictor::Simulated {
                setup,
                machine: Box::new(Simulated::new(setup, SEEDS[0])),
            },
            (Mode::Encrypted, Some((setup, server))) => Predictor::Encrypted {
                setup,
                exchange: Box::new(Exchange::begin(setup, server)?),
                beside: Box::new(SEEDS.map(|seed| Simulated::new(setup, seed))),
            },
            _ => Predictor::Clear,
        })
    }

    /// Forgets all tokens but the first.
    fn restart(&mut self) {
        match self {
            Predictor::Clear => {}
            Predictor::Simulated { setup, machine } => {
                **machine = Simulated::new(setup, SEEDS[0]);
            }
            Predictor::Encrypted {
                setup,
                exchange,
                beside,
            } => {
                exchange.restart();
                **beside = SEEDS.map(|seed| Simulated::new(setup, seed));
            }
        }
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
    choices: Vec<Choice>,
    error: f64,
    simulation: Option<Simulation>,
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
        self.choices.push(Choice {
            position: self.positions,
            clear: top(clear),
            got: top(other),
            margin: margin(clear),
        });
        Ok(())
    }

    /// Compares decrypted logits with those of two simulations.
    fn simulated(
        &mut self,
        clear: &[f64],
        decrypted: &[f64],
        first: &[f64],
        second: &[f64],
    ) -> Result<()> {
        let worst = self.simulation.get_or_insert_default();
        for (worst, a, b) in [
            (&mut worst.max_abs_logit_error, clear, first),
            (&mut worst.max_abs_difference, decrypted, first),
            (&mut worst.max_abs_noise, first, second),
        ] {
            *worst = worst.max(distance(a, b)?.max_abs_logit_error);
        }
        Ok(())
    }

    fn report(self, mode: Mode, params: Option<ParamsReport>) -> Report {
        let agreed = self.choices.iter().filter(|choice| choice.agrees()).count();
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
            top1_agreement: mean(agreed as f64),
            max_abs_logit_error: self.error,
            simulation: self.simulation,
            agreement: Agreement::new(self.choices, self.error),
            peak_rss_bytes: system::peak_rss_bytes(),
        }
    }
}
