//! Time and memory by context length.

use anyhow::Result;
use serde::Serialize;

use crate::chart::{Bar, Labels, Line, lines, stacked_bars};
use crate::checkpoint::Loaded;
use crate::memory::Prediction;
use crate::setup::{Setup, Wanted};
use crate::system::gigabytes;

/// Lengths that are shown, as far as a model has positions.
const LENGTHS: [usize; 8] = [2, 16, 32, 64, 128, 256, 512, 1024];
/// The shortest in the picture of memory: below, only the caches are smaller.
const SHORTEST_BAR: usize = 64;

/// What a context of some length takes; each has the fastest plan of its own.
#[derive(Serialize)]
pub struct ContextReport {
    context: usize,
    /// Whether the model is calibrated for as many tokens; where it is not, its intervals are taken as those of the longest that it is for.
    calibrated: bool,
    /// Of the last token.
    seconds: f64,
    bootstraps: usize,
    /// With all weights kept.
    memory_bytes: Prediction,
}

/// The lengths that a model has positions for, with that of `setup`, ascending.
pub fn contexts(loaded: &Loaded, setup: &Setup, wanted: &Wanted<'_>) -> Result<Vec<ContextReport>> {
    let own = setup.model.context();
    let positions = loaded.checkpoint.config.positions;
    let mut lengths: Vec<usize> = (LENGTHS.into_iter())
        .filter(|&length| length <= positions)
        .chain([own])
        .collect();
    lengths.sort_unstable();
    lengths.dedup();
    let report = |context: usize| -> Result<ContextReport> {
        let costs = setup.costs.clone();
        let wanted = Wanted { context, ..*wanted };
        let setup = Setup::assumed(loaded, &setup.params, costs, &wanted)?;
        Ok(ContextReport {
            context,
            calibrated: context <= loaded.longest_context(),
            seconds: setup.plan.microseconds as f64 / 1e6,
            bootstraps: setup.plan.bootstraps,
            memory_bytes: setup.memory,
        })
    };
    lengths.into_iter().map(report).collect()
}

impl ContextReport {
    /// For people.
    pub fn table(contexts: &[ContextReport]) -> String {
        let mut out = format!(
            "{:>8} {:>10} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9}\n",
            "context", "token", "bootstraps", "weights", "keys", "caches", "scratch", "memory"
        );
        for context in contexts {
            let memory = &context.memory_bytes;
            let [weights, keys, cache, scratch, peak] = [
                memory.weights,
                memory.keys,
                memory.cache,
                memory.scratch,
                memory.peak,
            ]
            .map(gigabytes);
            let assumed = if context.calibrated { "" } else { "*" };
            out += &format!(
                "{:>8} {:>8.1} s {:>10} {weights:>10} {keys:>9} {cache:>9} {scratch:>9} {peak:>9}\n",
                format!("{}{assumed}", context.context),
                context.seconds,
                context.bootstraps,
            );
        }
        if contexts.iter().any(|context| !context.calibrated) {
            out += "* intervals as of the longest context that the model is calibrated for\n";
        }
        out
    }

    /// Memory with all weights kept, as a picture.
    pub fn memory_svg(contexts: &[ContextReport], title: &str) -> String {
        let bars: Vec<Bar> = (contexts.iter())
            .filter(|context| context.context >= SHORTEST_BAR)
            .map(|context| {
                let memory = &context.memory_bytes;
                let known = memory.weights + memory.keys + memory.cache + memory.scratch;
                let parts = [
                    memory.weights,
                    memory.keys,
                    memory.cache,
                    memory.scratch,
                    memory.peak - known,
                ];
                Bar {
                    name: context.context.to_string(),
                    parts: parts.map(|bytes| bytes as f64 / 1e9).to_vec(),
                }
            })
            .collect();
        let labels = Labels {
            title,
            x: "tokens of context",
            y: "GB",
        };
        let parts = ["weights, kept", "keys", "caches", "scratch", "process"];
        stacked_bars(&labels, &parts, &bars)
    }

    /// Time of the last token, as a picture.
    pub fn time_svg(contexts: &[ContextReport], title: &str) -> String {
        let labels = Labels {
            title,
            x: "tokens of context",
            y: "seconds",
        };
        let points = (contexts.iter())
            .map(|context| (context.context as f64, context.seconds))
            .collect();
        let line = Line {
            name: "predicted".to_owned(),
            parts: vec![points],
        };
        lines(&labels, &[line], &[])
    }
}
