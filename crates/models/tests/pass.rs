//! Passes of several tokens on random checkpoints of many shapes: the caches that they leave are those of one token after the other, decoding
//! continues from them, and the logits of every token are the clear model's.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use taciturn_graph::{
    CostTable, Graph, Level, Logical, NoiseLevels, Optimal, Plan, SlotSimulator, Slots, run,
    run_in_step,
};
use taciturn_models::random::{RandomFamily, RandomSpec};
use taciturn_models::{
    CalibrationOptions, Checkpoint, ClearModel, StepModel, calibrate, log_sum_exp, measure_bounds,
};

const MAX_LEVEL: Level = Level(16);
const CONTEXT: usize = 20;
const WINDOWS: usize = 128;
const SIMULATED: usize = 32;
/// Of cached entries and logits, whose size is about one.
const TOLERANCE: f64 = 2e-2;
/// Of predictions from the clear model's, in nats: what the approximations of such small models leave, alike for one token after the other.
const DIVERGENCE: f64 = 4e-3;

fn noise() -> NoiseLevels {
    NoiseLevels::of_ciphertexts(1 << 16, 40.0)
}

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

/// Two ways to run graphs, in logical coordinates and slot by slot.
struct Runs {
    logical: Logical,
    entries: HashMap<String, Vec<f64>>,
    simulator: SlotSimulator,
    slots: HashMap<String, Slots>,
}

impl Runs {
    fn new(model: &StepModel, plans: [&Plan; 2], slots: usize) -> Self {
        let mut simulator = SlotSimulator::new(slots, noise(), 4);
        let caches = model.prefix_caches().into_iter().map(|(name, plain)| {
            let (family, _) = name.rsplit_once('.').unwrap();
            let level = plans[0].caches[family].max(plans[1].caches[family]);
            let slots = simulator.encrypt(&plain.values(), level);
            (name, slots)
        });
        Runs {
            slots: caches.collect(),
            simulator,
            logical: Logical::simulated(noise(), 3),
            entries: (model.prefix_caches().into_iter())
                .map(|(name, plain)| (name, plain.values()))
                .collect(),
        }
    }

    /// The outputs that hold logits, of both runs.
    fn run(
        &mut self,
        graph: &Graph,
        plan: &Plan,
        input: Vec<f64>,
    ) -> [HashMap<String, Vec<f64>>; 2] {
        let name = StepModel::input_name();
        let level = plan.node(name).unwrap().level();
        let mut slots = self.slots.clone();
        slots.insert(name.into(), self.simulator.encrypt(&input, level));
        let outputs = run(graph, plan, &mut self.simulator, slots, &mut |_| ()).unwrap();
        self.simulator.check().unwrap();
        let mut second = HashMap::new();
        for (name, value) in outputs {
            if name.contains(".cache.") {
                self.slots.insert(name, value);
            } else {
                second.insert(name, value.as_slice().to_vec());
            }
        }
        // Caches fill all slots, so that both graphs have their entries in the same order.
        self.entries.insert(name.into(), input);
        let outputs = self.logical.run(graph, Some(plan), &self.entries).unwrap();
        let (caches, first) = (outputs.into_iter()).partition(|(name, _)| name.contains(".cache."));
        let _: &HashMap<String, Vec<f64>> = &caches;
        self.entries.extend(caches);
        [first, second]
    }
}

fn close(got: &[f64], expected: &[f64], context: &str) {
    assert_eq!(got.len(), expected.len(), "{context}");
    let worst = got.iter().zip(expected).map(|(a, b)| (a - b).abs());
    let worst = worst.fold(0.0, f64::max);
    assert!(worst < TOLERANCE, "{worst}, {context}");
}

fn divergence(got: &[f64], expected: &[f64]) -> f64 {
    let (p, q) = (log_sum_exp(expected), log_sum_exp(got));
    (expected.iter().zip(got))
        .map(|(a, b)| (a - p).exp() * ((a - p) - (b - q)))
        .sum()
}

/// A prompt in two runs of passes, the second onto the caches that the first left; then decoding.
fn check(spec: &RandomSpec, slots: usize, sizes: &[usize]) {
    check_some(spec, slots, sizes, sizes);
}

/// A calibrated random checkpoint, its step model after public tokens, and these.
fn calibrated(spec: &RandomSpec, slots: usize) -> (Checkpoint, StepModel, Vec<u32>) {
    let folder = tempfile::tempdir().unwrap();
    spec.write(folder.path()).unwrap();
    let checkpoint = Checkpoint::load(folder.path()).unwrap();
    let sample = random_tokens(1, WINDOWS * (CONTEXT - 1), spec.vocabulary);
    let options = CalibrationOptions {
        context: CONTEXT,
        windows: WINDOWS,
        margin: 0.4,
        ..CalibrationOptions::default()
    };
    let mut calibration = calibrate(&checkpoint, &sample, &options).unwrap();
    measure_bounds(&checkpoint, &mut calibration, &sample, SIMULATED).unwrap();
    let public = random_tokens(5, 2, spec.vocabulary);
    let model = StepModel::after(&checkpoint, &calibration, slots, CONTEXT, &public).unwrap();
    (checkpoint, model, public)
}

/// The same where only some of the sizes are run.
fn check_some(spec: &RandomSpec, slots: usize, sizes: &[usize], tested: &[usize]) {
    let (checkpoint, model, public) = calibrated(spec, slots);
    let table = CostTable::reference(slots, MAX_LEVEL);
    let plan = model.plan(&table, &Optimal::default()).unwrap();
    let tokens = random_tokens(2, 14, spec.vocabulary);
    let first = model.prefix_tokens();
    assert_eq!(first, 3);

    let clear = ClearModel::new(&checkpoint);
    let mut cache = clear.cache();
    clear.step(&mut cache, checkpoint.config.bos).unwrap();
    for &token in &public {
        clear.step(&mut cache, token).unwrap();
    }
    let expected: Vec<Vec<f64>> = (tokens.iter())
        .map(|&token| clear.step(&mut cache, token).unwrap())
        .collect();

    assert_eq!(model.pass_sizes(), sizes, "{spec:?}");
    for &size in tested {
        let pass = model.pass(size).unwrap();
        let pass_plan = pass
            .plan(&table, &Optimal::default(), &plan.caches, true)
            .unwrap();
        for (family, level) in &plan.caches {
            assert!(pass_plan.caches[family] >= *level, "{family}");
        }
        let mut runs = Runs::new(&model, [&plan, &pass_plan], slots);
        let mut one_by_one = Runs::new(&model, [&plan, &pass_plan], slots);
        let graph = |positions: Range<usize>| pass.step_graph(&pass_plan, positions, true).unwrap();
        for (from, to) in [(0, 7), (7, 12)] {
            let mut start = first + from;
            while start < first + to {
                let positions = pass.positions(start, first + to);
                let graph = graph(positions.clone());
                let new = &tokens[positions.start - first..positions.end - first];
                let input = pass.embed(new, start).unwrap();
                let outputs = runs.run(&graph, &pass_plan, input);
                for position in positions.clone() {
                    let at = format!("token {position} of {positions:?} at {size}, {spec:?}");
                    let expected = &expected[position - first];
                    let names = model.logit_outputs(&graph);
                    let side = position % size;
                    let whole: Vec<Vec<f64>> = names
                        .iter()
                        .map(|(name, _)| outputs[1][name].clone())
                        .collect();
                    let got = model.token_logits(&graph, &whole, side);
                    assert!(divergence(&got, expected) < DIVERGENCE, "slots, {at}");
                    let mut got: Vec<f64> = (names.iter())
                        .flat_map(|(name, _)| outputs[0][name].iter().skip(side).step_by(size))
                        .copied()
                        .collect();
                    got.truncate(spec.vocabulary);
                    assert!(divergence(&got, expected) < DIVERGENCE, "logical, {at}");
                }
                start = positions.end;
            }
        }
        for (i, &token) in tokens[..12].iter().enumerate() {
            let graph = model.graph(first + i).unwrap();
            one_by_one.run(&graph, &plan, model.embed(token, first + i).unwrap());
        }
        for (name, entries) in &one_by_one.entries {
            if name.contains(".cache.") {
                close(&runs.entries[name], entries, name);
                let slots = one_by_one.slots[name].as_slice();
                close(runs.slots[name].as_slice(), slots, name);
                close(slots, entries, name);
            }
        }
        for (i, &token) in tokens.iter().enumerate().skip(12) {
            let graph = model.graph(first + i).unwrap();
            let outputs = runs.run(&graph, &plan, model.embed(token, first + i).unwrap());
            let slots: Vec<&Vec<f64>> = (model.logit_outputs(&graph).iter())
                .map(|(name, _)| &outputs[1][name])
                .collect();
            let got = model.logits(&graph, &slots);
            let alone = one_by_one.run(&graph, &plan, model.embed(token, first + i).unwrap());
            let slots: Vec<&Vec<f64>> = (model.logit_outputs(&graph).iter())
                .map(|(name, _)| &alone[1][name])
                .collect();
            let alone = model.logits(&graph, &slots);
            let nats = [divergence(&got, &alone), divergence(&got, &expected[i])];
            assert!(
                nats[0] < 1e-4 && nats[1] < DIVERGENCE,
                "{nats:?}, decoding {i} after {size}"
            );
        }
    }
}

fn shape(width: usize, heads: usize, layers: usize) -> RandomSpec {
    RandomSpec {
        width,
        heads,
        layers,
        hidden: 2 * width,
        vocabulary: 300,
        positions: 32,
        ..RandomSpec::default()
    }
}

/// In one group of tokens and in several; heads that are padded; feed-forward networks, and scores, in several ciphertexts, the
/// last of which may be padding.
#[test]
fn prompts_in_passes_and_one_by_one() {
    let wide = RandomSpec {
        hidden: 96,
        ..shape(32, 2, 2)
    };
    check(&wide, 256, &[2, 4, 8]);
    check(&shape(48, 3, 1), 256, &[2, 4]);
}

/// Passes that only fill the caches, in step: every pass finds what those before it left, in all groups that are in use by then.
#[test]
fn passes_in_step_leave_the_caches_of_one_by_one() {
    let spec = shape(32, 2, 2);
    let (_, model, _) = calibrated(&spec, 256);
    let table = CostTable::reference(256, MAX_LEVEL);
    let plan = model.plan(&table, &Optimal::default()).unwrap();
    let tokens = random_tokens(2, 14, spec.vocabulary);
    let first = model.prefix_tokens();
    for size in [2, 8] {
        let pass = model.pass(size).unwrap();
        let pass_plan = pass
            .plan(&table, &Optimal::default(), &plan.caches, false)
            .unwrap();
        let mut one_by_one = Runs::new(&model, [&plan, &pass_plan], 256);
        for (i, &token) in tokens.iter().enumerate() {
            let graph = model.prompt_graph(&plan, first + i).unwrap();
            one_by_one.run(&graph, &plan, model.embed(token, first + i).unwrap());
        }
        let Runs {
            mut simulator,
            slots: mut caches,
            ..
        } = Runs::new(&model, [&plan, &pass_plan], 256);
        let (mut graphs, mut inputs) = (Vec::new(), Vec::new());
        let (mut start, end) = (first, first + tokens.len());
        let level = pass_plan.node(StepModel::input_name()).unwrap().level();
        while start < end {
            let positions = pass.positions(start, end);
            let new = &tokens[start - first..positions.end - first];
            let input = simulator.encrypt(&pass.embed(new, start).unwrap(), level);
            inputs.push(HashMap::from([(StepModel::input_name().into(), input)]));
            start = positions.end;
            graphs.push(pass.step_graph(&pass_plan, positions, false).unwrap());
        }
        run_in_step(
            &graphs,
            &pass_plan,
            &mut simulator,
            &mut caches,
            inputs,
            &mut |_| (),
        )
        .unwrap();
        simulator.check().unwrap();
        for (name, entries) in &one_by_one.slots {
            if name.contains(".cache.") {
                close(caches[name].as_slice(), entries.as_slice(), name);
            }
        }
    }
}

/// Large biases make softmaxes sharp: rounds of normalise-and-square.
#[test]
fn prompts_with_rounds() {
    let spec = RandomSpec {
        bias: 2.0,
        ..shape(32, 2, 1)
    };
    check_some(&spec, 512, &[2, 4, 8, 16], &[2, 8, 16]);
}

#[test]
fn prompts_of_the_llama_family() {
    let llama = |family, heads, queries| RandomSpec {
        family,
        queries,
        tied_head: false,
        activation: "silu",
        hidden: 96,
        ..shape(32, heads, 1)
    };
    check_some(&llama(RandomFamily::Llama, 2, 1), 256, &[2, 4, 8], &[4]);
    check_some(
        &llama(RandomFamily::Qwen3, 2, 2),
        512,
        &[2, 4, 8, 16],
        &[4, 16],
    );
}

#[test]
fn what_no_pass_computes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let spec = shape(32, 2, 1);
    spec.write(folder.path()).unwrap();
    let checkpoint = Checkpoint::load(folder.path()).unwrap();
    let sample = random_tokens(1, 2000, spec.vocabulary);
    let options = CalibrationOptions {
        context: CONTEXT,
        ..CalibrationOptions::default()
    };
    let calibration = calibrate(&checkpoint, &sample, &options).unwrap();
    let model = StepModel::new(&checkpoint, &calibration, 512, CONTEXT).unwrap();
    assert!(model.pass(3).is_err() && model.pass(1).is_err() && model.pass(64).is_err());
    let pass = model.pass(4).unwrap();
    for (start, end) in [(0, 4), (3, 3), (3, 5), (20, 21), (16, 21)] {
        assert!(pass.graph(start..end).is_err(), "{start}..{end}");
    }
    assert!(pass.embed(&[1, 2], 3).is_err() && pass.embed(&[], 4).is_err());
    assert_eq!(pass.count(1, 9), 3);
    assert_eq!(pass.count(5, 8), 1);
    let none: BTreeMap<String, Level> = BTreeMap::new();
    let table = CostTable::reference(512, MAX_LEVEL);
    assert!(pass.plan(&table, &Optimal::default(), &none, false).is_ok());
}
