//! The machine of ciphertexts against the slot simulator: every operation, and whole blocks with caches and bootstraps.

mod common;

use common::block::{Model, Sizes};
use common::client::Client;
use common::{MAX_LEVEL, Random, embedding, exact, full_bounds, keep_caches, run_slots, worst};
use std::collections::HashMap;
use taciturn_approx::interpolate;
use taciturn_graph::*;

const PARAMS: &str = "insecure-n11";
const SLOTS: usize = 1024;
/// Worst slot of one operation on values up to 1 at scale 2^40 in a ring of degree 2^11: fresh noise and one rescale or key
/// switch stay below 2^-25.
const OPERATION: f64 = 3e-8;
/// Worst slot of a bootstrap, relative to the bound.
const BOOTSTRAP: f64 = 2e-5;
/// Worst entry of a block's result, which passes a score of bootstraps and Newton steps.
const BLOCK: f64 = 1e-4;

const ROTATIONS: [i64; 9] = [1, 2, 3, 4, 8, 12, 16, -5, 512];
const TOP: Level = Level(8);
const REFRESHED: usize = 64;
const TARGET: Level = Level(7);

/// A plan that asks for the keys of [`operations`].
fn plan_for_operations() -> Plan {
    let refresh = |partner: Option<&str>| NodePlan {
        level_in: TOP,
        level_out: TOP,
        bootstrap: Some(BootstrapPlan {
            slots: REFRESHED,
            target: TARGET,
            partner: partner.map(str::to_owned),
        }),
        microseconds: 0,
    };
    Plan {
        max_level: TOP,
        bootstraps: 2,
        rotations: ROTATIONS.into_iter().map(|steps| (steps, TOP)).collect(),
        relinearization: Some(TOP),
        conjugation: Some(TOP),
        nodes: [
            ("refresh", None),
            ("first", Some("second")),
            ("second", Some("first")),
        ]
        .map(|(name, partner)| (name.to_owned(), refresh(partner)))
        .into(),
        ..Plan::empty(SLOTS)
    }
}

/// Every operation of a machine, on `a`, `b` with their own values in every slot and `p` of a short period.
fn operations<M: Machine>(
    machine: &mut M,
    (a, b, p): (&M::Value, &M::Value, &M::Value),
) -> Result<Vec<(&'static str, M::Value)>, M::Error> {
    let plain = |seed: u64, period: usize| {
        let values = Random::new(seed).vector(period);
        Plain::new(PlainId::of(("operand", seed, period)), period, move |out| {
            out.copy_from_slice(&values)
        })
    };
    let diagonals = |count: usize| {
        let id = PlainId::of(("diagonals", count));
        Diagonals::new(id, 4, count, SLOTS, |m, out| {
            out.copy_from_slice(&Random::new(100 + m as u64).vector(SLOTS))
        })
    };
    let polynomial = |low: f64, high: f64, degree: usize| {
        interpolate(|x| (0.7 * x).sin() - 0.2 * x, low, high, degree).unwrap()
    };
    let mut out = vec![
        ("add", machine.add(a, b)?),
        ("sub", machine.sub(a, b)?),
        ("add plain", machine.add_plain(a, &plain(1, SLOTS))?),
        ("add short plain", machine.add_plain(a, &plain(2, 16))?),
        ("add constant", machine.add_plain(a, &Plain::constant(0.3))?),
        ("mul plain", machine.mul_plain(a, &plain(3, SLOTS))?),
        ("mul short plain", machine.mul_plain(a, &plain(4, 16))?),
        ("mul constant", machine.mul_constant(a, -0.7)?),
        ("mul", machine.mul(a, b)?),
        ("square", machine.square(a)?),
        ("dot", machine.dot(&[(a, b), (b, b), (p, a)])?),
        (
            "dot plain",
            machine.dot_plain(&[(a, plain(5, SLOTS)), (b, plain(6, 32))])?,
        ),
        (
            "linear transform",
            machine.linear_transform(a, &diagonals(4))?,
        ),
        (
            "packed linear transform",
            machine.linear_transform(a, &diagonals(8).packed())?,
        ),
        (
            "packed pair",
            machine.linear_transform(a, &diagonals(2).packed())?,
        ),
        (
            "polynomial",
            machine.polynomial(a, &polynomial(-1.0, 1.0, 15))?,
        ),
        (
            "polynomial on an interval",
            machine.polynomial(a, &polynomial(-1.5, 3.0, 31))?,
        ),
        ("drop", machine.drop_to(a, Level(1))?),
    ];
    let turned = machine.rotate(p, 1)?;
    let [first, second] = machine.bootstrap_pair([p, &turned], REFRESHED, 1.0, TARGET)?;
    out.extend([
        ("bootstrap of a first", first),
        ("bootstrap of a second", second),
    ]);
    for (name, steps) in [("rotate", 3), ("rotate right", -5), ("rotate half", 512)] {
        out.push((name, machine.rotate(a, steps)?));
    }
    for (name, value) in ["first of many", "second of many"]
        .into_iter()
        .zip(machine.rotate_many(a, &[2, 512])?)
    {
        out.push((name, value));
    }
    out.push(("bootstrap", machine.bootstrap(p, REFRESHED, 4.0, TARGET)?));
    Ok(out)
}

#[test]
fn every_operation_does_what_the_simulator_does() {
    let mut client = Client::new(PARAMS);
    let mut machine = client.machine(&plan_for_operations());
    let mut simulator = exact(SLOTS);
    assert_eq!((machine.slots(), simulator.slots()), (SLOTS, SLOTS));
    let mut random = Random::new(41);
    let (a, b) = (random.vector(SLOTS), random.vector(SLOTS));
    let p: Vec<f64> = random.vector(REFRESHED);
    let values = [&a, &b, &p].map(|v| client.encrypt(v, TOP));
    let encrypted = operations(&mut machine, (&values[0], &values[1], &values[2])).unwrap();
    let values = [&a, &b, &p].map(|v| simulator.encrypt(v, TOP));
    let simulated = operations(&mut simulator, (&values[0], &values[1], &values[2])).unwrap();
    assert_eq!(machine.bootstraps(), 2);
    for ((name, have), (_, want)) in encrypted.iter().zip(&simulated) {
        assert_eq!(machine.level(have), simulator.level(want), "{name}");
        let error = worst(&client.decrypt(have), want.as_slice());
        let tolerance = match *name {
            name if name.starts_with("bootstrap") => BOOTSTRAP,
            _ => OPERATION,
        };

        assert!(error < tolerance, "{name}: {error:.1e}");
    }
}

/// With many giant steps the baby steps are multiplied without special limbs.
#[test]
fn maps_of_many_diagonals_agree_with_the_simulator() {
    let map = Diagonals::new(PlainId::of("many"), 2, 512, SLOTS, |m, out| {
        let row = Random::new(m as u64).vector(SLOTS);
        out.iter_mut().zip(row).for_each(|(out, x)| *out = x / 16.0);
    });
    let low = Level(2);
    for map in [map.clone(), map.packed()] {
        let steps = [map.baby_rotations(), map.giant_rotations()].concat();
        let plan = Plan {
            max_level: low,
            rotations: (steps.into_iter().chain(map.turn()))
                .map(|steps| (steps, low))
                .collect(),
            conjugation: Some(low),
            ..Plan::empty(SLOTS)
        };
        let x = Random::new(8).vector(SLOTS);
        let mut simulator = exact(SLOTS);
        let slots = simulator.encrypt(&x, low);
        let want = simulator.linear_transform(&slots, &map).unwrap();
        let mut client = Client::new(PARAMS);
        let mut machine = client.machine(&plan);
        let encrypted = client.encrypt(&x, low);
        let have = machine.linear_transform(&encrypted, &map).unwrap();
        let error = worst(&client.decrypt(&have), want.as_slice());
        assert!(error < OPERATION, "{map:?}: {error:.1e}");
    }
}

/// Whatever is kept of the weights, and however much is encoded at once, the product is the same.
#[test]
fn weights_are_kept_or_encoded_when_used() {
    let maps: Vec<Diagonals> = (0..3)
        .map(|name| {
            let map = Diagonals::new(PlainId::of(("map", name)), 2, 8, SLOTS, move |m, out| {
                out.copy_from_slice(&Random::new(1000 * name + m as u64).vector(SLOTS))
            });
            if name == 1 { map.packed() } else { map }
        })
        .collect();
    let plan = Plan {
        max_level: TOP,
        rotations: [2, 4, 6, 8].into_iter().map(|steps| (steps, TOP)).collect(),
        conjugation: Some(TOP),
        ..Plan::empty(SLOTS)
    };
    let x = Random::new(7).vector(SLOTS);
    let mut simulator = exact(SLOTS);
    let slots = simulator.encrypt(&x, TOP);
    let want: Vec<Slots> = (maps.iter())
        .map(|map| simulator.linear_transform(&slots, map).unwrap())
        .collect();
    let mut client = Client::new(PARAMS);
    let giant = maps[0].bytes() / maps[0].giant_steps();
    for (kept, at_once) in [
        (u64::MAX, 0),
        (0, 0),
        (0, giant),
        (0, usize::MAX),
        (100_000, giant),
    ] {
        let mut machine = client.machine(&plan);
        machine.limit_weights(kept, at_once);
        let encrypted = client.encrypt(&x, TOP);
        for _ in 0..2 {
            for (map, want) in maps.iter().zip(&want) {
                let have = machine.linear_transform(&encrypted, map).unwrap();
                let error = worst(&client.decrypt(&have), want.as_slice());
                assert!(error < OPERATION, "{kept} {at_once} {map:?}: {error:.1e}");
            }
        }
    }
}

#[test]
fn a_public_value_hides_nothing_and_computes_alike() {
    let mut client = Client::new(PARAMS);
    let machine = client.machine(&plan_for_operations());
    let values = Random::new(42).vector(32);
    let period = values.clone();
    let plain = Plain::new(PlainId::of("public"), 32, move |out| {
        out.copy_from_slice(&period)
    });
    let trivial = machine.trivial(&plain, TARGET).unwrap();
    assert_eq!(machine.level(&trivial), TARGET);
    let slots: Vec<f64> = values.iter().copied().cycle().take(SLOTS).collect();
    assert!(worst(&client.decrypt(&trivial), &slots) < OPERATION);
}

/// Too few levels, unequal levels and missing keys are errors.
#[test]
fn what_cannot_be_computed_is_refused() {
    let mut client = Client::new(PARAMS);
    let mut machine = client.machine(&plan_for_operations());
    let x = client.encrypt(&[0.5], Level(0));
    let y = client.encrypt(&[0.5], Level(2));
    let long = interpolate(f64::sin, -1.0, 1.0, 31).unwrap();
    assert!(machine.square(&x).is_err());
    assert!(machine.mul_constant(&x, 2.0).is_err());
    assert!(machine.mul_plain(&x, &Plain::constant(2.0)).is_err());
    assert!(machine.add(&x, &y).is_err());
    assert!(machine.mul(&x, &y).is_err());
    assert!(machine.drop_to(&x, Level(2)).is_err());
    assert!(machine.polynomial(&y, &long).is_err());
    assert!(machine.rotate(&y, 501).is_err());
    assert!(machine.dot_plain(&[]).is_err());
    assert!(machine.bootstrap(&x, REFRESHED, 1.0, TARGET).is_err());
}

const TOKENS: usize = 3;
const BLOCKS: Sizes = Sizes {
    slots: SLOTS,
    layers: 1,
    width: 12,
    heads: 3,
    queries: 1,
    channels: 4,
    groups: 2,
};

#[test]
fn gpt2_blocks_agree_with_the_simulator() {
    blocks_agree(&Model::new(BLOCKS), 1);
}

/// With rounds of normalise-and-square in the softmax.
#[test]
fn blocks_with_rounds_agree_with_the_simulator() {
    blocks_agree(&Model::with_rounds(BLOCKS, 2, TOKENS), 2);
}

fn blocks_agree(model: &Model, seed: u64) {
    let bounds = full_bounds(model, TOKENS);
    let bounded = |position: usize| {
        let mut graph = model.graph(position);
        graph.set_bounds(bounds.iter().map(|(name, bound)| (name.as_str(), *bound)));
        graph
    };
    let mut table = CostTable::reference(SLOTS, MAX_LEVEL);
    for bootstrap in &mut table.bootstraps {
        bootstrap.slots_to_coeffs_levels = bootstrap_input_levels(bootstrap.log_slots);
        // Little more than one alone, but at the highest level, where a pair is two.
        let mut pair: Vec<f64> = bootstrap.target_ms.iter().map(|ms| 1.1 * ms).collect();
        *pair.last_mut().unwrap() *= 2.0;
        bootstrap.pair_ms = (1 << bootstrap.log_slots < SLOTS).then_some(pair);
    }
    let search = Optimal::default();
    let mut plan = plan(&bounded(TOKENS - 1), &table, &search).unwrap();
    for position in 0..TOKENS - 1 {
        plan = plan.cover(&bounded(position)).unwrap();
    }
    assert!(plan.bootstraps > 2);
    let refreshes = plan.nodes.values().filter_map(|n| n.bootstrap.as_ref());
    assert!(
        refreshes.into_iter().any(|b| b.partner.is_some()),
        "no pair"
    );

    let mut client = Client::new(PARAMS);
    let mut machine = client.machine(&plan);
    let mut simulator = exact(SLOTS);
    let mut random = Random::new(seed);
    let mut entries: HashMap<String, Vec<f64>> = HashMap::new();
    let mut caches = HashMap::new();
    for position in 0..TOKENS {
        let graph = bounded(position);
        let x = embedding(&mut random, &model.sizes);
        entries.insert("embedding".to_owned(), x.clone());
        let simulated = run_slots(&graph, &plan, &mut simulator, &entries);
        simulator.check().unwrap();
        keep_caches(&mut entries, &simulated);

        let level = plan.node("embedding").unwrap().level();
        caches.insert("embedding".to_owned(), client.encrypt(&x, level));
        let mut seen = 0;
        let encrypted = run(&graph, &plan, &mut machine, caches.clone(), &mut |_| {
            seen += 1
        });
        let encrypted = encrypted.unwrap();
        assert_eq!(seen, graph.nodes().len());
        for (name, id) in graph.outputs() {
            let layout = graph.node(*id).layout;
            let have = layout.compact(&client.decrypt(&encrypted[name]));
            let error = worst(&have, &simulated[name]);

            assert!(error < BLOCK, "token {position}, {name}: {error:.1e}");
        }
        caches.extend(
            encrypted
                .into_iter()
                .filter(|(name, _)| name.contains("cache")),
        );
    }
    assert_eq!(machine.bootstraps(), TOKENS * plan.bootstraps);
}
