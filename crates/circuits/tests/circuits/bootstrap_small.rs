//! Bootstrapping on a small ring, at every shape.

use crate::fixture::{client, encrypt, precision, uniform};
use taciturn_circuits::{BootstrapShape, Bootstrapper, MESSAGE_RATIO_BITS, slots_to_coeffs_levels};
use taciturn_ckks::{Complex64, KeyRequest, Level};

#[test]
fn refreshes_every_shape() {
    let mut client = client("insecure-n11");
    let full = client.params().log_slots();
    for (log_slots, bound, is_complex, target) in [
        (0, 1.0, false, 3),
        (4, 1.0, false, 14),
        (4, 1.0, true, 5),
        (7, 20.0, false, 9),
        (full, 1.0, true, 13),
    ] {
        let shape = BootstrapShape {
            log_slots,
            bound,
            complex: is_complex,
            message_ratio_bits: MESSAGE_RATIO_BITS,
        };
        let bootstrapper = Bootstrapper::new(client.encoder(), shape).unwrap();
        let mut request = KeyRequest::default();
        bootstrapper.request_keys(Level(target), &mut request);
        let ev = client.evaluator(&request).unwrap();
        let d = 1 << log_slots;
        let imaginary = uniform(8, d)
            .into_iter()
            .map(|v| if is_complex { v * bound } else { 0.0 });
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
        let (worst, mean) = precision(&client.decrypt(&out, d).unwrap(), &values);
        let bits = (worst + bound.log2(), mean + bound.log2());
        eprintln!(
            "2^{log_slots} slots, bound {bound}: {:.1} / {:.1} bits",
            bits.0, bits.1
        );
        assert!(bits.0 > 15.0 && bits.1 > 18.0, "{shape:?}: {bits:?}");
    }
}

/// The sine differs from its best line by a cube: each bit of the message ratio takes two off the error, down to the noise.
#[test]
fn the_message_ratio_sets_the_error_of_the_sine() {
    let mut client = client("insecure-n11");
    let mut worst_bits = |message_ratio_bits| {
        let shape = BootstrapShape {
            log_slots: 4,
            bound: 1.0,
            complex: false,
            message_ratio_bits,
        };
        let bootstrapper = Bootstrapper::new(client.encoder(), shape).ok()?;
        let mut request = KeyRequest::default();
        bootstrapper.request_keys(Level(3), &mut request);
        let ev = client.evaluator(&request).unwrap();
        // At the bound the line is furthest from the sine.
        let values = vec![Complex64::ONE; 16];
        let level = Level(slots_to_coeffs_levels(4));
        let ct = encrypt(&mut client, &values, level);
        let out = bootstrapper.bootstrap(client.encoder(), &ev, &ct, Level(3));
        let out = client.decrypt(&out.unwrap(), 16).unwrap();
        Some(precision(&out, &values).0)
    };
    let (seven, nine) = (worst_bits(7).unwrap(), worst_bits(9).unwrap());
    assert!((3.0..5.0).contains(&(nine - seven)), "{seven} {nine} bits");
    assert!(worst_bits(5).is_none() && worst_bits(21).is_none());
}
