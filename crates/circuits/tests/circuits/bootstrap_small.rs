//! Bootstrapping on a small ring, at every shape.

use crate::fixture::{client, encrypt, precision, uniform};
use taciturn_circuits::{BootstrapShape, Bootstrapper, slots_to_coeffs_levels};
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
