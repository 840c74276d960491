//! Transforms and automorphisms.

use super::*;

#[test]
fn evaluations_are_where_the_slot_order_says() {
    for log_n in 4..=7 {
        for ring in rings(log_n, 6) {
            let a = Random(1).poly(&ring, ring.full_basis(), Form::Coefficient);
            let mut b = a.clone();
            ring.ntt(&mut b);
            for (i, modulus) in ring.moduli().iter().enumerate() {
                for k in 0..ring.n() {
                    let x = modulus.pow(ring.psi(i), ring.exponent(k));
                    let q = modulus.value();
                    let value = a
                        .limb(i)
                        .iter()
                        .rev()
                        .fold(0, |sum, &c| (mul(sum, x, q) + c) % q);
                    assert_eq!(
                        b.limb(i)[k],
                        value,
                        "{} 2^{log_n} limb {i} word {k}",
                        ring.backend_name()
                    );
                }
            }
        }
    }
}

#[test]
fn transforms_invert_each_other_and_agree() {
    for log_n in 4..=16 {
        let rings = rings(log_n, 6);
        let basis = rings[0].full_basis();
        for input in [
            Random(2).poly(&rings[0], basis, Form::Coefficient),
            all_largest(&rings[0], basis, Form::Coefficient),
        ] {
            let transformed = rings.iter().map(|ring| {
                let mut a = input.clone();
                ring.ntt(&mut a);
                let mut back = a.clone();
                ring.intt(&mut back);
                assert!(ring.intt_new(&a) == back, "{}", ring.backend_name());
                assert!(back == input, "{} 2^{log_n}", ring.backend_name());
                a
            });
            let transformed: Vec<Poly> = transformed.collect();
            assert!(
                transformed.iter().all(|a| *a == transformed[0]),
                "forward 2^{log_n}"
            );
        }
        // The other way round, from any evaluations.
        for input in [
            Random(3).poly(&rings[0], basis, Form::Evaluation),
            all_largest(&rings[0], basis, Form::Evaluation),
        ] {
            let back = rings.iter().map(|ring| {
                let mut a = input.clone();
                ring.intt(&mut a);
                a
            });
            let back: Vec<Poly> = back.collect();
            assert!(back.iter().all(|a| *a == back[0]), "inverse 2^{log_n}");
        }
    }
}

#[test]
fn products_are_negacyclic() {
    for log_n in 4..=8 {
        for ring in rings(log_n, 4) {
            let (n, basis) = (ring.n(), ring.full_basis());
            let a = Random(4).poly(&ring, basis, Form::Coefficient);
            let b = Random(5).poly(&ring, basis, Form::Coefficient);
            let (mut x, mut y) = (a.clone(), b.clone());
            ring.ntt(&mut x);
            ring.ntt(&mut y);
            let mut product = ring.mul_new(&x, &y);
            ring.intt(&mut product);
            for (i, modulus) in ring.moduli().iter().enumerate() {
                let mut expected = vec![0; n];
                for j in 0..n {
                    for k in 0..n {
                        let term = modulus.mul(a.limb(i)[j], b.limb(i)[k]);
                        let at = &mut expected[(j + k) % n];
                        *at = if j + k < n {
                            modulus.add(*at, term)
                        } else {
                            modulus.sub(*at, term)
                        };
                    }
                }
                assert_eq!(product.limb(i), expected);
            }
        }
    }
}

#[test]
fn automorphisms_commute_with_transforms_and_compose() {
    for log_n in [4, 5, 9, 13] {
        for ring in rings(log_n, 2) {
            let two_n = 2 * ring.n() as u64;
            let a = Random(6).poly(&ring, ring.full_basis(), Form::Coefficient);
            let mut a_eval = a.clone();
            ring.ntt(&mut a_eval);
            for galois in [1, 5, 25, 3, two_n - 1, two_n / 2 + 1] {
                let mut mapped = ring.automorphism(&a, galois);
                for (k, &c) in a.limb(0).iter().enumerate() {
                    let to = k as u64 * galois % two_n;
                    let q = ring.moduli()[0];
                    let expected = if to < two_n / 2 { c } else { q.neg(c) };
                    assert_eq!(mapped.limb(0)[to as usize % ring.n()], expected);
                }
                ring.ntt(&mut mapped);
                assert!(
                    mapped == ring.automorphism(&a_eval, galois),
                    "{} 2^{log_n} {galois}",
                    ring.backend_name()
                );
            }
            let twice = ring.automorphism(&ring.automorphism(&a_eval, 5), 25);
            assert!(twice == ring.automorphism(&a_eval, 125));
            // Elements beyond 2N mean the same map.
            assert!(ring.automorphism(&a_eval, two_n + 5) == ring.automorphism(&a_eval, 5));
        }
    }
}
