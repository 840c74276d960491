//! The approximations and the plan's noise on vectors, without ciphertexts.

use std::collections::HashMap;

use anyhow::Result;
use taciturn_graph::{Logical, NoiseLevels};
use taciturn_models::StepModel;

use crate::setup::Setup;

/// The approximations and the plan's noise on vectors.
pub struct Simulated<'a> {
    setup: &'a Setup,
    machine: Logical,
    inputs: HashMap<String, Vec<f64>>,
    position: usize,
}

impl<'a> Simulated<'a> {
    /// After the beginning-of-text token, with noise drawn from a seed.
    pub fn new(setup: &'a Setup, seed: u64) -> Self {
        let caches = setup.model.prefix_caches();
        let params = &setup.params;
        let level_bits = f64::from(params.literal().level_bits);
        let noise = NoiseLevels::of_ciphertexts(params.ring().n(), level_bits);
        Simulated {
            setup,
            machine: Logical::simulated(noise, seed),
            inputs: caches
                .into_iter()
                .map(|(name, plain)| (name, plain.values()))
                .collect(),
            position: 1,
        }
    }

    /// The logits after one more token.
    pub fn step(&mut self, token: u32) -> Result<Vec<f64>> {
        let model = &self.setup.model;
        let graph = model.graph(self.position)?;
        let embedding = model.embed(token, self.position)?;
        self.inputs
            .insert(StepModel::input_name().into(), embedding);
        let mut outputs = self
            .machine
            .run(&graph, Some(&self.setup.plan), &self.inputs)?;
        for (name, id) in graph.outputs() {
            if graph.node(*id).op.cache_family().is_some()
                && let Some(cache) = outputs.remove(name)
            {
                self.inputs.insert(name.clone(), cache);
            }
        }
        self.position += 1;
        // The simulation is on entries: blocks of logits in order are the logits.
        let mut logits: Vec<f64> = model
            .logit_outputs(&graph)
            .iter()
            .flat_map(|(name, _)| outputs.remove(name).unwrap_or_default())
            .collect();
        logits.truncate(model.config().vocabulary);
        Ok(logits)
    }
}
