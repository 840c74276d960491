//! Seconds per module of a step, as measured and as the plan has them.

use std::collections::BTreeMap;
use std::time::Instant;

use serde::Serialize;
use taciturn_graph::{Plan, module_of};

/// One module of a step.
#[derive(Debug, Serialize)]
pub struct ModuleTime {
    pub module: String,
    pub predicted_seconds: f64,
    /// The median of all new tokens'.
    pub seconds: f64,
}

/// Takes the time between nodes.
pub struct Clock {
    last: Instant,
    /// Seconds by module, for every step.
    steps: Vec<BTreeMap<String, f64>>,
}

impl Clock {
    /// No steps yet.
    pub fn new() -> Self {
        Clock {
            last: Instant::now(),
            steps: Vec::new(),
        }
    }

    /// A step begins.
    pub fn begin(&mut self) {
        self.last = Instant::now();
        self.steps.push(BTreeMap::new());
    }

    /// A node of the step is computed, its refresh included.
    pub fn computed(&mut self, node: &str) {
        let now = Instant::now();
        let seconds = (now - self.last).as_secs_f64();
        self.last = now;
        if let Some(step) = self.steps.last_mut() {
            *step.entry(module_of(node).to_owned()).or_default() += seconds;
        }
    }

    /// The plan's modules in order, with the measured times.
    pub fn modules(&self, plan: &Plan) -> Vec<ModuleTime> {
        let measured = |module: &str| {
            let mut times: Vec<f64> = (self.steps.iter())
                .filter_map(|step| step.get(module).copied())
                .collect();
            times.sort_by(f64::total_cmp);
            times.get(times.len() / 2).copied()
        };
        (plan.modules.iter())
            .filter_map(|module| {
                Some(ModuleTime {
                    module: module.name.clone(),
                    predicted_seconds: module.microseconds as f64 / 1e6,
                    seconds: measured(&module.name)?,
                })
            })
            .collect()
    }
}

/// All modules together: measured seconds, and how much longer than predicted.
pub fn whole(modules: &[ModuleTime]) -> String {
    let sum = |of: fn(&ModuleTime) -> f64| modules.iter().map(of).sum::<f64>();
    let (measured, predicted) = (sum(|m| m.seconds), sum(|m| m.predicted_seconds));
    let largest = (modules.iter())
        .filter(|module| module.seconds >= 0.05 * measured)
        .max_by(|a, b| off(a).total_cmp(&off(b)));
    let most = largest.map_or(String::new(), |module| {
        format!(
            "; {} {:.2} of {:.2} s",
            module.module, module.seconds, module.predicted_seconds
        )
    });
    format!("{measured:.1} s a new token where the plan has {predicted:.1} s{most}")
}

/// How far a module is from its prediction, as a factor either way.
fn off(module: &ModuleTime) -> f64 {
    (module.seconds / module.predicted_seconds).ln().abs()
}
