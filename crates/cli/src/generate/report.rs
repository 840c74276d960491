//! What a generation reports: to programs as JSON, to people as a few lines.

use serde::Serialize;
use taciturn_ring::Submitted;

use super::modules::{ModuleTime, whole};
use crate::costs::Origin;
use crate::device::GpuReport;
use crate::distribution::Distance;
use crate::exchange::Made;
use crate::passes::PassReport;
use crate::setup::ParamsReport;
use crate::system::gigabytes;

/// What `--json` prints.
#[derive(Serialize)]
pub struct Report {
    pub params: ParamsReport,
    pub backend: &'static str,
    /// What computed, where that was a GPU.
    pub gpu: Option<GpuReport>,
    pub threads: usize,
    /// Of the draws; `--seed` repeats them.
    pub seed: u64,
    pub costs: Origin,
    pub plan_hash: String,
    #[serde(flatten)]
    pub made: Made,
    /// As processed, the beginning-of-text token included.
    pub prompt_tokens: Vec<u32>,
    pub tokens: Vec<u32>,
    pub text: String,
    pub setup_seconds: f64,
    /// How the prompt was read, where not token by token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passes: Option<PassReport>,
    /// Seconds of each step, or of passes in step, that read tokens of the prompt under encryption before the one whose step gives the first new
    /// token.
    pub prompt_steps: Vec<f64>,
    pub steps: Vec<StepReport>,
    /// Of a new token.
    pub modules: Vec<ModuleTime>,
    /// From the command's beginning to its last token.
    pub total_seconds: f64,
    pub predicted_memory_bytes: u64,
    pub peak_rss_bytes: u64,
}

/// One new token.
#[derive(Serialize)]
pub struct StepReport {
    pub token: u32,
    /// From the token before it, encrypted, to this one, decrypted and chosen.
    pub seconds: f64,
    pub bootstraps: usize,
    /// What a device was given to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted: Option<SubmittedReport>,
    #[serde(flatten)]
    pub compare: Option<CompareReport>,
}

/// What was queued on a device: each kernel by itself and each graph is a call of the host.
#[derive(Serialize)]
pub struct SubmittedReport {
    pub kernels: u64,
    pub graphs: u64,
    pub kernels_in_graphs: u64,
}

impl SubmittedReport {
    pub fn new(submitted: Submitted) -> Self {
        Self {
            kernels: submitted.kernels,
            graphs: submitted.graphs,
            kernels_in_graphs: submitted.in_graphs,
        }
    }
}

/// How far a step is from the clear model's.
#[derive(Serialize)]
pub struct CompareReport {
    pub reference_token: u32,
    /// Difference of the clear model's two largest logits.
    pub compare_margin: f64,
    #[serde(flatten)]
    pub distance: Distance,
}

impl Report {
    /// For people, on stderr.
    pub fn summarise(&self) {
        eprintln!();
        for (what, line) in self.lines() {
            eprintln!("{what:<11} {line}");
        }
        self.compare();
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let made = &self.made;
        let new: Vec<f64> = self.steps.iter().map(|step| step.seconds).collect();
        let rest = self.setup_seconds - made.key_seconds - made.encode_seconds;
        vec![
            (
                "setup",
                format!(
                    "{:.1} s: model and plan {rest:.1} s, keys {:.1} s, encoding of weights {:.1} s",
                    self.setup_seconds, made.key_seconds, made.encode_seconds
                ),
            ),
            (
                "prompt",
                format!("{}, and its last with the first new token", self.prompt()),
            ),
            (
                "new tokens",
                format!(
                    "{}, {} bootstraps each",
                    tokens(&new),
                    self.steps.first().map_or(0, |step| step.bootstraps)
                ),
            ),
            ("modules", whole(&self.modules)),
            ("total", format!("{:.1} s", self.total_seconds)),
            (
                "memory",
                format!(
                    "{} at most, of {} predicted; keys {} ({} as they are sent)",
                    gigabytes(self.peak_rss_bytes),
                    gigabytes(self.predicted_memory_bytes),
                    gigabytes(made.key_resident_bytes as u64),
                    gigabytes(made.key_bytes as u64)
                ),
            ),
            (
                "parameters",
                format!(
                    "{} ({} bits of security); seed {}",
                    self.params.name(),
                    self.params.security_bits(),
                    self.seed
                ),
            ),
        ]
    }

    /// How many tokens were read, and their time.
    fn prompt(&self) -> String {
        match &self.passes {
            None => tokens(&self.prompt_steps),
            Some(passes) => format!(
                "{:.1} s in passes of up to {} tokens ({}, {:.1} s a pass predicted)",
                self.prompt_steps.iter().sum::<f64>(),
                passes.tokens,
                self.prompt_steps.len(),
                passes.predicted_seconds
            ),
        }
    }

    /// How far the steps are from the clear model's, where it ran beside.
    fn compare(&self) {
        let compared: Vec<(&StepReport, &CompareReport)> = self
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
            "{:<11} {equal} of {} tokens are the clear model's; largest logit error {:.1e}, largest divergence {:.1e}",
            "comparison",
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
}

/// How many tokens, and their time.
fn tokens(seconds: &[f64]) -> String {
    let total: f64 = seconds.iter().sum();
    match seconds.len() {
        0 => "0 tokens".to_owned(),
        1 => format!("1 token in {total:.1} s"),
        count => format!(
            "{count} tokens in {total:.1} s, {:.1} s each",
            total / count as f64
        ),
    }
}
