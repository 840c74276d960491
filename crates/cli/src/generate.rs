//! `taciturn generate`: prompt in, text out, and everything in between encrypted.

mod modules;
mod report;
mod text;

use std::time::Instant;

use anyhow::{Context, Result};
use taciturn_ckks::Parameters;
use taciturn_client::{ClientError, Sampler, Sampling};

use crate::args::GenerateArgs;
use crate::checkpoint::Loaded;
use crate::costs::Costs;
use crate::device;
use crate::distribution::{distance, margin};
use crate::exchange::Exchange;
use crate::failure::usage;
use crate::progress;
use crate::prompt;
use crate::reference::Reference;
use crate::rows::Rows;
use crate::setup::{ParamsReport, Setup, Wanted, parameters};
use crate::strategy::Strategy;
use crate::system;
use modules::Clock;
use report::{CompareReport, Report, StepReport, SubmittedReport};
use text::TextStream;

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
    let (server, gpu) = device::place(&params, &args.device)?;
    let mut loaded = Loaded::new(&args.model)?;
    let new_tokens = args.max_new_tokens.get();
    loaded.public = prompt::public(&loaded, args.public_prefix.as_deref(), new_tokens)?;
    let loaded = loaded;
    let prompt = prompt::tokens(&loaded, &args.prompt, new_tokens)?;
    let (costs, context) = (Costs::load(&params)?, prompt.len() + new_tokens);
    let mut setup = match &args.plan {
        Some(path) => Setup::planned(&loaded, &params, costs, context, path)?,
        None => {
            let wanted = Wanted {
                context,
                strategy: Strategy::default(),
                selection: &args.selection.selection(),
            };
            Setup::new(&loaded, &params, costs, &wanted)?
        }
    };
    setup.fit_memory(&args.memory)?;
    let private = setup.model.prefix_tokens()..prompt.len();
    setup.plan_passes(private.start..private.end - 1, args.pass_size, &args.memory)?;
    // Passes take memory beside the steps.
    setup.fit_memory(&args.memory)?;
    device::check_memory(gpu.as_ref(), &setup.memory, args.device.key_halves)?;
    let exchange = Exchange::begin(&setup, &server)?;
    let made = exchange.made;
    let setup_seconds = start.elapsed().as_secs_f64();
    let mut rows = Rows::open(args.rows.rows.as_deref())?;
    rows.add("setup", &made)?;
    let mut generation = Generation {
        exchange,
        server: &server,
        rows,
        sampler,
        clear: None,
        loaded: &loaded,
        text: TextStream::new(&loaded.tokenizer, args.json),
        clock: Clock::new(),
        done: 0,
        of: private.len() - 1 + new_tokens,
    };
    if args.compare {
        generation.clear = Some(Reference::new(&loaded)?);
    }
    let (prompt_steps, steps) = generation.run(&prompt[private], new_tokens)?;
    let text = generation.text.finish()?;
    let report = Report {
        params: ParamsReport::new(&params),
        backend: server.ring().backend_name(),
        gpu,
        threads: system::threads(),
        seed,
        costs: setup.costs.origin,
        plan_hash: setup.plan.hash.clone(),
        made,
        prompt_tokens: prompt,
        tokens: steps.iter().map(|step| step.token).collect(),
        text,
        setup_seconds,
        passes: setup.pass_report()?,
        prompt_steps,
        steps,
        modules: generation.clock.modules(&setup.plan),
        total_seconds: start.elapsed().as_secs_f64(),
        predicted_memory_bytes: setup.memory.peak,
        peak_rss_bytes: system::peak_rss_bytes(),
    };
    if args.json {
        return system::print_json(&report);
    }
    report.summarise();
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
    /// What the server computes with.
    server: &'a Parameters,
    rows: Rows,
    sampler: Sampler,
    clear: Option<Reference<'a>>,
    loaded: &'a Loaded,
    text: TextStream<'a>,
    /// Of the new tokens.
    clock: Clock,
    done: usize,
    /// Tokens that will be processed.
    of: usize,
}

impl Generation<'_> {
    /// Seconds of every step that read the prompt, and the new tokens.
    fn run(&mut self, prompt: &[u32], new_tokens: usize) -> Result<(Vec<f64>, Vec<StepReport>)> {
        let mut prompt_steps = Vec::new();
        let (&last, mut before) = prompt.split_last().context("the prompt is not empty")?;
        while !before.is_empty() {
            let start = Instant::now();
            let (tokens, others) = before.split_at(self.exchange.at_once(before.len())?);
            self.with_bar("reading the prompt", tokens.len(), |exchange, observe| {
                exchange.absorb_several(tokens, observe)
            })?;
            prompt_steps.push(start.elapsed().as_secs_f64());
            if let Some(clear) = &mut self.clear {
                for &token in tokens {
                    clear.step(token)?;
                }
            }
            before = others;
        }
        // Tokens of the prompt pass through fewer modules.
        self.clock = Clock::new();
        let mut steps: Vec<StepReport> = Vec::new();
        let mut token = last;
        while steps.len() < new_tokens {
            let step = self.next(token)?;
            token = step.token;
            self.rows.add("step", &step)?;
            steps.push(step);
            if self.loaded.checkpoint.config.eos.contains(&token) {
                break;
            }
            self.text.push(token)?;
        }
        Ok((prompt_steps, steps))
    }

    /// Processes a token and chooses the one after it.
    fn next(&mut self, token: u32) -> Result<StepReport> {
        let start = Instant::now();
        let queue = self.server.ring().queue();
        let before = queue.map(|queue| queue.submitted());
        let stepped = self.with_bar("generating", 1, |exchange, observe| {
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
            submitted: queue
                .zip(before)
                .map(|(queue, before)| SubmittedReport::new(queue.submitted().since(before))),
            compare,
        })
    }

    /// Processes tokens with a bar that shows how far they are.
    fn with_bar<T>(
        &mut self,
        what: &str,
        tokens: usize,
        process: impl FnOnce(&mut Exchange, &mut dyn FnMut(&str, usize, usize)) -> Result<T>,
    ) -> Result<T> {
        self.done += tokens;
        let message = format!("{what}, token {} of {}", self.done, self.of);
        let bar = progress::bar_below(self.text.shown(), 1, message);
        self.clock.begin();
        let clock = &mut self.clock;
        let done = process(&mut self.exchange, &mut |node, index, total| {
            clock.computed(node);
            bar.set_length(total as u64);
            bar.set_position(index as u64 + 1);
        });
        bar.finish_and_clear();
        done
    }
}
