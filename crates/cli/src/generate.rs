//! `taciturn generate`: prompt in, text out, and everything in between encrypted.

use std::io::{IsTerminal, Write, stdout};
use std::time::Instant;

use anyhow::{Context, Result};
use serde::Serialize;
use taciturn_client::{ClientError, Sampler, Sampling};
use taciturn_models::TextTokenizer;

use crate::args::GenerateArgs;
use crate::checkpoint::Loaded;
use crate::costs::{Costs, Origin};
use crate::distribution::{Distance, distance, margin};
use crate::exchange::Exchange;
use crate::failure::usage;
use crate::progress;
use crate::prompt;
use crate::reference::Reference;
use crate::setup::{ParamsReport, Setup, parameters};
use crate::system;

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    params: ParamsReport,
    backend: &'static str,
    threads: usize,
    /// Of the draws; `--seed` repeats them.
    seed: u64,
    costs: Origin,
    plan_hash: String,
    key_bytes: usize,
    /// As processed, the beginning-of-text token included.
    prompt_tokens: Vec<u32>,
    tokens: Vec<u32>,
    text: String,
    setup_seconds: f64,
    /// Seconds of each prompt token that was processed under encryption before the one whose step gives the first new token.
    prompt_steps: Vec<f64>,
    steps: Vec<StepReport>,
    predicted_memory_bytes: u64,
    peak_rss_bytes: u64,
}

/// One new token.
#[derive(Serialize)]
struct StepReport {
    token: u32,
    /// From the token before it, encrypted, to this one, decrypted and chosen.
    seconds: f64,
    bootstraps: usize,
    #[serde(flatten)]
    compare: Option<CompareReport>,
}

/// How far a step is from the clear model's.
#[derive(Serialize)]
struct CompareReport {
    reference_token: u32,
    /// Difference of the clear model's two largest logits.
    compare_margin: f64,
    #[serde(flatten)]
    distance: Distance,
}

/// Runs the command.
pub fn run(args: &GenerateArgs) -> Result<()> {
    let start = Instant::now();
    let seed = match args.seed {
        Some(seed) => seed,
        None => random_seed()?,
    };
    let sampler = Sampler::new(Sampling {
        temperature: args.temperature,
        top_p: args.top_p,
        seed,
    })
    .map_err(of_flag)?;
    let params = parameters(&args.params)?;
    let loaded = Loaded::new(&args.model)?;
    let new_tokens = args.max_new_tokens.get();
    let prompt = prompt::tokens(&loaded, &args.prompt, new_tokens)?;
    let setup = Setup::new(
        &loaded,
        &params,
        Costs::load(&params)?,
        prompt.len() + new_tokens,
    )?;
    setup.check_memory(&args.memory)?;
    let exchange = Exchange::begin(&setup)?;
    let key_bytes = exchange.key_bytes;
    let setup_seconds = start.elapsed().as_secs_f64();
    let mut generation = Generation {
        exchange,
        sampler,
        clear: None,
        loaded: &loaded,
        text: TextStream::new(&loaded.tokenizer, args.json),
        done: 0,
        of: prompt.len() - 2 + new_tokens,
    };
    if args.compare {
        generation.clear = Some(Reference::new(&loaded)?);
    }
    let (prompt_steps, steps) = generation.run(&prompt, new_tokens)?;
    let text = generation.text.finish()?;
    let report = Report {
        params: ParamsReport::new(&params),
        backend: params.ring().backend_name(),
        threads: system::threads(),
        seed,
        costs: setup.costs.origin,
        plan_hash: setup.plan.hash.clone(),
        key_bytes,
        prompt_tokens: prompt,
        tokens: steps.iter().map(|step| step.token).collect(),
        text,
        setup_seconds,
        prompt_steps,
        steps,
        predicted_memory_bytes: setup.memory.peak,
        peak_rss_bytes: system::peak_rss_bytes(),
    };
    if args.json {
        return system::print_json(&report);
    }
    summarise(&report);
    Ok(())
}

/// A seed from the operating system, of 53 bits, which every reader of JSON keeps exactly.
fn random_seed() -> Result<u64> {
    let random = getrandom::u64()
        .context("the operating system gave no random seed; name one with --seed")?;
    Ok(random >> 11)
}

/// A sampling setting that is out of range, under its flag's name.
fn of_flag(error: ClientError) -> anyhow::Error {
    match error {
        ClientError::Sampling { .. } => usage(format!("--{error}")),
        error => error.into(),
    }
}

/// A generation under way.
struct Generation<'a> {
    exchange: Exchange,
    sampler: Sampler,
    clear: Option<Reference<'a>>,
    loaded: &'a Loaded,
    text: TextStream<'a>,
    done: usize,
    /// Tokens that will be processed.
    of: usize,
}

impl Generation<'_> {
    /// Seconds of the prompt's tokens, and the new tokens.
    fn run(&mut self, prompt: &[u32], new_tokens: usize) -> Result<(Vec<f64>, Vec<StepReport>)> {
        let mut prompt_steps = Vec::new();
        let (&last, before) = prompt[1..]
            .split_last()
            .context("the prompt is not empty")?;
        for &token in before {
            let start = Instant::now();
            self.with_bar("reading the prompt", |exchange, observe| {
                exchange.absorb(token, observe)
            })?;
            prompt_steps.push(start.elapsed().as_secs_f64());
            if let Some(clear) = &mut self.clear {
                clear.step(token)?;
            }
        }
        let mut steps: Vec<StepReport> = Vec::new();
        let mut token = last;
        while steps.len() < new_tokens {
            let step = self.next(token)?;
            token = step.token;
            steps.push(step);
            if self.loaded.checkpoint.config.eos == Some(token) {
                break;
            }
            self.text.push(token)?;
        }
        Ok((prompt_steps, steps))
    }

    /// Processes a token and chooses the one after it.
    fn next(&mut self, token: u32) -> Result<StepReport> {
        let start = Instant::now();
        let stepped = self.with_bar("generating", |exchange, observe| {
            exchange.step(token, observe)
        })?;
        let draw = self.sampler.draw();
        let chosen = self.sampler.choose(&stepped.logits, draw);
        let seconds = start.elapsed().as_secs_f64();
        let compare = match &mut self.clear {
            None => None,
            Some(clear) => {
                let logits = clear.step(token)?;
                Some(CompareReport {
                    reference_token: self.sampler.choose(&logits, draw),
                    compare_margin: margin(&logits),
                    distance: distance(&logits, &stepped.logits)?,
                })
            }
        };
        Ok(StepReport {
            token: chosen,
            seconds,
            bootstraps: stepped.bootstraps,
            compare,
        })
    }

    /// Processes a token with a bar that shows how far it is.
    fn with_bar<T>(
        &mut self,
        what: &str,
        process: impl FnOnce(&mut Exchange, &mut dyn FnMut(&str, usize, usize)) -> Result<T>,
    ) -> Result<T> {
        self.done += 1;
        let message = format!("{what}, token {} of {}", self.done, self.of);
        let bar = progress::bar_below(self.text.shown(), 1, message);
        let done = process(&mut self.exchange, &mut |_, index, total| {
            bar.set_length(total as u64);
            bar.set_position(index as u64 + 1);
        });
        bar.finish_and_clear();
        done
    }
}

/// New text, printed as it comes: piece by piece, or above the progress bar where both go to one terminal.
struct TextStream<'a> {
    tokenizer: &'a TextTokenizer,
    tokens: Vec<u32>,
    text: String,
    printed: usize,
    silent: bool,
    above_bar: bool,
}

impl<'a> TextStream<'a> {
    fn new(tokenizer: &'a TextTokenizer, silent: bool) -> Self {
        TextStream {
            tokenizer,
            tokens: Vec::new(),
            text: String::new(),
            printed: 0,
            silent,
            above_bar: stdout().is_terminal() && std::io::stderr().is_terminal(),
        }
    }

    fn push(&mut self, token: u32) -> Result<()> {
        self.tokens.push(token);
        self.text = self.tokenizer.decode(&self.tokens)?;
        // A character whose bytes are not all there yet decodes to a replacement; it waits.
        if !self.above_bar && !self.text.ends_with(char::REPLACEMENT_CHARACTER) {
            self.print()?;
        }
        Ok(())
    }

    /// What a progress bar has to leave visible above it.
    fn shown(&self) -> &str {
        if self.above_bar && !self.silent {
            &self.text
        } else {
            ""
        }
    }

    fn print(&mut self) -> Result<()> {
        if self.silent {
            return Ok(());
        }
        let piece = self.text.get(self.printed..).unwrap_or_default();
        let mut out = stdout().lock();
        out.write_all(piece.as_bytes())
            .and_then(|()| out.flush())
            .context("standard output")?;
        self.printed = self.text.len();
        Ok(())
    }

    /// Prints what is left; the whole text.
    fn finish(&mut self) -> Result<String> {
        self.print()?;
        if !self.silent {
            writeln!(stdout()).context("standard output")?;
        }
        Ok(std::mem::take(&mut self.text))
    }
}

/// For people, on stderr.
fn summarise(report: &Report) {
    let total: f64 = report.steps.iter().map(|step| step.seconds).sum();
    eprintln!(
        "{} tokens, {:.1} s each, {} bootstraps each; setup {:.1} s, keys {}, peak memory {}; {} ({} bits of security); seed {}",
        report.steps.len(),
        total / report.steps.len() as f64,
        report.steps.first().map_or(0, |step| step.bootstraps),
        report.setup_seconds,
        system::gigabytes(report.key_bytes as u64),
        system::gigabytes(report.peak_rss_bytes),
        report.params.name(),
        report.params.security_bits(),
        report.seed,
    );
    let compared: Vec<(&StepReport, &CompareReport)> = report
        .steps
        .iter()
        .filter_map(|step| Some((step, step.compare.as_ref()?)))
        .collect();
    if compared.is_empty() {
        return;
    }
    let equal = compared
        .iter()
        .filter(|(step, compare)| step.token == compare.reference_token)
        .count();
    let worst = |of: fn(&Distance) -> f64| {
        compared
            .iter()
            .map(|(_, compare)| of(&compare.distance))
            .fold(0.0, f64::max)
    };
    eprintln!(
        "against the clear model: {equal} of {} tokens equal, largest logit error {:.1e}, largest divergence {:.1e}",
        compared.len(),
        worst(|distance| distance.max_abs_logit_error),
        worst(|distance| distance.kl),
    );
    for (step, compare) in compared {
        if step.token != compare.reference_token {
            eprintln!(
                "  token {} where the clear model has {}, whose lead is {:.1e}",
                step.token, compare.reference_token, compare.compare_margin
            );
        }
    }
}
