//! The placements of bootstraps: against exhaustive search, and against each other.

mod common;

use common::Random;
use common::block::{GPT2_SMALL, Model, SMALL};
use std::sync::Arc;
use taciturn_approx::interpolate;
use taciturn_graph::*;

/// A chain of random operations with residual branches, at most `candidates` of its values refreshable; perhaps with a cache.
fn random_graph(random: &mut Random, length: usize, candidates: usize, cached: bool) -> Graph {
    // A cache fills the slots.
    let (slots, hidden) = if cached { (16, 16) } else { (256, 64) };
    let mut graph = Graph::new(slots).unwrap();
    let mut stream = vec![graph.input("x", Layout::periodic(16)).unwrap()];
    let cache = cached.then(|| graph.cache("c", "family", Layout::periodic(16)).unwrap());
    let function = |degree| {
        let polynomial = interpolate(f64::exp, -1.0, 1.0, degree).unwrap();
        Arc::new(NonLinear {
            function: Function::plain(FunctionKind::Exp),
            polynomial,
        })
    };
    let functions = [function(3), function(7), function(15)];
    for i in 0..length {
        let x = *stream.last().unwrap();
        let pick =
            |random: &mut Random, n: usize| ((random.number() + 1.0) / 2.0 * n as f64) as usize % n;
        let name = format!("node{i}");
        let next = match pick(random, if cached { 9 } else { 7 }) {
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
            5 => {
                let [a, b] = ["a", "b"].map(|gate| {
                    let function = &functions[pick(random, 3)];
                    (graph.polynomial(format!("{gate}{i}"), x, function)).unwrap()
                });
                graph.mul(name, a, b)
            }
            6 => {
                let up = random.matrix(&format!("up{i}"), 16, hidden, 1.0);
                let down = random.matrix(&format!("down{i}"), hidden, 16, 1.0);
                let spaced = graph.product_spaced(format!("up{i}"), x, &up, 0).unwrap();
                let masked = graph.mul_plain(format!("mask{i}"), spaced, 1.0).unwrap();
                let repeated = graph.repeat(format!("repeat{i}"), masked).unwrap();
                graph.product_periodic(name, repeated, &down)
            }
            7 => graph.mul(name, x, cache.unwrap()),
            _ => {
                let appended = graph
                    .append(format!("append{i}"), "family", x, None)
                    .unwrap();
                let earlier = stream[pick(random, stream.len())];
                graph.mul(name, earlier, appended)
            }
        };
        stream.push(next.unwrap());
    }
    graph.output("y", *stream.last().unwrap());
    // The stream and gates first, so that a way exists; then others while there is room.
    let names: Vec<String> = graph
        .nodes()
        .iter()
        .filter(|node| !node.inputs.is_empty() && node.op.cache_family().is_none())
        .map(|node| node.name.clone())
        .collect();
    let (stream, others): (Vec<_>, Vec<_>) = names.iter().partition(|name| {
        ["node", "a", "b"]
            .iter()
            .any(|first| name.starts_with(first))
    });
    graph.set_bounds(
        stream
            .into_iter()
            .chain(others)
            .take(candidates)
            .map(|name| (name.as_str(), 1.0)),
    );
    graph
}

/// Calls `visit` with every choice on these candidates: each refreshed or not, kept at every level, alone or with any other.
fn every_choice(problem: &Problem<'_>, candidates: &[usize], visit: &mut impl FnMut(&Choice)) {
    fn keep(
        problem: &Problem<'_>,
        choice: &mut Choice,
        candidates: &[usize],
        visit: &mut impl FnMut(&Choice),
    ) {
        let Some((&node, others)) = candidates.split_first() else {
            let refreshed: Vec<usize> = (0..problem.len())
                .filter(|&node| choice.0[node].is_some())
                .collect();
            return pair(problem, choice, &refreshed, visit);
        };
        choice.0[node] = None;
        keep(problem, choice, others, visit);
        for keep_at in 0..problem.max_level().0 {
            choice.0[node] = Some(Refreshed {
                keep: keep_at,
                partner: None,
            });
            keep(problem, choice, others, visit);
        }
        choice.0[node] = None;
    }
    fn pair(
        problem: &Problem<'_>,
        choice: &mut Choice,
        refreshed: &[usize],
        visit: &mut impl FnMut(&Choice),
    ) {
        let Some((&node, others)) = refreshed.split_first() else {
            return visit(choice);
        };
        if choice.0[node].is_some_and(|refreshed| refreshed.partner.is_some()) {
            return pair(problem, choice, others, visit);
        }
        pair(problem, choice, others, visit);
        for &partner in others {
            let free = choice.0[partner].is_some_and(|refreshed| refreshed.partner.is_none());
            if !free || !problem.can_pair(node, partner) {
                continue;
            }
            let mut set = |a: usize, b: Option<usize>| {
                if let Some(refreshed) = &mut choice.0[a] {
                    refreshed.partner = b;
                }
            };
            set(node, Some(partner));
            set(partner, Some(node));
            pair(problem, choice, others, visit);
            let mut set = |a: usize| {
                if let Some(refreshed) = &mut choice.0[a] {
                    refreshed.partner = None;
                }
            };
            set(node);
            set(partner);
        }
    }
    keep(problem, &mut Choice::none(problem), candidates, visit);
}

#[test]
fn optimal_is_what_exhaustive_search_finds() {
    let mut random = Random::new(31);
    let (mut placed, mut kept, mut paired) = (0, 0, 0);
    for round in 0..240 {
        let graph = random_graph(&mut random, 4, 5, round % 3 == 2);
        let mut table = CostTable::reference(graph.slots(), Level(5 + round % 2));
        cheap_refreshes(&mut table, round);
        let problem = Problem::new(&graph, &table).unwrap();
        let mut best = f64::INFINITY;
        every_choice(&problem, &problem.candidates(), &mut |choice| {
            best = best.min(problem.cost(choice));
        });
        let choice = Optimal::default().place(&problem);
        let cost = problem.cost(&choice);
        if best.is_infinite() {
            assert!(cost.is_infinite());
            continue;
        }
        assert!(
            (cost - best).abs() <= best * 1e-9,
            "round {round}: {cost} is not {best}"
        );
        assert!(problem.cost(&WhenNothingIsLeft.place(&problem)) >= best * (1.0 - 1e-9));
        let plan = problem.plan(&choice).unwrap();
        for refreshed in choice.0.iter().flatten() {
            placed += 1;
            paired += usize::from(refreshed.partner.is_some());
        }
        kept += (graph.nodes().iter().enumerate())
            .filter(|(i, node)| {
                let level_out = plan.node(&node.name).unwrap().level_out;
                choice.0[*i].is_some()
                    && graph.consumers()[*i].iter().any(|user| {
                        plan.node(&graph.node(*user).name).unwrap().level_in <= level_out
                    })
            })
            .count();
    }
    // The rounds tried what they are for.
    assert!(
        placed > 200 && kept > 20 && paired > 20,
        "{placed}, {kept}, {paired}"
    );
}

/// Makes refreshes so cheap against operations that many are worth their price, on every third table pairs almost free.
fn cheap_refreshes(table: &mut CostTable, round: u32) {
    let factor = [1.0, 0.2, 0.05][round as usize / 2 % 3];
    for cost in &mut table.bootstraps {
        cost.target_ms.iter_mut().for_each(|ms| *ms *= factor);
        for (pair, alone) in cost.pair_ms.iter_mut().flatten().zip(&cost.target_ms) {
            *pair = alone * [1.1, 1.6, 1.9][round as usize / 6 % 3];
        }
    }
}

/// With more candidates than all choices can be tried for: at least as good as every choice of values that are refreshed for
/// all users.
#[test]
fn optimal_beats_every_plain_choice() {
    let mut random = Random::new(32);
    let mut possible = 0;
    for round in 0..12 {
        let graph = random_graph(&mut random, 14, 13, round % 2 == 1);
        let table = CostTable::reference(graph.slots(), Level(6 + round % 4));
        let problem = Problem::new(&graph, &table).unwrap();
        let candidates = problem.candidates();
        let best = (0u32..1 << candidates.len())
            .map(|flags| {
                let mut choice = Choice::none(&problem);
                (candidates.iter().enumerate())
                    .filter(|(bit, _)| flags >> bit & 1 == 1)
                    .for_each(|(_, &node)| choice.refresh(node));
                problem.cost(&choice)
            })
            .fold(f64::INFINITY, f64::min);
        possible += usize::from(best.is_finite());
        let found = problem.cost(&Optimal::default().place(&problem));
        assert!(
            found <= best * (1.0 + 1e-9),
            "round {round}: {found} > {best}"
        );
    }
    assert!(possible > 6);
}

/// The same graph under other names.
fn renamed(graph: &Graph, name: impl Fn(&str) -> String) -> Graph {
    let mut other = Graph::new(graph.slots()).unwrap();
    for node in graph.nodes() {
        let id = (other.add_node(name(&node.name), node.op.clone(), &node.inputs)).unwrap();
        if let Some(bound) = node.bound {
            other.set_bound(id, bound);
        }
    }
    for (output, id) in graph.outputs() {
        other.output(output.clone(), *id);
    }
    other
}

/// Equal blocks, found by their names, are solved once; that must not change what comes out.
#[test]
fn blocks_solved_once_are_solved_as_well() {
    for sizes in [SMALL, GPT2_SMALL] {
        let model = Model::new(common::block::Sizes { layers: 6, ..sizes });
        let graph = model.without_garbage();
        // One block of everything; no blocks at all.
        let others = [
            renamed(&graph, |name| format!("all.{name}")),
            renamed(&graph, |name| name.replace('.', "_")),
        ];
        let table = CostTable::reference(graph.slots(), Level(13));
        let placement = Optimal { states: 300 };
        let plans: Vec<Plan> = [&graph, &others[0], &others[1]]
            .into_iter()
            .map(|graph| plan(graph, &table, &placement).unwrap())
            .collect();
        assert!(plans[0].bootstraps > 12);
        for other in &plans[1..] {
            let (a, b) = (plans[0].microseconds as f64, other.microseconds as f64);
            assert!((a - b).abs() <= 1e-6 * a, "{a} {b}");
        }
    }
}

/// On a chain of layers a shortest path over its borders is the best plain choice of them.
#[test]
fn orion_is_exact_on_chains() {
    let mut random = Random::new(33);
    let polynomial = |degree| {
        let polynomial = interpolate(f64::exp, -1.0, 1.0, degree).unwrap();
        let function = Function::plain(FunctionKind::Exp);
        Arc::new(NonLinear {
            function,
            polynomial,
        })
    };
    for round in 0..8 {
        let mut graph = Graph::new(64).unwrap();
        let mut x = graph.input("x", Layout::periodic(16)).unwrap();
        for i in 0..6 {
            let up = random.matrix(&format!("up{i}"), 16, 64, 1.0);
            let spaced = graph.product_spaced(format!("up{i}"), x, &up, 0).unwrap();
            let value = (graph.polynomial(
                format!("value{i}"),
                spaced,
                &polynomial([3, 7][(round + i) % 2]),
            ))
            .unwrap();
            let down = random.matrix(&format!("down{i}"), 64, 16, 1.0);
            x = graph
                .product_periodic(format!("down{i}"), value, &down)
                .unwrap();
            graph.set_bound(value, 1.0);
            if i < 5 {
                graph.set_bound(x, 1.0);
            }
        }
        graph.output("y", x);
        let table = CostTable::reference(64, Level(6 + round as u32 % 3));
        let problem = Problem::new(&graph, &table).unwrap();
        let candidates = problem.candidates();
        let best = (0u32..1 << candidates.len())
            .map(|flags| {
                let mut choice = Choice::none(&problem);
                (candidates.iter().enumerate())
                    .filter(|(bit, _)| flags >> bit & 1 == 1)
                    .for_each(|(_, &node)| choice.refresh(node));
                problem.cost(&choice)
            })
            .fold(f64::INFINITY, f64::min);
        let found = problem.cost(&Orion.place(&problem));
        assert!((found - best).abs() < 1e-9 * best, "{found} {best}");
        // Cachemir's rules leave some paths out, but never all of them.
        let pruned = problem.cost(&Cachemir.place(&problem));
        assert!(pruned.is_finite() && pruned >= best * (1.0 - 1e-9));
    }
}

#[test]
fn optimal_is_not_worse_than_the_others() {
    for (sizes, max) in [(SMALL, 9), (SMALL, 13), (GPT2_SMALL, 13)] {
        let sizes = if sizes.layers > 2 {
            common::block::Sizes { layers: 3, ..sizes }
        } else {
            sizes
        };
        let model = Model::new(sizes);
        optimal_against_others(&model.full(), max);
        optimal_against_others(&model.without_garbage(), max);
        let rounds = Model::with_rounds(sizes, 3, sizes.geometry().capacity());
        optimal_against_others(&rounds.without_garbage(), max);
    }
}

fn optimal_against_others(graph: &Graph, max: u32) {
    let table = CostTable::reference(graph.slots(), Level(max));
    let found = plan(graph, &table, &Optimal::default()).unwrap();
    let others: [&dyn Placement; 3] = [&WhenNothingIsLeft, &Orion, &Cachemir];
    for (i, other) in others.into_iter().enumerate() {
        match plan(graph, &table, other) {
            Ok(other) => assert!(found.microseconds <= other.microseconds),
            // Orion and Cachemir may find a layer too deep.
            Err(error) => assert!(i > 0 && matches!(error, PlanError::TooDeep { .. })),
        }
    }
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
        if let Some(bootstrap) = &node.bootstrap {
            let cost = table.bootstrap(graph.node(id).layout.period()).unwrap();
            assert!(node.level_out >= Level(cost.slots_to_coeffs_levels));
            assert_eq!(bootstrap.slots, 1 << cost.log_slots);
        }
    }
}
