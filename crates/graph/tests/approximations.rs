//! Every approximation as operations: on slots and on ciphertexts against its own values, and its cost.

mod common;

use common::client::Client;
use common::exact;
use taciturn_approx::{Approximation, Gate, Target, catalogue};
use taciturn_graph::*;

const TARGETS: [(Target, f64, f64); 9] = [
    (Target::Inverse, 1.0 / 128.0, 1.0),
    (Target::Inverse, 2e-3, 3.0),
    (Target::InverseSqrt, 0.04, 1.0),
    (Target::InverseSqrt, 0.9, 400.0),
    (Target::Exp, -16.0, 0.0),
    (Target::Activation(Gate::NormalByTanh), -10.0, 9.0),
    (Target::Activation(Gate::Logistic), -4.0, 7.0),
    (Target::Sign, -1.0, 1.0),
    (Target::Max, -1.0, 1.0),
];

/// All of them with a name for messages.
fn all() -> impl Iterator<Item = (String, Approximation)> {
    TARGETS.into_iter().flat_map(|(target, low, high)| {
        catalogue(target, low, high, 14.0)
            .into_iter()
            .map(move |entry| {
                let name = format!("{} of {} on [{low}, {high}]", entry.name, target.name());
                (name, entry.approximation.unwrap())
            })
    })
}

/// As many arguments as slots over [-1, 1].
fn arguments(slots: usize) -> Vec<f64> {
    (0..slots)
        .map(|k| 2.0 * k as f64 / (slots - 1) as f64 - 1.0)
        .collect()
}

/// The values at mapped arguments, and the largest.
fn values(approximation: &Approximation, u: &[f64]) -> (Vec<f64>, f64) {
    let (low, high) = approximation.interval();
    let at = |u: &f64| approximation.evaluate((high - low) / 2.0 * u + (high + low) / 2.0);
    let values: Vec<f64> = u.iter().map(at).collect();
    let largest = values
        .iter()
        .fold(0.0, |most: f64, value| most.max(value.abs()));
    (values, largest)
}

#[test]
fn slots_hold_the_approximations_values() {
    let u = arguments(512);
    for (name, approximation) in all() {
        let (want, largest) = values(&approximation, &u);
        let depth = approximation.depth();
        let mut simulator = exact(512);
        let input = simulator.encrypt(&u, Level(depth));
        let output = approximate(&mut simulator, &approximation, &input).unwrap();
        assert_eq!(simulator.level(&output), Level(0), "{name}");
        let error = common::worst(output.as_slice(), &want);
        assert!(error < 1e-9 * largest.max(1.0), "{name}: {error:.1e}");
        if depth > 0 {
            let short = simulator.encrypt(&u, Level(depth - 1));
            assert!(approximate(&mut simulator, &approximation, &short).is_err());
        }
    }
}

/// The counting machine takes the same levels and as many products.
#[test]
fn counted_costs_are_those_of_the_formulas() {
    let table = CostTable::reference(1 << 15, Level(40));
    for (name, approximation) in all() {
        let mut counter = Counter::new(1 << 15, &table);
        let level = Level(approximation.depth());
        let output = approximate(&mut counter, &approximation, &level).unwrap();
        assert_eq!(output, Level(0), "{name}");
        let got = counter.counts().products as u32;
        assert_eq!(got, approximation.products(), "{name}");
    }
}

#[test]
fn ciphertexts_hold_the_approximations_values() {
    let u = arguments(1024);
    let top = Level(13);
    let mut client = Client::new("insecure-n11");
    let mut machine = client.machine(&Plan {
        max_level: top,
        relinearization: Some(top),
        ..Plan::empty(1024)
    });
    let mut ran = 0;
    for (name, approximation) in all() {
        let depth = approximation.depth();
        if depth > top.0 {
            continue;
        }
        let (want, largest) = values(&approximation, &u);
        let input = client.encrypt(&u, Level(depth));
        let output = approximate(&mut machine, &approximation, &input).unwrap();
        assert_eq!(machine.level(&output), Level(0), "{name}");
        let error = common::worst(&client.decrypt(&output), &want);
        assert!(error < 1e-3 * largest.max(1.0), "{name}: {error:.1e}");
        ran += 1;
    }
    assert!(ran >= 12, "{ran}");
}
