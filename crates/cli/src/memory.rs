//! Memory that a plan will take, before any of it is taken.

use std::collections::BTreeSet;

use serde::Serialize;
use taciturn_ckks::{KeyRequest, Parameters};
use taciturn_graph::{Graph, Op, Plan};

/// Predicted bytes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Prediction {
    /// Encoded weights and the tables of the bootstraps.
    pub weights: u64,
    /// Evaluation keys, both halves expanded.
    pub keys: u64,
    /// Encrypted caches.
    pub cache: u64,
    /// Values of a step, and what key switches work in.
    pub scratch: u64,
    /// All of it, with the process itself.
    pub peak: u64,
}

/// The process with its checkpoint, permutations of the ring and thread stacks. Measured.
const PROCESS: u64 = 400 << 20;
/// Working values over the raised modulus: rotated copies, powers, and what the free list keeps of every size. Measured.
const WORKING_VALUES: u64 = 56;

/// Predicts the memory of an exchange under a plan made for the graph of its last position.
pub fn predict(params: &Parameters, graph: &Graph, plan: &Plan, keys: &KeyRequest) -> Prediction {
    let limb = params.ring().n() as u64 * 8;
    let ciphertext = |level: u64| 2 * (level + 1) * limb;
    let keys = keys.resident_bytes(params) as u64;
    let weights = encoded_weights(params, graph) + bootstrap_tables(params, graph, plan);
    let cache = graph
        .outputs()
        .iter()
        .map(|(_, id)| graph.node(*id))
        .chain(graph.nodes().iter().filter(|node| node.inputs.is_empty()))
        .filter_map(|node| node.op.cache_family())
        .filter_map(|family| plan.caches.get(family.as_ref()))
        .map(|level| ciphertext(u64::from(level.0)))
        .sum();
    let raised = params.ring().moduli().len() as u64;
    let bootstrap = WORKING_VALUES * 2 * raised * limb;
    let scratch = live_values(graph, plan, ciphertext) + bootstrap;
    Prediction {
        weights,
        keys,
        cache,
        scratch,
        peak: PROCESS + tables(params) + weights + keys + cache + scratch,
    }
}

impl Prediction {
    /// The same where some tokens are computed in passes too, under a plan made for the graph of their last block. `keys` are those of both.
    pub fn with_passes(
        self,
        params: &Parameters,
        graph: &Graph,
        plan: &Plan,
        keys: &KeyRequest,
    ) -> Prediction {
        let passes = predict(params, graph, plan, keys);
        let weights = self.weights + passes.weights;
        let cache = self.cache.max(passes.cache);
        let scratch = self.scratch.max(passes.scratch);
        Prediction {
            weights,
            keys: passes.keys,
            cache,
            scratch,
            peak: PROCESS + tables(params) + weights + passes.keys + cache + scratch,
        }
    }
}

/// Twiddle factors of every limb in two forms, forth and back.
fn tables(params: &Parameters) -> u64 {
    4 * params.ring().moduli().len() as u64 * params.ring().n() as u64 * 8
}

/// Integer coefficients, two per slot, of every diagonal of every product.
fn encoded_weights(params: &Parameters, graph: &Graph) -> u64 {
    let slots = params.slots() as u64;
    graph
        .nodes()
        .iter()
        .filter_map(|node| match &node.op {
            Op::ProductSpaced { matrix, .. } | Op::ProductPeriodic { matrix } => Some(matrix),
            _ => None,
        })
        .map(|matrix| {
            let entries = (matrix.rows() * matrix.columns() * graph.tokens()) as u64;
            entries.next_multiple_of(slots) * 16
        })
        .sum()
}

/// Distinct values of every diagonal of a bootstrap's transforms to slots, over the raised modulus: at most three stages, whose
/// matrices have twice as many diagonals as their radix. Those to coefficients are on few limbs. A machine keeps tables for every
/// size and bound.
fn bootstrap_tables(params: &Parameters, graph: &Graph, plan: &Plan) -> u64 {
    let limbs = params.ring().moduli().len() as u64;
    let shapes: BTreeSet<(usize, u64)> = graph
        .nodes()
        .iter()
        .filter_map(|node| {
            let slots = plan.node(&node.name).ok()?.bootstrap.as_ref()?.slots;
            Some((slots, node.bound?.to_bits()))
        })
        .collect();
    shapes
        .into_iter()
        .map(|(slots, _)| {
            let log_slots = slots.ilog2();
            let stages = log_slots.div_ceil(4).clamp(1, 3);
            let diagonals = u64::from(stages) * (2 << log_slots.div_ceil(stages));
            // Buffers are rounded up to powers of two.
            diagonals * (2 * slots as u64 * 8 * limbs).next_power_of_two()
        })
        .sum()
}

/// The most that values of a step take together, each freed after its last use.
fn live_values(graph: &Graph, plan: &Plan, ciphertext: impl Fn(u64) -> u64) -> u64 {
    let size = |index: usize| {
        let node = &graph.nodes()[index];
        let level = plan.node(&node.name).map_or(0, |node| node.level().0);
        ciphertext(u64::from(level))
    };
    let mut last_use: Vec<usize> = (0..graph.nodes().len()).collect();
    for (index, node) in graph.nodes().iter().enumerate() {
        for input in &node.inputs {
            last_use[input.index()] = index;
        }
    }
    for (_, id) in graph.outputs() {
        last_use[id.index()] = graph.nodes().len();
    }
    let (mut live, mut most) = (0, 0);
    for index in 0..graph.nodes().len() {
        live += size(index);
        most = live.max(most);
        let mut done: Vec<usize> = graph.nodes()[index]
            .inputs
            .iter()
            .map(|input| input.index())
            .filter(|&input| last_use[input] == index)
            .collect();
        done.sort_unstable();
        done.dedup();
        live -= done.into_iter().map(size).sum::<u64>();
    }
    most
}
