//! Plans from outside: what fits runs, what does not is refused by name.

mod common;

use common::block::{Model, SMALL};
use common::{MAX_LEVEL, Random};
use std::collections::HashMap;
use taciturn_graph::*;

/// A model's graph and an optimal plan for it, with costs that make pairs worth while.
fn planned() -> (Graph, CostTable, Plan) {
    let model = Model::gated(SMALL);
    let graph = model.full();
    let mut table = CostTable::reference(graph.slots(), MAX_LEVEL);
    for cost in &mut table.bootstraps {
        cost.pair_ms = Some(cost.target_ms.iter().map(|ms| 1.01 * ms).collect());
    }
    let plan = plan(&graph, &table, &Optimal::default()).unwrap();
    (graph, table, plan)
}

/// Runs the plan on the counting machine.
fn count(graph: &Graph, table: &CostTable, plan: &Plan) -> Result<usize, String> {
    let mut counter = Counter::new(graph.slots(), table);
    let inputs: HashMap<_, _> = graph
        .inputs()
        .map(|(name, _)| (name.to_owned(), plan.node(name).unwrap().level()))
        .collect();
    run(graph, plan, &mut counter, inputs, &mut |_| ()).map_err(|error| error.to_string())?;
    Ok(counter.counts().bootstraps)
}

#[test]
fn a_plan_fits_its_graph_and_runs_as_it_says() {
    let (graph, table, plan) = planned();
    let plan = plan.made_for("insecure", 12);
    plan.check(&graph, MAX_LEVEL).unwrap();
    assert_eq!(Plan::from_json(&plan.to_json()).unwrap(), plan);
    assert_eq!((plan.parameters.as_str(), plan.context), ("insecure", 12));
    let refreshes = || {
        plan.nodes
            .values()
            .filter_map(|node| node.bootstrap.as_ref())
    };
    let pairs = refreshes()
        .filter(|refresh| refresh.partner.is_some())
        .count()
        / 2;
    assert!(pairs > 0, "no pair was tried");
    assert_eq!(refreshes().count() - pairs, plan.bootstraps);
    assert_eq!(count(&graph, &table, &plan), Ok(plan.bootstraps));
}

#[test]
fn what_does_not_fit_is_named() {
    let (graph, _, plan) = planned();
    type Spoil = fn(&mut Plan);
    let spoils: [(&str, Spoil); 16] = [
        ("number of slots", |plan| plan.slots *= 2),
        ("not in the plan", |plan| {
            drop(plan.nodes.remove("embedding"))
        }),
        ("stranger", |plan| {
            let node = plan.nodes["embedding"].clone();
            plan.nodes.insert("stranger".into(), node);
        }),
        ("model", |plan| plan.model = "0".repeat(64)),
        ("embedding", |plan| {
            node(plan, "embedding").level_in = Level(99)
        }),
        ("embedding", |plan| {
            let embedding = node(plan, "embedding");
            (embedding.level_in, embedding.level_out) = (Level(0), Level(0));
        }),
        ("levels from inputs to result", |plan| {
            node(plan, "layer0.norm1.squares").level_out = Level(0);
        }),
        ("its range is not known", |plan| {
            let refresh = bootstrap(plan).clone();
            node(plan, "embedding").bootstrap = Some(refresh);
        }),
        ("a power of two", |plan| bootstrap(plan).slots = 3),
        ("a power of two", |plan| bootstrap(plan).slots = 0),
        ("a power of two", |plan| bootstrap(plan).slots = 1 << 20),
        ("at most", |plan| bootstrap(plan).target = Level(u32::MAX)),
        ("that is not", |plan| {
            bootstrap(plan).partner = Some("embedding".into())
        }),
        ("number of bootstraps", |plan| plan.bootstraps += 1),
        ("highest level", |plan| plan.max_level = Level(u32::MAX)),
        ("list of keys", |plan| {
            plan.rotations.pop_last();
        }),
    ];
    for (expected, spoil) in spoils {
        let mut spoiled = plan.clone();
        spoil(&mut spoiled);
        let message = spoiled.check(&graph, MAX_LEVEL).unwrap_err().to_string();
        assert!(message.contains(expected), "no `{expected}` in: {message}");
    }
    for (expected, text) in [
        (
            "version 7, expected 1",
            plan.to_json().replacen(": 1", ": 7", 1),
        ),
        ("cannot be read", "[]".to_owned()),
        ("cannot be read", "{\"version\": 1}".to_owned()),
        ("cannot be read", plan.to_json()[..500].to_owned()),
        (
            "hash",
            plan.to_json()
                .replacen("\"context\": 0", "\"context\": 1", 1),
        ),
    ] {
        let message = Plan::from_json(&text).unwrap_err().to_string();
        assert!(message.contains(expected), "no `{expected}` in: {message}");
    }
}

/// Whatever is changed in a plan, it is refused or it runs.
#[test]
fn changed_plans_are_refused_or_run() {
    let (graph, table, plan) = planned();
    let names: Vec<&String> = plan.nodes.keys().collect();
    let mut random = Random::new(41);
    let (mut refused, mut ran) = (0, 0);
    for _ in 0..2000 {
        let mut pick = |n: usize| ((random.number() + 1.0) / 2.0 * n as f64) as usize % n;
        let mut changed = plan.clone();
        let (name, other) = (names[pick(names.len())], names[pick(names.len())]);
        let level = Level(pick(MAX_LEVEL.index() + 3) as u32);
        let node = node(&mut changed, name);
        match pick(6) {
            0 => node.level_in = level,
            1 => (node.level_in, node.level_out) = (level, Level(level.0.saturating_sub(1))),
            2 => (node.level_in, node.level_out) = (level, level),
            3 => node.bootstrap = None,
            4 => {
                node.bootstrap = Some(BootstrapPlan {
                    slots: 1 << pick(10),
                    target: level,
                    partner: None,
                });
            }
            _ => {
                if let Some(bootstrap) = &mut node.bootstrap {
                    bootstrap.partner = Some(other.clone());
                }
            }
        }
        // What follows from the nodes is brought in order, so that the nodes themselves are looked at.
        let alone = |node: &NodePlan| {
            node.bootstrap
                .as_ref()
                .map(|bootstrap| match bootstrap.partner {
                    None => 2,
                    Some(_) => 1,
                })
        };
        changed.bootstraps = changed.nodes.values().filter_map(alone).sum::<usize>() / 2;
        changed.max_level = (changed.nodes.values().map(NodePlan::level).max()).unwrap();
        if let Ok(covered) = changed.clone().cover(&graph) {
            changed = covered;
        }
        match changed.check(&graph, MAX_LEVEL) {
            Err(_) => refused += 1,
            Ok(()) => {
                assert_eq!(
                    count(&graph, &table, &changed),
                    Ok(changed.bootstraps),
                    "{name}"
                );
                ran += 1;
            }
        }
    }
    assert!(refused > 200 && ran > 200, "{refused} {ran}");
}

fn node<'p>(plan: &'p mut Plan, name: &str) -> &'p mut NodePlan {
    plan.nodes.get_mut(name).unwrap()
}

/// The first refresh of a plan.
fn bootstrap(plan: &mut Plan) -> &mut BootstrapPlan {
    (plan.nodes.values_mut())
        .find_map(|node| node.bootstrap.as_mut())
        .unwrap()
}
