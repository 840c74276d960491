//! The choice among approximations: against all combinations, and what a chosen one computes.

mod common;

use common::{Random, worst};
use std::collections::HashMap;
use taciturn_approx::{Approximation, Gate, Inverse, Named, Target};
use taciturn_graph::*;

const INTERVAL: (f64, f64) = (0.02, 2.0);
const ROOTS: [&str; 5] = [
    "minimax-newton/31",
    "minimax-newton/15+1",
    "minimax-newton/7+2",
    "minimax-goldschmidt/7+1",
    "constant-goldschmidt/0+3",
];
const ACTIVATIONS: [&str; 3] = ["minimax/31", "composite/7x7", "minimax/15"];

fn named(target: Target, interval: (f64, f64), name: &str) -> Approximation {
    let named = Named::parse(target, name, interval, 12.0).unwrap();
    named.approximation
}

/// Blocks of a norm, a feed-forward network and a residual sum, whose sites have the variants of these numbers; `wide` networks have two blocks.
fn graph(numbers: &[usize], wide: bool, bound: f64) -> Graph {
    const WIDTH: usize = 8;
    let slots = 32;
    let hidden = if wide { 2 * slots } else { slots };
    let mut random = Random::new(5);
    let mut graph = Graph::new(slots).unwrap();
    let mut x = graph.input("x", Layout::periodic(WIDTH)).unwrap();
    let gate = Target::Activation(Gate::NormalByTanh);
    for (i, pair) in numbers.chunks(2).enumerate() {
        let norm = NormSpec {
            width: WIDTH,
            epsilon: 0.1,
            inverse_sqrt: named(Target::InverseSqrt, INTERVAL, ROOTS[pair[0]]),
        };
        let normed = graph.norm(&format!("layer{i}.norm"), x, &norm).unwrap();
        let Some(&activation) = pair.get(1) else {
            x = graph.add(format!("layer{i}.sum"), x, normed).unwrap();
            continue;
        };
        let spec = FeedForwardSpec {
            hidden,
            up: random.matrix(&format!("up{i}"), WIDTH, hidden, 0.5),
            up_bias: None,
            gate: None,
            gate_bias: None,
            down: random.matrix(&format!("down{i}"), hidden, WIDTH, 0.1),
            down_bias: None,
            activation: named(gate, (-4.0, 4.0), ACTIVATIONS[activation]),
        };
        let name = format!("layer{i}.mlp");
        let output = graph.feed_forward(&name, normed, &spec).unwrap();
        x = graph.add(format!("layer{i}.sum"), x, output).unwrap();
    }
    graph.output("y", x);
    if bound > 0.0 {
        let nodes = graph.nodes().iter();
        let names: Vec<String> = nodes.map(|node| node.name.clone()).collect();
        graph.set_bounds(names.iter().map(|name| (name.as_str(), bound)));
    }
    graph
}

fn combinations(counts: &[usize]) -> Vec<Vec<usize>> {
    counts.iter().fold(vec![Vec::new()], |all, &count| {
        let extended = |known: Vec<usize>| {
            (0..count).map(move |next| known.iter().copied().chain([next]).collect::<Vec<_>>())
        };
        all.into_iter().flat_map(extended).collect()
    })
}

/// No combination has a faster plan than the chosen one, at several numbers of levels, of sites and of alternatives.
#[test]
fn the_choice_is_the_best_of_all_combinations() {
    let cases = [
        (vec![5], false),
        (vec![3, 3], false),
        (vec![3, 3], true),
        (vec![5, 2, 4], false),
        (vec![3, 2, 3, 2], false),
    ];
    let mut chosen_levels = Vec::new();
    for (counts, wide) in cases {
        for max in [8, 9, 11, 14] {
            let table = CostTable::reference(32, Level(max));
            let build = |numbers: &[usize]| graph(numbers, wide, 1.0);
            let time = |numbers: &[usize]| {
                let plan = plan(&build(numbers), &table, &Optimal::default());
                plan.map_or(u64::MAX, |plan| plan.microseconds)
            };
            let most = counts.iter().copied().max().unwrap();
            let variants: Vec<Graph> = (0..most)
                .map(|variant| {
                    let numbers = counts.iter().map(|&count| variant.min(count - 1));
                    build(&numbers.collect::<Vec<_>>())
                })
                .collect();
            let best = combinations(&counts)
                .iter()
                .map(|numbers| time(numbers))
                .min()
                .unwrap();
            let Ok(chosen) = Optimal::default().choose(&variants, &table) else {
                assert_eq!(best, u64::MAX);
                continue;
            };
            assert_eq!(chosen.len(), counts.len());
            let numbers: Vec<usize> = (chosen.iter().zip(&counts))
                .map(|(&variant, &count)| variant.min(count - 1))
                .collect();
            let got = time(&numbers);
            // Nodes' times are rounded to microseconds.
            assert!(
                got.abs_diff(best) <= 200,
                "{counts:?}, {max} levels: {got} of {best} by {numbers:?}"
            );
            chosen_levels.push(numbers);
        }
    }
    // The best differs by levels and places.
    chosen_levels.sort_unstable();
    chosen_levels.dedup();
    assert!(chosen_levels.len() >= 6, "{chosen_levels:?}");
}

/// Equal blocks are solved once, and get the same result as when they are not.
#[test]
fn equal_blocks_share_their_choice() {
    let table = CostTable::reference(32, Level(12));
    let layers = 12;
    let variants: Vec<Graph> = (0..4)
        .map(|variant| graph(&[variant, variant.min(2)].repeat(layers), false, 1.0))
        .collect();
    let chosen = Optimal::default().choose(&variants, &table).unwrap();
    let numbers: Vec<usize> = (chosen.iter().enumerate())
        .map(|(site, &variant)| {
            if site % 2 == 1 {
                variant.min(2)
            } else {
                variant
            }
        })
        .collect();
    let time = |numbers: &[usize]| {
        let plan = plan(&graph(numbers, false, 1.0), &table, &Optimal::default()).unwrap();
        plan.microseconds
    };
    let got = time(&numbers);
    for variant in 0..4 {
        assert!(got <= 200 + time(&[variant, variant.min(2)].repeat(layers)));
    }
    // Changing any one site of the middle makes it no faster.
    for site in [10, 11, 12, 13] {
        for variant in 0..if site % 2 == 1 { 3 } else { 4 } {
            let mut other = numbers.clone();
            other[site] = variant;
            assert!(got <= 200 + time(&other), "site {site}, variant {variant}");
        }
    }
}

/// A site's approximation changes what is computed by no more than its stated error, whichever it is; the clear reference stays as it is.
#[test]
fn approximations_change_results_by_their_errors() {
    let mut random = Random::new(9);
    let inputs: Vec<Vec<f64>> = (0..20).map(|_| random.vector(8)).collect();
    let run = |number: usize, logical: &mut Logical, x: &[f64]| {
        let graph = graph(&[number], false, 0.0);
        let inputs = HashMap::from([("x".to_owned(), x.to_vec())]);
        logical.run(&graph, None, &inputs).unwrap()["y"].clone()
    };
    for (number, name) in ROOTS.iter().enumerate() {
        let error = (-named(Target::InverseSqrt, INTERVAL, name).bits()).exp2();
        for x in &inputs {
            let exact = run(number, &mut Logical::clear(), x);
            let reference = run(0, &mut Logical::clear(), x);
            assert!(worst(&exact, &reference) < 1e-9, "{name}");
            let mut simulated = Logical::simulated(NoiseLevels::NONE, 0);
            let got = run(number, &mut simulated, x);
            for ((got, exact), x) in got.iter().zip(&exact).zip(x) {
                let normed = (exact - x).abs();
                assert!(
                    (got - exact).abs() <= 1.001 * error * normed + 1e-12,
                    "{name}"
                );
            }
        }
    }
}

/// Every row that a model's function can have is a graph's nodes with bounds that hold, padding and garbage included.
#[test]
fn values_stay_below_their_bounds() {
    let mut random = Random::new(3);
    let x = random.vector(8);
    for root in Target::InverseSqrt.rows() {
        for activation in Target::Activation(Gate::NormalByTanh).rows() {
            let mut graph = Graph::new(32).unwrap();
            let id = graph.input("x", Layout::periodic(8)).unwrap();
            let norm = NormSpec {
                width: 8,
                epsilon: 0.1,
                inverse_sqrt: named(Target::InverseSqrt, INTERVAL, root.name),
            };
            let normed = graph.norm("norm", id, &norm).unwrap();
            let gate = Target::Activation(Gate::NormalByTanh);
            let spec = FeedForwardSpec {
                hidden: 16,
                up: random.matrix("up", 8, 16, 0.8),
                up_bias: Some(random.vector(16)),
                gate: None,
                gate_bias: None,
                down: random.matrix("down", 16, 8, 0.1),
                down_bias: None,
                activation: named(gate, (-6.0, 6.0), activation.name),
            };
            let output = graph.feed_forward("mlp", normed, &spec).unwrap();
            graph.output("y", output);
            let plan = Plan::unlimited(&graph).unwrap();
            let mut simulator = common::exact(32);
            let inputs = HashMap::from([("x".to_owned(), x.clone())]);
            let outputs = common::run_slots(&graph, &plan, &mut simulator, &inputs);
            simulator.check().unwrap();
            let clear = Logical::clear().run(&graph, None, &inputs).unwrap();
            let error = worst(&outputs["y"], &clear["y"]);
            assert!(
                error < 0.05,
                "{} and {}: {error}",
                root.name,
                activation.name
            );
            for (name, magnitude) in simulator.magnitudes() {
                let bound = graph.node(graph.find(name).unwrap()).bound;
                assert!(bound.is_none_or(|bound| *magnitude <= bound), "{name}");
            }
            // What is worth a refresh has a bound.
            let mut functions =
                (graph.nodes().iter()).filter(|node| matches!(node.op, Op::Polynomial(_)));
            assert!(functions.all(|node| node.bound.is_some()));
        }
    }
}

#[test]
fn approximations_of_other_functions_are_refused() {
    let mut graph = Graph::new(32).unwrap();
    let x = graph.input("x", Layout::periodic(8)).unwrap();
    let norm = NormSpec {
        width: 8,
        epsilon: 0.1,
        inverse_sqrt: Approximation::Inverse(Inverse::fit(0.1, 1.0, 7, 0).unwrap()),
    };
    let error = graph.norm("norm", x, &norm).unwrap_err();
    assert!(matches!(error, GraphError::Function { .. }), "{error}");
}

/// A plan says what it was made for, and holds for nothing else.
#[test]
fn plans_hold_for_their_approximations() {
    let table = CostTable::reference(32, Level(12));
    let approximations = |name: &str| {
        let mut graph = graph(&[0, 0], false, 1.0);
        let pairs = [("layer0.norm".to_owned(), name.to_owned())];
        graph.set_approximations(pairs.into());
        graph
    };
    let own = approximations("minimax-newton/31");
    let made = plan(&own, &table, &Optimal::default()).unwrap();
    let read = Plan::from_json(&made.to_json()).unwrap();
    read.check(&own, Level(12)).unwrap();
    for other in [
        approximations("minimax-newton/32"),
        graph(&[0, 0], false, 1.0),
    ] {
        let error = read.check(&other, Level(12)).unwrap_err();
        assert!(error.to_string().contains("minimax-newton/31"), "{error}");
    }
    let changed = made
        .to_json()
        .replace("minimax-newton/31", "minimax-newton/32");
    assert!(matches!(
        Plan::from_json(&changed),
        Err(PlanError::Hash { .. })
    ));
}
