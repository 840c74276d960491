//! What `taciturn plan` says.

use std::fmt::Write;

use serde::Serialize;
use taciturn_ckks::Parameters;

use super::contexts::ContextReport;
use super::fit::Fastest;
use super::operations::OperationReport;
use super::sites::SiteReport;
use crate::costs::Origin;
use crate::memory::Prediction;
use crate::passes::PassReport;
use crate::setup::{ParamsReport, Setup};
use crate::strategy::{Compared, Strategy};
use crate::system;

/// What `--json` prints.
#[derive(Serialize)]
pub struct Report {
    params: ParamsReport,
    backend: &'static str,
    threads: usize,
    costs: Origin,
    hash: String,
    context: usize,
    bootstraps: usize,
    /// Per new token.
    seconds: f64,
    setup_seconds: f64,
    keys: usize,
    /// Of the keys as they are sent: one half and a seed each. In memory both halves are expanded.
    key_bytes: usize,
    memory_bytes: Prediction,
    memory_available_bytes: u64,
    fits: bool,
    bootstrap_sizes: Vec<SizeReport>,
    modules: Vec<ModuleReport>,
    placement: Strategy,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    passes: Vec<PassReport>,
    /// The fastest plan, where that takes too much memory and this one does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    instead_of: Option<Fastest>,
    #[serde(flatten)]
    tables: Tables,
}

/// What is shown where it is asked for.
#[derive(Serialize)]
pub struct Tables {
    /// Other strategies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compare: Option<Vec<Compared>>,
    /// The fastest plan by context length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contexts: Option<Vec<ContextReport>>,
    /// By kind of operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<OperationReport>>,
    /// Approximations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sites: Option<Vec<SiteReport>>,
}

/// Bootstraps of one size.
#[derive(Serialize)]
struct SizeReport {
    log_slots: u32,
    count: usize,
    highest_target: u32,
}

/// One module.
#[derive(Serialize)]
struct ModuleReport {
    name: String,
    seconds: f64,
    bootstraps: usize,
    level_in: u32,
    level_out: u32,
}

impl Report {
    /// Of a plan, with other strategies beside it.
    pub fn new(
        setup: &Setup,
        params: &Parameters,
        context: usize,
        placement: Strategy,
        tables: Tables,
    ) -> Self {
        let plan = &setup.plan;
        let seconds = |microseconds: u64| microseconds as f64 / 1e6;
        let refreshes = || {
            plan.nodes
                .values()
                .filter_map(|node| node.bootstrap.as_ref())
        };
        let available = system::memory().available;
        let mib = setup.memory.keys as f64 / (1 << 20) as f64;
        Report {
            params: ParamsReport::new(params),
            backend: params.ring().backend_name(),
            threads: system::threads(),
            costs: setup.costs.origin,
            hash: plan.hash.clone(),
            context,
            bootstraps: plan.bootstraps,
            seconds: seconds(plan.microseconds),
            setup_seconds: mib * setup.costs.keygen_ms_per_mib / 1e3,
            keys: setup.keys.len(),
            key_bytes: setup.keys.stored_bytes(params),
            memory_bytes: setup.memory,
            memory_available_bytes: available,
            fits: setup.memory.peak <= available,
            bootstrap_sizes: plan
                .bootstrap_sizes()
                .into_iter()
                .map(|(slots, highest)| SizeReport {
                    log_slots: slots.ilog2(),
                    count: refreshes().filter(|refresh| refresh.slots == slots).count(),
                    highest_target: highest.0,
                })
                .collect(),
            modules: plan
                .modules
                .iter()
                .map(|module| ModuleReport {
                    name: module.name.clone(),
                    seconds: seconds(module.microseconds),
                    bootstraps: module.bootstraps,
                    level_in: module.level_in.0,
                    level_out: module.level_out.0,
                })
                .collect(),
            placement,
            passes: Vec::new(),
            instead_of: setup.instead_of,
            tables,
        }
    }

    /// With what prompts take in passes.
    pub fn with_passes(self, passes: Vec<PassReport>) -> Self {
        Report { passes, ..self }
    }

    /// For people.
    pub fn text(&self) -> String {
        let report = self;
        let mut out = String::new();
        let memory = &report.memory_bytes;
        let costs = match report.costs {
            Origin::Measured => "measured here",
            Origin::BuiltIn => "built in; `plan --measure` measures this machine",
            Origin::Estimated => "estimated from bytes and instruction counts, not measured",
        };
        let modules = report.modules.iter().map(|module| {
            format!(
                "{:<20} {:>8.2} s {:>4} bootstraps   level {:>2} -> {:>2}",
                module.name, module.seconds, module.bootstraps, module.level_in, module.level_out
            )
        });
        let sizes = report.bootstrap_sizes.iter().map(|size| {
            format!(
                "{} of 2^{} slots to level {} at most",
                size.count, size.log_slots, size.highest_target
            )
        });
        let gb = system::gigabytes;
        let lines = [
        format!(
            "{}, {} threads of {}; costs {costs}",
            report.params.name(),
            report.threads,
            report.backend,
        ),
        format!(
            "room for {} tokens in all (--context): beginning-of-text token, prompt and new tokens",
            report.context
        ),
        String::new(),
    ]
    .into_iter()
    .chain(modules)
    .chain([
        String::new(),
        format!(
            "{:.1} s and {} bootstraps per token: {}",
            report.seconds,
            report.bootstraps,
            sizes.collect::<Vec<_>>().join(", ")
        ),
        format!(
            "{:.1} s of setup for {} keys, {} as they are sent",
            report.setup_seconds,
            report.keys,
            gb(report.key_bytes as u64)
        ),
        format!(
            "{} of memory at most: weights {}{}, keys {} (expanded), caches {}, scratch {}; {} available",
            gb(memory.peak),
            gb(memory.weights),
            match memory.weights_encoded_per_token {
                0 => String::new(),
                bytes => format!(" ({} more encoded for every token)", gb(bytes)),
            },
            gb(memory.keys),
            gb(memory.cache),
            gb(memory.scratch),
            gb(report.memory_available_bytes)
        ),
        format!("plan {}", report.hash),
    ])
    .chain(report.passes.iter().map(PassReport::line))
    .chain(report.tables.compare.iter().flatten().map(Compared::line));
        for line in lines {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{line}");
        }
        if let Some(operations) = &report.tables.operations {
            out.push('\n');
            out += &OperationReport::table(operations);
        }
        if let Some(sites) = &report.tables.sites {
            out.push('\n');
            out += &SiteReport::table(sites);
        }
        if let Some(contexts) = &report.tables.contexts {
            out.push('\n');
            out += &ContextReport::table(contexts);
        }
        out
    }
}
