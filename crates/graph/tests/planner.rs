//! The planner: against its baseline, against exhaustive search, and its file.

mod common;

use common::block::{GPT2_SMALL, Model, SMALL};
use common::{MAX_LEVEL, Random, exact};
use std::collections::HashMap;
use std::sync::Arc;
use taciturn_approx::interpolate;
use taciturn_graph::*;

/// The graph of a model's full context with a bound on everything.
fn full(model: &Model) -> Graph {
    let mut graph = model.graph(model.sizes.geometry().capacity() - 1);
    let names: Vec<String> = graph.nodes().iter().map(|node| node.name.clone()).collect();
    graph.set_bounds(names.iter().map(|name| (name.as_str(), 1.0)));
    graph
}

/// As a calibrated model's graph is: values with garbage between their entries have no bound.
fn without_garbage(model: &Model) -> Graph {
    let mut graph = model.graph(model.sizes.geometry().capacity() - 1);
    let clean = |node: &&Node| node.layout.rest() != Some(Rest::Garbage);
    let names: Vec<String> = (graph.nodes().iter().filter(clean))
        .map(|node| node.name.clone())
        .collect();
    graph.set_bounds(names.iter().map(|name| (name.as_str(), 1.0)));
    graph
}

/// A chain of random operations with residual branches, at most `candidates` of its values refreshable.
fn random_graph(random: &mut Random, candidates: usize) -> Graph {
    let mut graph = Graph::new(256).unwrap();
    let mut stream = vec![graph.input("x", Layout::periodic(16)).unwrap()];
    let function = |degree| {
        let polynomial = interpolate(f64::exp, -1.0, 1.0, degree).unwrap();
        Arc::new(NonLinear {
            function: Function::plain(FunctionKind::Exp),
            polynomial,
        })
    };
    let functions = [function(3), function(7), function(15)];
    for i in 0..14 {
        let x = *stream.last().unwrap();
        let pick =
            |random: &mut Random, n: usize| ((random.number() + 1.0) / 2.0 * n as f64) as usize % n;
        let name = format!("node{i}");
        let next = match pick(random, 6) {
            0 => graph.square(name, x),
            1 => {
                let sum = graph.sum_all(format!("sum{i}"), x).unwrap();
                let value = graph
                    .polynomial(format!("value{i}"), sum, &functions[pick(random, 3)])
                    .unwrap();
                graph.mul(name, x, value)
            }
            2 => graph.polynomial(name, x, &functions[pick(random, 3)]),
            3 => {
                let earlier = stream[pick(random, stream.len())];
                graph.add(name, x, earlier)
            }
            4 => {
                let earlier = stream[pick(random, stream.len())];
                graph.mul(name, x, earlier)
            }
            _ => {
                let up = random.matrix(&format!("up{i}"), 16, 64, 1.0);
                let down = random.matrix(&format!("down{i}"), 64, 16, 1.0);
                let spaced = graph.product_spaced(format!("up{i}"), x, &up, 0).unwrap();
                let masked = graph.mul_plain(format!("mask{i}"), spaced, 1.0).unwrap();
                let repeated = graph.repeat(format!("repeat{i}"), masked).unwrap();
                graph.product_periodic(name, repeated, &down)
            }
        };
        stream.push(next.unwrap());
    }
    graph.output("y", *stream.last().unwrap());
    // Every value of the stream first, so that a way exists; then others while there is room.
    let names: Vec<String> = graph
        .nodes()
        .iter()
        .skip(1)
        .map(|node| node.name.clone())
        .collect();
    let (stream, others): (Vec<_>, Vec<_>) =
        names.iter().partition(|name| name.starts_with("node"));
    graph.set_bounds(
        stream
            .into_iter()
            .chain(others)
            .take(candidates)
            .map(|name| (name.as_str(), 1.0)),
    );
    graph
}

#[test]
fn search_finds_what_exhaustive_search_finds() {
    let mut random = Random::new(31);
    let mut placed = 0;
    for round in 0..12 {
        let graph = random_graph(&mut random, 15);
        let table = CostTable::reference(graph.slots(), Level(6 + round % 4));
        let problem = Problem::new(&graph, &table).unwrap();
        let candidates = problem.candidates();
        let best = (0u32..1 << candidates.len())
            .map(|flags| {
                let mut choice = vec![false; problem.len()];
                candidates
                    .iter()
                    .enumerate()
                    .for_each(|(bit, &node)| choice[node] = flags >> bit & 1 == 1);
                problem.cost(&choice)
            })
            .fold(f64::INFINITY, f64::min);
        assert!(best.is_finite(), "round {round} has no plan at all");
        let choice = LocalSearch::default().place(&problem);
        assert!(
            problem.cost(&choice) <= best * (1.0 + 1e-9),
            "round {round}: {} > {best}",
            problem.cost(&choice)
        );
        assert!(problem.cost(&WhenNothingIsLeft.place(&problem)) >= best * (1.0 - 1e-9));
        placed += choice.iter().filter(|&&refreshed| refreshed).count();
    }
    assert!(placed > 12);
}

#[test]
fn search_is_not_worse_than_the_baseline() {
    for (sizes, max) in [(SMALL, 9), (SMALL, 13), (GPT2_SMALL, 13)] {
        let sizes = if sizes.layers > 2 {
            common::block::Sizes { layers: 3, ..sizes }
        } else {
            sizes
        };
        let model = Model::new(sizes);
        search_against_baseline(&full(&model), max);
        search_against_baseline(&without_garbage(&model), max);
        let rounds = Model::with_rounds(sizes, 3, sizes.geometry().capacity());
        search_against_baseline(&without_garbage(&rounds), max);
    }
}

fn search_against_baseline(graph: &Graph, max: u32) {
    let table = CostTable::reference(graph.slots(), Level(max));
    let baseline = plan(graph, &table, &WhenNothingIsLeft).unwrap();
    let found = plan(
        graph,
        &table,
        &LocalSearch {
            restarts: 0,
            ..LocalSearch::default()
        },
    )
    .unwrap();
    assert!(found.microseconds <= baseline.microseconds);
    assert!(found.max_level <= Level(max));
    for (name, node) in &found.nodes {
        let id = graph.find(name).unwrap();
        assert_eq!(
            node.level_in.after(graph.node(id).op.depth()),
            Some(node.level_out)
        );
        for input in &graph.node(id).inputs {
            let level = found.node(&graph.node(*input).name).unwrap().level();
            assert!(level >= node.level_in, "{name}");
            assert!(
                level == node.level_in || graph.consumers()[input.index()].len() > 1 || {
                    graph.node(*input).op.cache_family().is_some()
                }
            );
        }
        if let Some(bootstrap) = node.bootstrap {
            let cost = table.bootstrap(graph.node(id).layout.period()).unwrap();
            assert!(node.level_out >= Level(cost.slots_to_coeffs_levels));
            assert_eq!(bootstrap.slots, 1 << cost.log_slots);
        }
    }
}

/// The time of a plan is what counting a run of it gives.
#[test]
fn plans_predict_what_counting_measures() {
    let model = Model::new(SMALL);
    let graph = full(&model);
    let table = CostTable::reference(graph.slots(), MAX_LEVEL);
    let plan = plan(&graph, &table, &WhenNothingIsLeft).unwrap();
    let mut counter = Counter::new(graph.slots(), &table);
    let inputs: HashMap<_, _> = graph
        .inputs()
        .map(|(name, _)| (name.to_owned(), plan.node(name).unwrap().level()))
        .collect();
    let mut seen = 0;
    let outputs = run(&graph, &plan, &mut counter, inputs, &mut |step| {
        assert_eq!((step.index, step.total), (seen, graph.nodes().len()));
        assert_eq!(*step.value, plan.node(step.name).unwrap().level());
        seen += 1;
    })
    .unwrap();
    assert_eq!(seen, graph.nodes().len());
    for (name, level) in outputs {
        let expected = name
            .rsplit_once('.')
            .and_then(|(family, _)| plan.caches.get(family))
            .copied();
        assert_eq!(level, expected.unwrap_or_default(), "{name}");
    }
    assert!(
        (counter.milliseconds() * 1e3 - plan.microseconds as f64).abs()
            < graph.nodes().len() as f64
    );
    assert_eq!(counter.counts().bootstraps, plan.bootstraps);
    assert!(
        counter
            .rotations()
            .iter()
            .all(|(steps, level)| plan.rotations[steps] >= *level)
    );
    assert_eq!(counter.relinearization(), plan.relinearization);
}

/// One plan serves all positions: it knows their nodes, levels and rotations.
#[test]
fn one_plan_serves_all_positions() {
    let model = Model::new(SMALL);
    let table = CostTable::reference(SMALL.slots, MAX_LEVEL);
    let plan = plan(&full(&model), &table, &WhenNothingIsLeft)
        .unwrap()
        .cover(&model.graph(0))
        .unwrap();
    for position in [0, 1, 30, 31, 32, 100] {
        assert_eq!(plan.clone().cover(&model.graph(position)).unwrap(), plan);
    }
    let mut other = Graph::new(SMALL.slots).unwrap();
    let x = other.input("x", Layout::periodic(4)).unwrap();
    other.square("unknown", x).unwrap();
    assert!(matches!(plan.cover(&other), Err(PlanError::Missing { .. })));
}

#[test]
fn plans_are_files_with_a_hash() {
    let graph = full(&Model::new(SMALL));
    let table = CostTable::reference(graph.slots(), MAX_LEVEL);
    let plan = plan(&graph, &table, &WhenNothingIsLeft).unwrap();
    let json = plan.to_json();
    assert_eq!(Plan::from_json(&json).unwrap(), plan);
    let changed = json.replacen("\"bootstraps\": ", "\"bootstraps\": 1", 1);
    assert!(matches!(
        Plan::from_json(&changed),
        Err(PlanError::Hash { .. })
    ));
    assert!(matches!(Plan::from_json("{}"), Err(PlanError::Parse(_))));
}

#[test]
fn impossible_plans_and_runs_say_why() {
    let graph = full(&Model::new(SMALL));
    let table = CostTable::reference(graph.slots(), Level(4));
    assert!(matches!(
        plan(&graph, &table, &LocalSearch::default()),
        Err(PlanError::TooDeep { .. })
    ));
    let mut broken = CostTable::reference(graph.slots(), MAX_LEVEL);
    broken.bootstraps[0].target_ms.pop();
    assert!(matches!(
        plan(&graph, &broken, &WhenNothingIsLeft),
        Err(PlanError::Costs { .. })
    ));

    let mut graph = Graph::new(64).unwrap();
    let x = graph.input("x", Layout::periodic(4)).unwrap();
    let y = graph.square("y", x).unwrap();
    graph.output("y", y);
    let plan = Plan::unlimited(&graph).unwrap();
    let mut machine = exact(64);
    let missing = run(&graph, &plan, &mut machine, HashMap::new(), &mut |_| ());
    assert!(matches!(missing, Err(RunError::MissingInput { .. })));
    let low = machine.encrypt(&[1.0], Level(0));
    let low = run(
        &graph,
        &plan,
        &mut machine,
        HashMap::from([("x".to_owned(), low)]),
        &mut |_| (),
    );
    assert!(matches!(low, Err(RunError::Level { .. })));
}

/// A value outside an interval is an error of the run, never a result.
#[test]
fn leaving_an_interval_is_an_error() {
    let mut graph = Graph::new(64).unwrap();
    let x = graph.input("x", Layout::periodic(4)).unwrap();
    let polynomial = interpolate(f64::exp, -1.0, 1.0, 7).unwrap();
    let function = Function::plain(FunctionKind::Exp);
    let y = graph
        .polynomial(
            "y",
            x,
            &Arc::new(NonLinear {
                function,
                polynomial,
            }),
        )
        .unwrap();
    graph.output("y", y);
    let inputs = HashMap::from([("x".to_owned(), vec![0.0, 0.5, -1.0, 1.5])]);
    let error = Logical::simulated(NoiseLevels::NONE, 0)
        .run(&graph, None, &inputs)
        .unwrap_err();
    assert!(
        matches!(&error, LogicalError::LeftInterval(left) if left.site == "y" && left.record.greatest == 1.5)
    );
    assert!(Logical::clear().run(&graph, None, &inputs).is_ok());
    let plan = Plan::unlimited(&graph).unwrap();
    let mut simulator = exact(64);
    common::run_slots(&graph, &plan, &mut simulator, &inputs);
    assert!(simulator.check().is_err());
    let infinite = HashMap::from([("x".to_owned(), vec![0.0, f64::NAN, 0.0, 0.0])]);
    let error = Logical::clear().run(&graph, None, &infinite).unwrap_err();
    assert!(matches!(error, LogicalError::NotFinite { .. }));
}
