//! Helpers of the integration tests.
#![allow(dead_code)]

pub mod block;
pub mod client;

use block::{Model, Sizes};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::collections::{BTreeMap, HashMap};
use taciturn_graph::{Graph, Level, Matrix, NoiseLevels, Plan, SlotSimulator, run};

/// Numbers in [-1, 1] from a seed.
pub struct Random(ChaCha8Rng);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(ChaCha8Rng::seed_from_u64(seed))
    }

    pub fn number(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    pub fn vector(&mut self, length: usize) -> Vec<f64> {
        (0..length).map(|_| self.number()).collect()
    }

    pub fn matrix(&mut self, name: &str, rows: usize, columns: usize, scale: f64) -> Matrix {
        let entries: Vec<f32> = self
            .vector(rows * columns)
            .iter()
            .map(|x| (scale * x) as f32)
            .collect();
        Matrix::dense(name, rows, columns, entries).unwrap()
    }
}

pub fn worst(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter()
        .zip(b)
        .fold(0.0, |worst: f64, (a, b)| worst.max((a - b).abs()))
}

/// Runs a graph on slots and returns the logical entries of its outputs.
pub fn run_slots(
    graph: &Graph,
    plan: &Plan,
    simulator: &mut SlotSimulator,
    inputs: &HashMap<String, Vec<f64>>,
) -> HashMap<String, Vec<f64>> {
    let layouts: HashMap<String, _> = graph
        .inputs()
        .map(|(name, layout)| (name.to_owned(), *layout))
        .collect();
    let encrypted = inputs
        .iter()
        .filter(|(name, _)| layouts.contains_key(*name))
        .map(|(name, entries)| {
            let slots = layouts[name].expand(entries, 0.0, graph.slots());
            (name.clone(), simulator.encrypt(&slots, plan.max_level))
        })
        .collect();
    let outputs = run(graph, plan, simulator, encrypted, &mut |_| ()).unwrap();
    graph
        .outputs()
        .iter()
        .map(|(name, id)| {
            (
                name.clone(),
                graph.node(*id).layout.compact(outputs[name].as_slice()),
            )
        })
        .collect()
}

/// A simulator without noise.
pub fn exact(slots: usize) -> SlotSimulator {
    SlotSimulator::new(slots, NoiseLevels::NONE, 0)
}

pub const MAX_LEVEL: Level = Level(13);

pub fn embedding(random: &mut Random, sizes: &Sizes) -> Vec<f64> {
    (0..sizes.padded())
        .map(|i| {
            if i < sizes.width {
                random.number()
            } else {
                0.0
            }
        })
        .collect()
}

pub fn keep_caches(into: &mut HashMap<String, Vec<f64>>, outputs: &HashMap<String, Vec<f64>>) {
    into.extend(
        outputs
            .iter()
            .filter(|(name, _)| name.contains("cache"))
            .map(|(n, v)| (n.clone(), v.clone())),
    );
}

/// Bounds of every node from a simulated run without refreshes.
pub fn full_bounds(model: &Model, tokens: usize) -> BTreeMap<String, f64> {
    let mut simulator = exact(model.sizes.slots);
    let mut random = Random::new(21);
    let mut entries = HashMap::new();
    for position in 0..tokens {
        let graph = model.graph(position);
        entries.insert("embedding".to_owned(), embedding(&mut random, &model.sizes));
        let plan = Plan::unlimited(&graph).unwrap();
        let outputs = run_slots(&graph, &plan, &mut simulator, &entries);
        keep_caches(&mut entries, &outputs);
    }
    simulator.check().unwrap();
    simulator
        .magnitudes()
        .iter()
        .map(|(name, bound)| (name.clone(), 2.0 * bound))
        .collect()
}
