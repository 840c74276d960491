//! Where a token's time goes, beside where the plan says that it goes.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;
use taciturn_graph::{Graph, Plan};

/// Time of one part of a step.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PartTime {
    /// A module, or a kind of operation; refreshes are counted where they are done.
    pub name: String,
    pub seconds: f64,
    pub predicted_seconds: f64,
}

/// Measures a step node by node.
pub struct Times<'a> {
    graph: Graph,
    plan: &'a Plan,
    last: Instant,
    /// By node of the graph.
    seconds: Vec<f64>,
}

impl<'a> Times<'a> {
    /// Before a step of this graph.
    pub fn begin(graph: Graph, plan: &'a Plan) -> Self {
        Times {
            seconds: vec![0.0; graph.nodes().len()],
            graph,
            plan,
            last: Instant::now(),
        }
    }

    /// A node was computed.
    pub fn done(&mut self, index: usize) {
        let now = Instant::now();
        self.seconds[index] += (now - self.last).as_secs_f64();
        self.last = now;
    }

    /// By module, in the order of the graph.
    pub fn modules(&self) -> Result<Vec<PartTime>> {
        let mut parts: Vec<PartTime> = Vec::new();
        for (node, &seconds) in self.graph.nodes().iter().zip(&self.seconds) {
            let predicted_seconds = self.plan.node(&node.name)?.microseconds as f64 / 1e6;
            let name = node.module();
            let place = parts.iter().position(|part| part.name == name);
            let place = place.unwrap_or_else(|| {
                parts.push(PartTime {
                    name: name.to_owned(),
                    ..PartTime::default()
                });
                parts.len() - 1
            });
            parts[place].seconds += seconds;
            parts[place].predicted_seconds += predicted_seconds;
        }
        Ok(parts)
    }

    /// By kind of operation, those whose result is refreshed apart.
    pub fn kinds(&self) -> Result<Vec<PartTime>> {
        let mut kinds: BTreeMap<String, PartTime> = BTreeMap::new();
        for (node, &seconds) in self.graph.nodes().iter().zip(&self.seconds) {
            let planned = self.plan.node(&node.name)?;
            let kind = match planned.bootstrap {
                Some(_) => format!("{} and refresh", node.op.kind()),
                None => node.op.kind().to_owned(),
            };
            let part = kinds.entry(kind.clone()).or_default();
            part.name = kind;
            part.seconds += seconds;
            part.predicted_seconds += planned.microseconds as f64 / 1e6;
        }
        Ok(kinds.into_values().collect())
    }
}
