//! Noise of ciphertexts against what simulations add.

mod common;

use common::Random;
use common::client::Client;
use taciturn_graph::*;

/// A rotation and a rescale by a constant, on independent values in all slots: the deviation of what comes out is the one stated.
#[test]
fn an_operation_is_as_noisy_as_stated() {
    let slots = 1024;
    let top = Level(4);
    let plan = Plan {
        max_level: top,
        bootstraps: 0,
        rotations: [(3, top)].into(),
        relinearization: None,
        ..Plan::empty(slots)
    };
    let mut client = Client::new("insecure-n11");
    let mut machine = client.machine(&plan);
    let ones = Plain::constant(1.0);
    let (mut squares, mut count) = (0.0, 0);
    for seed in 0..8 {
        let values = Random::new(seed).vector(slots);
        let input = client.encrypt(&values, top);
        let rotated = machine.rotate(&input, 3).unwrap();
        let product = machine.mul_plain(&rotated, &ones).unwrap();
        for (i, got) in client.decrypt(&product).into_iter().enumerate() {
            squares += (got - values[(i + 3) % slots]).powi(2);
            count += 1;
        }
    }
    let measured = (squares / f64::from(count)).sqrt();
    let stated = NoiseLevels::of_ciphertexts(2 * slots, 40.0).operation;
    let ratio = measured / stated;
    assert!(
        (0.8..1.25).contains(&ratio),
        "{measured:e} measured, {stated:e} stated"
    );
}
