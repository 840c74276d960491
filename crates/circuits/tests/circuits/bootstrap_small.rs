//! Bootstrapping on a small ring, at every shape.

use crate::fixture::{client, encrypt, precision, uniform};
use taciturn_circuits::{
    BootstrapShape, Bootstrapper, MESSAGE_RATIO_BITS, Values, slots_to_coeffs_levels,
};
use taciturn_ckks::{Complex64, KeyRequest, Level};

#[test]
fn refreshes_every_shape() {
    let mut client = client("insecure-n11");
    let full = client.params().log_slots();
    for (log_slots, bound, content, target) in [
        (0, 1.0, Values::Real, 3),
        (1, 1.0, Values::Real, 4),
        (2, 1.0, Values::Real, 16),
        (4, 1.0, Values::Real, 14),
        (0, 1.0, Values::Complex, 3),
        (4, 1.0, Values::Complex, 5),
        (7, 20.0, Values::Real, 9),
        (full, 1.0, Values::Real, 13),
        (full, 1.0, Values::Complex, 13),
    ] {
        let shape = BootstrapShape {
            log_slots,
            bound,
            values: content,
            message_ratio_bits: MESSAGE_RATIO_BITS,
        };
        let bootstrapper = Bootstrapper::new(client.encoder(), shape).unwrap();
        let mut request = KeyRequest::default();
        bootstrapper
            .request_keys(Level(target), &mut request)
            .unwrap();
        let ev = client.evaluator(&request).unwrap();
        let d = 1 << log_slots;
        let imaginary = uniform(8, d).into_iter().map(|v| {
            if content == Values::Complex {
                v * bound
            } else {
                0.0
            }
        });
        let values: Vec<_> = uniform(7, d)
            .into_iter()
            .zip(imaginary)
            .map(|(a, b)| Complex64::new(a * bound, b))
            .collect();
        let ct = encrypt(
            &mut client,
            &values,
            Level(slots_to_coeffs_levels(log_slots)),
        );
        let out = bootstrapper
            .bootstrap(client.encoder(), &ev, &ct, Level(target))
            .unwrap();
        assert_eq!(client.params().level_of(out.basis()), Some(Level(target)));
        let other = Bootstrapper::new(
            client.encoder(),
            BootstrapShape {
                bound: 0.5,
                ..shape
            },
        );
        let shared = other.unwrap().with_bound(client.encoder(), bound).unwrap();
        let again = shared
            .bootstrap(client.encoder(), &ev, &ct, Level(target))
            .unwrap();
        assert!(again.polys == out.polys && again.scale == out.scale);
        assert!(shared.with_bound(client.encoder(), 0.0).is_err());
        let (worst, mean) = precision(&client.decrypt(&out, d).unwrap(), &values);
        let bits = (worst + bound.log2(), mean + bound.log2());
        eprintln!(
            "2^{log_slots} slots, bound {bound}: {:.1} / {:.1} bits",
            bits.0, bits.1
        );
        assert!(bits.0 > 15.0 && bits.1 > 18.0, "{shape:?}: {bits:?}");
    }
}

/// A pair is refreshed as two single values are, at every size that leaves room for two.
#[test]
fn refreshes_pairs() {
    let mut client = client("insecure-n11");
    let full = client.params().log_slots();
    for (log_slots, bound, target) in [(0, 1.0, 3), (1, 1.0, 4), (5, 3.0, 15), (full - 1, 1.0, 9)] {
        let shape = BootstrapShape {
            log_slots,
            bound,
            values: Values::Pair,
            message_ratio_bits: MESSAGE_RATIO_BITS,
        };
        let bootstrapper = Bootstrapper::new(client.encoder(), shape).unwrap();
        let mut request = KeyRequest::default();
        let target = Level(target);
        bootstrapper.request_keys(target, &mut request).unwrap();
        let ev = client.evaluator(&request).unwrap();
        let level = slots_to_coeffs_levels(log_slots);
        // They may come at different levels.
        let pair = [(7, level), (8, level + 2)].map(|(seed, level)| {
            let values: Vec<_> = uniform(seed, 1 << log_slots)
                .into_iter()
                .map(|v| Complex64::new(v * bound, 0.0))
                .collect();
            let ct = encrypt(&mut client, &values, Level(level));
            (values, ct)
        });
        let inputs = [&pair[0].1, &pair[1].1];
        let out = bootstrapper
            .bootstrap_pair(client.encoder(), &ev, inputs, target)
            .unwrap();
        for (out, (values, _)) in out.iter().zip(&pair) {
            assert_eq!(client.params().level_of(out.basis()), Some(target));
            // In every block of the whole vector, not in the mean of all blocks.
            let slots = client.params().slots();
            let have = client.decrypt(out, slots).unwrap();
            let want: Vec<_> = values.iter().copied().cycle().take(slots).collect();
            let (worst, mean) = precision(&have, &want);
            let bits = (worst + bound.log2(), mean + bound.log2());
            assert!(bits.0 > 15.0 && bits.1 > 18.0, "{shape:?}: {bits:?}");
        }
        let alone = bootstrapper.bootstrap(client.encoder(), &ev, inputs[0], target);
        assert!(alone.is_err());
        let highest = client.params().max_level();
        let too_high = bootstrapper.bootstrap_pair(client.encoder(), &ev, inputs, highest);
        assert!(too_high.is_err() && bootstrapper.request_keys(highest, &mut request).is_err());
    }
    let too_large = BootstrapShape {
        log_slots: full,
        bound: 1.0,
        values: Values::Pair,
        message_ratio_bits: MESSAGE_RATIO_BITS,
    };
    assert!(Bootstrapper::new(client.encoder(), too_large).is_err());
}

/// The sine differs from its best line by a cube: each bit of the message ratio takes two off the error, down to the noise.
#[test]
fn the_message_ratio_sets_the_error_of_the_sine() {
    let mut client = client("insecure-n11");
    let mut worst_bits = |message_ratio_bits| {
        let shape = BootstrapShape {
            log_slots: 4,
            bound: 1.0,
            values: Values::Real,
            message_ratio_bits,
        };
        let bootstrapper = Bootstrapper::new(client.encoder(), shape).ok()?;
        let mut request = KeyRequest::default();
        bootstrapper.request_keys(Level(3), &mut request).unwrap();
        let ev = client.evaluator(&request).unwrap();
        // The line is furthest from the sine at the bound and at its half.
        let values = vec![Complex64::ONE; 16];
        let level = Level(slots_to_coeffs_levels(4));
        let ct = encrypt(&mut client, &values, level);
        let out = bootstrapper.bootstrap(client.encoder(), &ev, &ct, Level(3));
        let out = client.decrypt(&out.unwrap(), 16).unwrap();
        Some(precision(&out, &values).0)
    };
    let (seven, nine) = (worst_bits(7.0).unwrap(), worst_bits(9.0).unwrap());
    assert!((3.0..5.0).contains(&(nine - seven)), "{seven} {nine} bits");
    assert!(worst_bits(5.0).is_none() && worst_bits(21.0).is_none());
}
