//! The logical interpreters: the clear reference, and the simulated run that is fast enough for data sets.

use crate::noise::{Noise, NoiseLevels};
use crate::semantics::{append, evaluate, flatten};
use crate::several;
use crate::sites::{LeftInterval, Sites, refresh_site};
use crate::{Fidelity, Graph, Op, Plan};
use std::collections::{BTreeMap, HashMap};
use thiserror::Error;

/// A logical run that failed.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum LogicalError {
    /// An input is missing or has a wrong number of entries.
    #[error("run: input {name} needs {expected} entries, got {got}")]
    Input {
        /// Its name.
        name: String,
        /// The layout's number of entries.
        expected: usize,
        /// What came.
        got: usize,
    },
    /// A value is infinite or not a number.
    #[error("{node}: the result is not finite; check the weights and intervals before it")]
    NotFinite {
        /// The node.
        node: String,
    },
    /// Values left their intervals.
    #[error(transparent)]
    LeftInterval(#[from] LeftInterval),
}

/// Computes graphs on compact vectors, without slots.
#[derive(Clone, Debug)]
pub struct Logical {
    fidelity: Fidelity,
    noise: Noise,
    sites: Sites,
    magnitudes: BTreeMap<String, f64>,
}

impl Logical {
    /// Exact functions and no noise: the clear reference.
    pub fn clear() -> Self {
        Logical::new(Fidelity::Exact, NoiseLevels::NONE, 0)
    }

    /// Polynomials, with noise from a seed.
    pub fn simulated(noise: NoiseLevels, seed: u64) -> Self {
        Logical::new(Fidelity::Polynomial, noise, seed)
    }

    fn new(fidelity: Fidelity, noise: NoiseLevels, seed: u64) -> Self {
        let noise = Noise::new(noise, seed);
        Logical {
            fidelity,
            noise,
            sites: Sites::default(),
            magnitudes: BTreeMap::new(),
        }
    }

    /// Computes all outputs. With a plan, bootstraps add their noise where it has them.
    ///
    /// Simulated runs fail at the end where a value left a polynomial's interval, also in an earlier run.
    pub fn run(
        &mut self,
        graph: &Graph,
        plan: Option<&Plan>,
        inputs: &HashMap<String, Vec<f64>>,
    ) -> Result<HashMap<String, Vec<f64>>, LogicalError> {
        let mut values: Vec<Vec<f64>> = Vec::with_capacity(graph.nodes().len());
        for node in graph.nodes() {
            let from: Vec<&[f64]> = node
                .inputs
                .iter()
                .map(|id| values[id.index()].as_slice())
                .collect();
            let mut value = match &node.op {
                Op::Input { layout, .. } => {
                    let input = inputs.get(&node.name).cloned().unwrap_or_default();
                    let expected = layout.values * graph.tokens();
                    if input.len() != expected {
                        let name = node.name.clone();
                        return Err(LogicalError::Input {
                            name,
                            expected,
                            got: input.len(),
                        });
                    }
                    input
                }
                _ if graph.tokens() > 1 => several::evaluate(graph, node, &from, self.fidelity),
                Op::Append { .. } => {
                    let layout = graph.node(node.inputs[0]).layout;
                    append(
                        from[0],
                        from.get(1).copied(),
                        layout.run,
                        layout.lane().unwrap_or(0),
                    )
                }
                Op::Flatten => flatten(from[0], graph.node(node.inputs[0]).layout.run),
                op => evaluate(op, &from, self.fidelity),
            };
            if let (Op::Polynomial(nonlinear), Fidelity::Polynomial) = (&node.op, self.fidelity) {
                let polynomial = &nonlinear.polynomial;
                self.sites
                    .note(&node.name, polynomial.low, polynomial.high, from[0]);
            }
            if !matches!(node.op, Op::Input { .. }) {
                self.noise.add(&mut value, self.noise.levels.operation);
            }
            let magnitude = value
                .iter()
                .fold(0.0, |max: f64, value| max.max(value.abs()));
            if value.iter().any(|value| !value.is_finite()) {
                // A polynomial far outside its interval is why, if there is one.
                self.sites.check()?;
                return Err(LogicalError::NotFinite {
                    node: node.name.clone(),
                });
            }
            let worst = self.magnitudes.entry(node.name.clone()).or_default();
            *worst = worst.max(magnitude);
            if plan
                .and_then(|plan| plan.node(&node.name).ok())
                .is_some_and(|node| node.bootstrap.is_some())
            {
                let bound = node.bound.unwrap_or(magnitude);
                self.sites
                    .note(&refresh_site(&node.name), -bound, bound, &value);
                self.noise
                    .add(&mut value, bound * self.noise.levels.bootstrap);
            }
            values.push(value);
        }
        self.sites.check()?;
        Ok(graph
            .outputs()
            .iter()
            .map(|(name, id)| (name.clone(), values[id.index()].clone()))
            .collect())
    }

    /// The extremes at every polynomial so far.
    pub fn sites(&self) -> &Sites {
        &self.sites
    }

    /// The largest magnitude of every node's entries so far (slots outside the entries are not seen).
    pub fn magnitudes(&self) -> &BTreeMap<String, f64> {
        &self.magnitudes
    }
}
