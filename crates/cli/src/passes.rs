//! How a prompt is read: token by token, or in passes of several side by side.

use std::ops::Range;
use std::str::FromStr;

use anyhow::Result;
use serde::Serialize;
use taciturn_ckks::{Encoder, KeyRequest};
use taciturn_graph::{Counter, key_request, run};
use taciturn_server::PassPlan;

use crate::args::MemoryArgs;
use crate::exchange::PASSES_IN_STEP;
use crate::failure::usage;
use crate::memory::Prediction;
use crate::setup::Setup;
use crate::strategy::Strategy;

/// How many tokens of a prompt are computed side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassSize {
    /// What is predicted to take least time.
    Auto,
    /// One after the other.
    Off,
    /// So many.
    Tokens(usize),
}

impl FromStr for PassSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("auto", _) => Ok(PassSize::Auto),
            ("off", _) | (_, Ok(1)) => Ok(PassSize::Off),
            (_, Ok(tokens)) => Ok(PassSize::Tokens(tokens)),
            _ => Err("expected auto, off or a power of two".to_owned()),
        }
    }
}

/// Passes with what they are predicted to take.
pub struct PlannedPasses {
    /// Their plan.
    pub passes: PassPlan,
    keys: KeyRequest,
    memory: Prediction,
}

/// What reading a prompt is predicted to take.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PromptTime {
    /// Its tokens, the public ones apart.
    pub tokens: usize,
    /// Passes that read them.
    pub passes: usize,
    /// All of it.
    pub seconds: f64,
    /// For encoding weights, once for passes that are computed in step.
    pub encode_seconds: f64,
}

/// Passes as reports show them.
#[derive(Clone, Debug, Serialize)]
pub struct PassReport {
    /// Tokens side by side.
    pub tokens: usize,
    /// Of the plan.
    pub plan_hash: String,
    /// Bootstraps of a pass.
    pub bootstraps: usize,
    /// Of a pass, at the end of the context, encoding of weights apart.
    pub predicted_seconds: f64,
    /// Of a prompt that fills the context.
    pub prompt: PromptTime,
    /// Of memory at most, with the step's own.
    pub memory_bytes: u64,
}

impl PlannedPasses {
    /// For reports; `prompt` is what one takes.
    fn report(&self, prompt: PromptTime) -> PassReport {
        let plan = &self.passes.plan;
        PassReport {
            tokens: self.passes.tokens,
            plan_hash: plan.hash.clone(),
            bootstraps: plan.bootstraps,
            predicted_seconds: seconds(plan.microseconds),
            prompt,
            memory_bytes: self.memory.peak,
        }
    }
}

impl PassReport {
    /// For people.
    pub fn line(&self) -> String {
        let prompt = &self.prompt;
        format!(
            "prompt of {} tokens, {:>3} a pass {:>8.1} s, {:.1} of it for encoding   {:.2} s a token   {:.1} s and {} bootstraps the last pass, \
             {:.1} GB at most",
            prompt.tokens,
            self.tokens,
            prompt.seconds,
            prompt.encode_seconds,
            prompt.seconds / prompt.tokens as f64,
            self.predicted_seconds,
            self.bootstraps,
            self.memory_bytes as f64 / 1e9,
        )
    }
}

fn seconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1e6
}

impl Setup {
    /// Plans the passes that read a prompt's tokens at these positions, if there are to be any.
    pub fn plan_passes(
        &mut self,
        positions: Range<usize>,
        size: PassSize,
        memory: &MemoryArgs,
    ) -> Result<()> {
        let chosen = match size {
            PassSize::Off => None,
            PassSize::Tokens(tokens) => {
                let sizes = self.model.pass_sizes();
                if !sizes.contains(&tokens) {
                    return Err(usage(format!(
                        "--pass-size: expected auto, off or one of {sizes:?}, which this model has room for, got {tokens}"
                    )));
                }
                Some(self.passes_of(tokens)?)
            }
            PassSize::Auto => self.fastest_passes(positions, memory)?,
        };
        if let Some(passes) = chosen {
            self.keys = passes.keys.clone();
            self.memory = passes.memory;
            self.passes = Some(passes);
        }
        Ok(())
    }

    /// Passes of so many tokens that only fill the caches.
    pub fn passes_of(&self, tokens: usize) -> Result<PlannedPasses> {
        let (pass, params) = (self.model.pass(tokens)?, &self.params);
        let placement = Strategy::default().placement();
        let plan = pass
            .plan(
                &self.costs.table,
                placement.as_ref(),
                &self.plan.caches,
                false,
            )?
            .made_for(params.name(), self.model.context());
        let mut keys = self.keys.clone();
        keys.merge(&key_request(&Encoder::new(params), &plan)?);
        let graph = pass.longest(&plan, false)?;
        let count = self.model.context().div_ceil(tokens);
        let in_step = PASSES_IN_STEP.min(count);
        let memory = (self.memory).with_passes(params, &graph, &plan, &keys, in_step);
        Ok(PlannedPasses {
            passes: PassPlan {
                tokens,
                plan,
                logits: false,
            },
            keys,
            memory,
        })
    }

    /// What passes take that read the tokens at these positions.
    fn prompt_time(&self, planned: &PlannedPasses, positions: Range<usize>) -> Result<PromptTime> {
        let PassPlan { tokens, plan, .. } = &planned.passes;
        let (table, pass) = (&self.costs.table, self.model.pass(*tokens)?);
        let (mut milliseconds, mut encoded) = (0.0, 0);
        let (mut start, mut passes) = (positions.start, 0);
        while start < positions.end {
            let next = pass.positions(start, positions.end);
            start = next.end;
            let graph = pass.step_graph(plan, next, false)?;
            let mut counter = Counter::new(graph.slots(), table);
            let inputs = (graph.nodes().iter())
                .filter(|node| node.inputs.is_empty())
                .map(|node| Ok((node.name.clone(), plan.input_level(node)?)))
                .collect::<Result<_>>()?;
            run(&graph, plan, &mut counter, inputs, &mut |_| ())?;
            milliseconds += counter.milliseconds();
            if passes % PASSES_IN_STEP == 0 && planned.memory.weight_limit().is_some() {
                encoded += counter.counts().weights;
            }
            passes += 1;
        }
        let encode_seconds = encoded as f64 * table.embed_ms / 1e3;
        Ok(PromptTime {
            tokens: positions.len(),
            passes,
            seconds: milliseconds / 1e3 + encode_seconds,
            encode_seconds,
        })
    }

    /// The passes that take least time for these positions and fit into memory; none where one token after the other takes less.
    fn fastest_passes(
        &self,
        positions: Range<usize>,
        memory: &MemoryArgs,
    ) -> Result<Option<PlannedPasses>> {
        let Range { start, end } = positions;
        if end < start + 2 {
            return Ok(None);
        }
        let graph = self.model.prompt_graph(&self.plan, end - 1)?;
        let nodes = graph.nodes().iter();
        let one = nodes.filter_map(|node| Some(self.plan.node(&node.name).ok()?.microseconds));
        let mut least = (end - start) as u64 * one.sum::<u64>();
        let mut best = None;
        let longest = 2 * (end - start).next_power_of_two();
        for tokens in self.model.pass_sizes() {
            if tokens > longest {
                break;
            }
            // A size for which there is no plan, or no room, is none to take.
            let Ok(mut planned) = self.passes_of(tokens) else {
                continue;
            };
            planned.memory = planned.memory.within(memory.limit());
            let time = (self.prompt_time(&planned, start..end)?.seconds * 1e6) as u64;
            if time < least && planned.memory.peak <= memory.limit() {
                least = time;
                best = Some(planned);
            }
        }
        Ok(best)
    }

    /// What the chosen passes take, for a prompt that fills the context.
    pub fn pass_report(&self) -> Result<Option<PassReport>> {
        let positions = self.model.prefix_tokens()..self.model.context();
        let report = |planned: &PlannedPasses| {
            Ok(planned.report(self.prompt_time(planned, positions.clone())?))
        };
        self.passes.as_ref().map(report).transpose()
    }

    /// What every size takes that there is a plan for.
    pub fn pass_reports(&self, memory: &MemoryArgs) -> Result<Vec<PassReport>> {
        let positions = self.model.prefix_tokens()..self.model.context();
        let sizes = self.model.pass_sizes().into_iter();
        let planned = sizes.filter_map(|tokens| self.passes_of(tokens).ok());
        planned
            .map(|mut planned| {
                planned.memory = planned.memory.within(memory.limit());
                Ok(planned.report(self.prompt_time(&planned, positions.clone())?))
            })
            .collect()
    }
}
