//! Memory that a plan will take, before any of it is taken.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use taciturn_circuits::slots_to_coeffs_levels;
use taciturn_ckks::{GadgetName, KeyRequest, Parameters};
use taciturn_graph::{ENCODED_AT_ONCE, Graph, Op, Plan, weight_diagonals};

/// Predicted bytes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Prediction {
    /// Encoded weights that are kept, at most, and the tables of the bootstraps.
    pub weights: u64,
    /// Encoded weights for which there may be no room, so that every token encodes them again.
    pub weights_encoded_per_token: u64,
    /// Evaluation keys, both halves expanded.
    pub keys: u64,
    /// Encrypted caches.
    pub cache: u64,
    /// Values of a step, what key switches work in, and weights that are encoded for one use.
    pub scratch: u64,
    /// All of it, with the process itself.
    pub peak: u64,
    /// What all encoded weights would take.
    #[serde(skip)]
    pub encoded: u64,
}

impl Prediction {
    /// The same within a limit: as many weights as fit beside everything else are kept, the others encoded when they are used.
    pub fn within(self, limit: u64) -> Self {
        // As much again for what threads compute in and the file's pages that they read. Measured.
        let at_once = 2 * ENCODED_AT_ONCE as u64;
        // Fewer weights than are encoded at once would take more memory that way.
        if self.peak <= limit || self.encoded <= at_once {
            return self;
        }
        let rest = self.peak - self.encoded + at_once;
        let kept = limit.saturating_sub(rest).min(self.encoded);
        Prediction {
            weights: self.weights - self.encoded + kept,
            weights_encoded_per_token: self.encoded - kept,
            encoded: kept,
            scratch: self.scratch + at_once,
            peak: rest + kept,
            ..self
        }
    }

    /// How many bytes of encoded weights may be kept, where there is not room for all.
    pub fn weight_limit(&self) -> Option<u64> {
        (self.weights_encoded_per_token > 0).then_some(self.encoded)
    }
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
    let encoded = encoded_weights(params, graph);
    let weights = encoded + bootstrap_tables(params, graph, plan);
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
    let scratch = live_values(graph, plan, ciphertext)
        + bootstrap
        + product_values(params, graph, plan, ciphertext).max(pair_values(graph, plan, ciphertext));
    Prediction {
        weights,
        weights_encoded_per_token: 0,
        encoded,
        keys,
        cache,
        scratch,
        peak: PROCESS + tables(params) + weights + keys + cache + scratch,
    }
}

impl Prediction {
    /// The same where some tokens are computed in passes too, at most `in_step` at a time, under a plan made for the graph of their last block.
    /// `keys` are those of both.
    pub fn with_passes(
        self,
        params: &Parameters,
        graph: &Graph,
        plan: &Plan,
        keys: &KeyRequest,
        in_step: usize,
    ) -> Prediction {
        let mut passes = predict(params, graph, plan, keys);
        let limb = params.ring().n() as u64 * 8;
        // The others wait with their values while one computes.
        passes.scratch +=
            (in_step as u64 - 1) * live_values(graph, plan, |level| 2 * (level + 1) * limb);
        let weights = self.weights + self.weights_encoded_per_token + passes.weights;
        let cache = self.cache.max(passes.cache);
        let scratch = self.scratch.max(passes.scratch);
        Prediction {
            weights,
            weights_encoded_per_token: 0,
            encoded: self.encoded + self.weights_encoded_per_token + passes.encoded,
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

/// Integer coefficients of 64 bits, two per slot, of every plaintext of every product. Most fit 32 bits and take half.
fn encoded_weights(params: &Parameters, graph: &Graph) -> u64 {
    // A step of several tokens is one of a machine of fewer slots, each of whose plaintexts is as long as all slots.
    let tokens = graph.tokens();
    let nodes = graph.nodes().iter();
    nodes
        .filter_map(|node| weight_diagonals(&node.op, params.slots() / tokens))
        .map(|diagonals| (diagonals.bytes() * tokens) as u64)
        .sum()
}

/// Tables for every size, of one value and of two, and the last stage of SlotsToCoeffs for every bound besides.
fn bootstrap_tables(params: &Parameters, graph: &Graph, plan: &Plan) -> u64 {
    let mut shapes: BTreeMap<(usize, bool), BTreeSet<u64>> = BTreeMap::new();
    for node in graph.nodes() {
        let Ok(planned) = plan.node(&node.name) else {
            continue;
        };
        if let (Some(bootstrap), Some(bound)) = (&planned.bootstrap, node.bound) {
            let shape = (bootstrap.slots, bootstrap.partner.is_some());
            shapes.entry(shape).or_default().insert(bound.to_bits());
        }
    }
    let bytes = |((slots, _), bounds): ((usize, bool), BTreeSet<u64>)| {
        shape_tables(params, slots) + bounds.len() as u64 * last_stage(params, slots)
    };
    shapes.into_iter().map(bytes).sum()
}

/// Distinct values of every diagonal of a bootstrap's transforms to slots, over the raised modulus: at most three stages, whose
/// matrices have twice as many diagonals as their radix. Those to coefficients are on few limbs. Where nearly all slots are distinct,
/// diagonals are integer coefficients, as many to slots as to coefficients.
fn shape_tables(params: &Parameters, slots: usize) -> u64 {
    let ring = params.ring();
    let log_slots = slots.ilog2();
    let stages = log_slots.div_ceil(4).clamp(1, 3);
    let diagonals = u64::from(stages) * (2 << log_slots.div_ceil(stages));
    let limbs = ring.moduli().len() as u64;
    if are_integers(params, slots) {
        2 * diagonals * distinct_bytes(slots)
    } else {
        // Buffers are rounded up to powers of two.
        diagonals * (distinct_bytes(slots) * limbs).next_power_of_two()
    }
}

/// The stage of SlotsToCoeffs that depends on the bound: on two limbs and the special ones, with its matrix before it is encoded.
fn last_stage(params: &Parameters, slots: usize) -> u64 {
    let log_slots = slots.ilog2();
    let diagonals = 2 << log_slots.div_ceil(slots_to_coeffs_levels(log_slots) as u32);
    let limbs = 2 + params.gadget(GadgetName::Model).special.len() as u64;
    let encoded = match are_integers(params, slots) {
        true => distinct_bytes(slots),
        false => (distinct_bytes(slots) * limbs).next_power_of_two(),
    };
    diagonals * encoded
}

/// Whether so many slots are distinct that diagonals are kept as integers.
fn are_integers(params: &Parameters, slots: usize) -> bool {
    params.ring().n() / (2 * slots) < params.ring().min_stride()
}

fn distinct_bytes(slots: usize) -> u64 {
    2 * slots as u64 * 8
}

/// The most that a product with weights works in: its rotated operand and its sums of giant steps, whole and limb by limb.
fn product_values(
    params: &Parameters,
    graph: &Graph,
    plan: &Plan,
    ciphertext: impl Fn(u64) -> u64,
) -> u64 {
    let slots = params.slots() / graph.tokens();
    let values = graph.nodes().iter().filter_map(|node| {
        let diagonals = weight_diagonals(&node.op, slots)?;
        let level = plan.node(&node.name).ok()?.level_in.0;
        let steps = (diagonals.baby_steps() + diagonals.giant_steps()) as u64;
        Some(2 * steps * ciphertext(level.into()))
    });
    values.max().unwrap_or(0)
}

/// The most that products between pairs of tokens work in.
fn pair_values(graph: &Graph, plan: &Plan, ciphertext: impl Fn(u64) -> u64) -> u64 {
    let values = graph.nodes().iter().filter_map(|node| {
        let Op::Several(op) = &node.op else {
            return None;
        };
        let level = plan.node(&node.name).ok()?.level_in.0;
        Some(op.working_values(graph.tokens()) as u64 * ciphertext(level.into()))
    });
    values.max().unwrap_or(0)
}

/// The most that values of a step take together, each freed after its last use; outputs that are no caches are kept at level 1.
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
    let mut outputs = vec![0; graph.nodes().len()];
    for (_, id) in graph.outputs() {
        match graph.node(*id).op.cache_family() {
            Some(_) => last_use[id.index()] = graph.nodes().len(),
            None => outputs[id.index()] += ciphertext(1),
        }
    }
    let (mut live, mut most) = (0, 0);
    for index in 0..graph.nodes().len() {
        live += size(index);
        most = live.max(most);
        let inputs = graph.nodes()[index].inputs.iter();
        let mut done: Vec<usize> = (inputs.map(|input| input.index()))
            .chain([index])
            .filter(|&value| last_use[value] == index)
            .collect();
        done.sort_unstable();
        done.dedup();
        for value in done {
            live = live + outputs[value] - size(value);
        }
    }
    most
}
