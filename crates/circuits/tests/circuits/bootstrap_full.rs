//! Bootstrapping at the real, 128-bit parameters: all slots, and 1,024 of them.

use crate::fixture::{client, encrypt, precision, uniform};
use taciturn_circuits::{
    BootstrapShape, Bootstrapper, MESSAGE_RATIO_BITS, Values, slots_to_coeffs_levels,
};
use taciturn_ckks::{Complex64, KeyRequest, Level};

/// Bits of the worst and the mean error that are asked for: on uniform values, and (worst only) on a constant and on one-hot vectors. Secrets
/// are fresh, and the worst of 32,768 errors spreads: it has been seen from 14.9 to 15.7 bits, the mean within 0.05 of 20.0.
const UNIFORM: (f64, f64) = (14.5, 19.8);
const SPECIAL: f64 = 14.5;

#[test]
fn refreshes_all_slots_and_sparse_ones_at_128_bits() {
    let mut client = client("n16-128");
    assert_eq!(client.params().security_bits(), 128);
    // 11 levels beyond those that the next bootstrap takes.
    for (log_slots, target) in [(15, 14), (10, 13)] {
        let shape = BootstrapShape {
            log_slots,
            bound: 1.0,
            values: Values::Real,
            message_ratio_bits: MESSAGE_RATIO_BITS,
        };
        let bootstrapper = Bootstrapper::new(client.encoder(), shape).unwrap();
        let mut request = KeyRequest::default();
        bootstrapper
            .request_keys(Level(target), &mut request)
            .unwrap();
        let ev = client.evaluator(&request).unwrap();
        let d = 1usize << log_slots;
        let real = |values: Vec<f64>| {
            values
                .into_iter()
                .map(|v| Complex64::new(v, 0.0))
                .collect::<Vec<_>>()
        };
        let mut one_hot = vec![0.0; d];
        one_hot[d / 3] = 1.0;
        let inputs = [
            ("uniform", uniform(5, d)),
            ("constant", vec![0.9; d]),
            ("one-hot", one_hot),
        ];
        for (name, values) in inputs {
            let values = real(values);
            let ct = encrypt(
                &mut client,
                &values,
                Level(slots_to_coeffs_levels(log_slots)),
            );
            let out = bootstrapper
                .bootstrap(client.encoder(), &ev, &ct, Level(target))
                .unwrap();
            assert_eq!(client.params().level_of(out.basis()), Some(Level(target)));
            let (worst, mean) = precision(&client.decrypt(&out, d).unwrap(), &values);
            let good = if name == "uniform" {
                worst >= UNIFORM.0 && mean >= UNIFORM.1
            } else {
                worst >= SPECIAL
            };
            assert!(
                good,
                "2^{log_slots} slots, {name}: {worst:.1} worst, {mean:.1} mean bits"
            );
        }
    }
}

#[test]
fn refreshes_pairs_at_128_bits() {
    let mut client = client("n16-128");
    let (log_slots, target) = (10, Level(12));
    let shape = BootstrapShape {
        log_slots,
        bound: 1.0,
        values: Values::Pair,
        message_ratio_bits: MESSAGE_RATIO_BITS,
    };
    let bootstrapper = Bootstrapper::new(client.encoder(), shape).unwrap();
    let mut request = KeyRequest::default();
    bootstrapper.request_keys(target, &mut request).unwrap();
    let ev = client.evaluator(&request).unwrap();
    let level = Level(slots_to_coeffs_levels(log_slots));
    let pair = [5, 6].map(|seed| {
        let values = uniform(seed, 1 << log_slots).into_iter();
        let values: Vec<_> = values.map(|v| Complex64::new(v, 0.0)).collect();
        let ct = encrypt(&mut client, &values, level);
        (values, ct)
    });
    let inputs = [&pair[0].1, &pair[1].1];
    let out = bootstrapper.bootstrap_pair(client.encoder(), &ev, inputs, target);
    for (out, (values, _)) in out.unwrap().iter().zip(&pair) {
        assert_eq!(client.params().level_of(out.basis()), Some(target));
        let (worst, mean) = precision(&client.decrypt(out, values.len()).unwrap(), values);
        assert!(
            worst >= UNIFORM.0 && mean >= UNIFORM.1,
            "{worst:.1} worst, {mean:.1} mean bits"
        );
    }
}
