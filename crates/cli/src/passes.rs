//! How a prompt is read: token by token, or in passes of several side by side.

use std::ops::Range;
use std::str::FromStr;

use anyhow::Result;
use serde::Serialize;
use taciturn_ckks::{Encoder, KeyRequest};
use taciturn_graph::key_request;
use taciturn_server::PassPlan;

use crate::args::MemoryArgs;
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

/// Passes as reports show them.
#[derive(Clone, Debug, Serialize)]
pub struct PassReport {
    /// Tokens side by side.
    pub tokens: usize,
    /// Of the plan.
    pub plan_hash: String,
    /// Bootstraps of a pass.
    pub bootstraps: usize,
    /// Of a pass, at the end of the context.
    pub predicted_seconds: f64,
}

impl PlannedPasses {
    /// For reports.
    pub fn report(&self) -> PassReport {
        let plan = &self.passes.plan;
        PassReport {
            tokens: self.passes.tokens,
            plan_hash: plan.hash.clone(),
            bootstraps: plan.bootstraps,
            predicted_seconds: seconds(plan.microseconds),
        }
    }
}

impl PassReport {
    /// For people.
    pub fn line(&self) -> String {
        format!(
            "prompt, {:>3} tokens a pass {:>8.1} s {:>4} bootstraps   {:.2} s a token",
            self.tokens,
            self.predicted_seconds,
            self.bootstraps,
            self.predicted_seconds / self.tokens as f64
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
        let memory = self.memory.with_passes(params, &graph, &plan, &keys);
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
            let count = self.model.pass(tokens)?.count(start, end) as u64;
            let time = count * planned.passes.plan.microseconds;
            if time < least && planned.memory.peak <= memory.limit() {
                least = time;
                best = Some(planned);
            }
        }
        Ok(best)
    }

    /// What every size takes that there is a plan for.
    pub fn pass_reports(&self) -> Vec<PassReport> {
        let planned = self
            .model
            .pass_sizes()
            .into_iter()
            .map(|tokens| self.passes_of(tokens));
        planned.flatten().map(|planned| planned.report()).collect()
    }
}
