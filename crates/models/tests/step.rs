//! The whole pipeline on random checkpoints of many shapes: calibrate, bound, plan, and simulate the encrypted step against the clear
//! model, in logical coordinates and slot by slot. Nothing is set by hand for a shape.

use std::collections::HashMap;

use taciturn_graph::{
    CostTable, Graph, Level, Logical, NoiseLevels, Optimal, Plan, SlotSimulator, Slots,
    WhenNothingIsLeft, run,
};
use taciturn_models::random::{RandomFamily, RandomSpec};
use taciturn_models::{
    CalibrationOptions, Checkpoint, ClearModel, StepModel, calibrate, log_sum_exp, measure_bounds,
};

/// Noise of the secure parameters.
fn noise() -> NoiseLevels {
    NoiseLevels::of_ciphertexts(1 << 16, 40.0)
}

const MAX_LEVEL: Level = Level(16);
/// Tokens of context in these tests, and how many are generated for.
const CONTEXT: usize = 12;
const TOKENS: usize = 6;
/// Of sample text, and how many of them are simulated for bounds.
const WINDOWS: usize = 128;
const SIMULATED: usize = 32;
/// Worst divergence of the next token's distribution, in nats.
const DIVERGENCE: f64 = 1e-3;
/// Where the clear model's two best logits are closer, either may win.
const CLOSE: f64 = 0.05;

/// A fixed sequence of uniform token ids.
fn random_tokens(seed: u64, count: usize, vocabulary: usize) -> Vec<u32> {
    let mut x = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = || {
        x = x
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (x >> 33) as usize % vocabulary
    };
    (0..count).map(|_| next() as u32).collect()
}

/// Returns the number of squarings that the calibration found.
fn check(spec: &RandomSpec, slots: usize) -> u32 {
    let folder = tempfile::tempdir().unwrap();
    spec.write(folder.path()).unwrap();
    let checkpoint = Checkpoint::load(folder.path()).unwrap();
    let sample = random_tokens(1, WINDOWS * (CONTEXT - 1), spec.vocabulary);
    let options = CalibrationOptions {
        context: CONTEXT,
        windows: WINDOWS,
        ..CalibrationOptions::default()
    };
    let mut calibration = calibrate(&checkpoint, &sample, &options).unwrap();
    measure_bounds(&checkpoint, &mut calibration, &sample, SIMULATED).unwrap();
    let model = StepModel::new(&checkpoint, &calibration, slots, CONTEXT).unwrap();
    let table = CostTable::reference(slots, MAX_LEVEL);
    let baseline = model.plan(&table, &WhenNothingIsLeft).unwrap();
    let search = Optimal::default();
    let plan = model.plan(&table, &search).unwrap();
    assert!(plan.microseconds <= baseline.microseconds);

    let clear = ClearModel::new(&checkpoint);
    let mut cache = clear.cache();
    clear.step(&mut cache, checkpoint.config.bos).unwrap();
    let mut logical = LogicalRun::new(&model);
    let mut exact = SlotRun::new(&model, &plan);
    for (i, &token) in random_tokens(2, TOKENS, spec.vocabulary).iter().enumerate() {
        let graph = model.graph(i + 1).unwrap();
        let embedding = model.embed(token, i + 1).unwrap();
        let expected = clear.step(&mut cache, token).unwrap();
        let runs = [
            ("logical", logical.step(&graph, &plan, embedding.clone())),
            ("slots", exact.step(&graph, &plan, embedding)),
        ];
        for (run, got) in runs {
            compare(&got, &expected, &format!("{run}, token {i}, {spec:?}"));
        }
    }
    exact.simulator.check().unwrap();
    calibration.softmax_squarings
}

fn compare(got: &[f64], expected: &[f64], context: &str) {
    assert_eq!(got.len(), expected.len(), "{context}");
    let (p, q) = (log_sum_exp(expected), log_sum_exp(got));
    let divergence: f64 = (expected.iter().zip(got))
        .map(|(a, b)| (a - p).exp() * ((a - p) - (b - q)))
        .sum();
    assert!(divergence < DIVERGENCE, "{divergence:.1e} nats, {context}");
    let best = |logits: &[f64]| {
        (0..logits.len())
            .max_by(|&a, &b| logits[a].total_cmp(&logits[b]))
            .unwrap()
    };
    let (first, won) = (best(expected), best(got));
    assert!(expected[first] - expected[won] < CLOSE, "{context}");
}

/// The step in logical coordinates.
struct LogicalRun<'a> {
    model: &'a StepModel,
    machine: Logical,
    inputs: HashMap<String, Vec<f64>>,
}

impl<'a> LogicalRun<'a> {
    fn new(model: &'a StepModel) -> Self {
        let caches = model.prefix_caches().into_iter();
        LogicalRun {
            model,
            machine: Logical::simulated(noise(), 3),
            inputs: caches.map(|(name, plain)| (name, plain.values())).collect(),
        }
    }

    fn step(&mut self, graph: &Graph, plan: &Plan, embedding: Vec<f64>) -> Vec<f64> {
        self.inputs
            .insert(StepModel::input_name().into(), embedding);
        let mut outputs = self.machine.run(graph, Some(plan), &self.inputs).unwrap();
        let names = self.model.logit_outputs(graph).into_iter();
        let mut logits: Vec<f64> = names
            .flat_map(|(name, _)| outputs.remove(&name).unwrap())
            .collect();
        logits.truncate(self.model.config().vocabulary);
        self.inputs.extend(
            outputs
                .into_iter()
                .filter(|(name, _)| name.contains(".cache.")),
        );
        logits
    }
}

/// The step in every slot, garbage and unused tokens included.
struct SlotRun<'a> {
    model: &'a StepModel,
    simulator: SlotSimulator,
    caches: HashMap<String, Slots>,
}

impl<'a> SlotRun<'a> {
    fn new(model: &'a StepModel, plan: &Plan) -> Self {
        let mut simulator = SlotSimulator::new(plan.slots, noise(), 4);
        let caches = model.prefix_caches().into_iter().map(|(name, plain)| {
            let (family, _) = name.rsplit_once('.').unwrap();
            let slots = simulator.encrypt(&plain.values(), plan.caches[family]);
            (name, slots)
        });
        SlotRun {
            model,
            caches: caches.collect(),
            simulator,
        }
    }

    fn step(&mut self, graph: &Graph, plan: &Plan, embedding: Vec<f64>) -> Vec<f64> {
        let level = plan.node(StepModel::input_name()).unwrap().level();
        let input = self.simulator.encrypt(&embedding, level);
        let mut inputs = self.caches.clone();
        inputs.insert(StepModel::input_name().into(), input);
        let outputs = run(graph, plan, &mut self.simulator, inputs, &mut |_| ()).unwrap();
        self.simulator.check().unwrap();
        let names = self.model.logit_outputs(graph).into_iter();
        let slots: Vec<Vec<f64>> = names
            .map(|(name, _)| outputs[&name].as_slice().to_vec())
            .collect();
        let caches = outputs
            .into_iter()
            .filter(|(name, _)| name.contains(".cache."));
        self.caches.extend(caches);
        self.model.logits(graph, &slots)
    }
}

fn shape(width: usize, heads: usize, layers: usize) -> RandomSpec {
    RandomSpec {
        width,
        heads,
        layers,
        hidden: 4 * width,
        positions: 32,
        ..RandomSpec::default()
    }
}

#[test]
fn widths_and_layers() {
    check(&shape(96, 3, 3), 2048);
    check(&shape(192, 3, 1), 2048);
}

#[test]
fn untied_heads_and_the_exact_gelu() {
    let spec = RandomSpec {
        tied_head: false,
        activation: "gelu",
        ..shape(96, 3, 2)
    };
    check(&spec, 1024);
}

/// All matrices have fewer entries than there are slots.
#[test]
fn products_smaller_than_the_slots() {
    let spec = RandomSpec {
        hidden: 64,
        vocabulary: 64,
        ..shape(64, 4, 2)
    };
    check(&spec, 8192);
}

#[test]
fn vocabularies_larger_than_the_slots() {
    let spec = RandomSpec {
        vocabulary: 3000,
        ..shape(64, 2, 1)
    };
    check(&spec, 1024);
}

/// Large ones make scores large and softmaxes sharp: calibration then finds that squarings are needed.
#[test]
fn biases_of_any_size() {
    let squarings = |bias| {
        let spec = RandomSpec {
            bias,
            ..shape(96, 3, 1)
        };
        check(&spec, 1024)
    };
    assert_eq!([0.0, 1e-3].map(squarings), [0, 0]);
    let large = [2.0, 6.0].map(squarings);
    assert!(1 <= large[0] && large[0] < large[1], "{large:?}");
}

#[test]
fn residual_streams_of_any_scale() {
    for (residual_scale, tied_head) in [
        (30.0, true),
        (1.0 / 30.0, true),
        (30.0, false),
        (1.0 / 30.0, false),
    ] {
        let spec = RandomSpec {
            residual_scale,
            tied_head,
            ..shape(96, 3, 2)
        };
        check(&spec, 1024);
    }
}

fn llama(family: RandomFamily, heads: usize, queries: usize) -> RandomSpec {
    RandomSpec {
        family,
        queries,
        tied_head: false,
        activation: "silu",
        hidden: 176,
        ..shape(96, heads, 1)
    }
}

#[test]
fn rotary_embeddings_and_gates() {
    check(&llama(RandomFamily::Llama, 4, 1), 1024);
    let spec = RandomSpec {
        layers: 3,
        tied_head: true,
        residual_scale: 30.0,
        ..llama(RandomFamily::Llama, 2, 1)
    };
    check(&spec, 2048);
}

/// Caches of the key and value heads only, in one group of tokens and in two; three queries for each are padded to four.
#[test]
fn queries_that_share_keys() {
    check(&llama(RandomFamily::Llama, 4, 2), 2048);
    check(&llama(RandomFamily::Llama, 6, 3), 1024);
    check(&llama(RandomFamily::Llama, 6, 3), 256);
    check(&llama(RandomFamily::Llama, 4, 4), 256);
}

#[test]
fn biases_and_norms_of_queries_and_keys() {
    check(&llama(RandomFamily::Qwen2, 3, 1), 1024);
    check(&llama(RandomFamily::Qwen2, 6, 2), 512);
    check(&llama(RandomFamily::Qwen3, 3, 1), 1024);
    check(&llama(RandomFamily::Qwen3, 6, 2), 512);
}
