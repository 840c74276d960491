//! Digit extension and key products.

use super::*;

#[test]
fn a_digit_extends_like_a_conversion() {
    for log_n in [4, 10] {
        for ring in rings(log_n, 12) {
            let have = Basis::range(0..7).without(4);
            let coefficient = Random(14).poly(&ring, have, Form::Coefficient);
            let mut evaluation = coefficient.clone();
            ring.ntt(&mut evaluation);
            for digit in [
                Basis::range(0..3),
                Basis::single(3).with(5),
                Basis::single(6),
            ] {
                let target = have.union(Basis::range(7..12)).without(1);
                let extended = ring.extend_digit(&coefficient, &evaluation, digit, target);
                let mut expected = ring.convert(&ring.restrict(&coefficient, digit), target);
                ring.ntt(&mut expected);
                assert!(extended == expected, "{} {digit:?}", ring.backend_name());
            }
            // Several at once, of different lengths.
            let digits = [
                Basis::range(0..3),
                Basis::single(3).with(5),
                Basis::single(6),
            ];
            let target = Basis::range(0..12);
            let all = ring.extend_digits(&coefficient, &evaluation, &digits, target.without(4));
            let decomposed = ring.decompose(&evaluation, &digits, target.without(4));
            assert!(decomposed == all, "{}", ring.backend_name());
            for (&digit, extended) in digits.iter().zip(all) {
                let one = ring.extend_digit(&coefficient, &evaluation, digit, target.without(4));
                assert!(extended == one, "{} {digit:?}", ring.backend_name());
            }
        }
    }
}

#[test]
fn key_products_sum_up_to_sixteen_digits() {
    for log_n in [4, 9] {
        for ring in rings(log_n, 8) {
            let (wide, target) = (Basis::range(0..8), Basis::range(1..7).without(3));
            for count in [1, 2, 3, 7, 12, 16] {
                let mut random = Random(15 + count as u64);
                let digits: Vec<Poly> = (0..count)
                    .map(|_| random.poly(&ring, wide.without(7), Form::Evaluation))
                    .collect();
                let mut poly = || random.poly(&ring, wide, Form::Evaluation);
                let key: Vec<(Poly, Poly)> = (0..count + 1).map(|_| (poly(), poly())).collect();
                check(&ring, &digits, &key, target);
                let digits = vec![all_largest(&ring, wide, Form::Evaluation); count];
                let key = vec![(digits[0].clone(), digits[0].clone()); count];
                check(&ring, &digits, &key, target);
            }
        }
    }
}

fn check(ring: &Ring, digits: &[Poly], key: &[(Poly, Poly)], target: Basis) {
    for galois in [None, Some(5), Some(2 * ring.n() as u64 - 1)] {
        let mut expected = [
            ring.zero(target, Form::Evaluation),
            ring.zero(target, Form::Evaluation),
        ];
        for (digit, key) in digits.iter().zip(key) {
            let digit = galois.map_or_else(|| digit.clone(), |g| ring.automorphism(digit, g));
            ring.mul_add_assign(&mut expected[0], &digit, &key.0);
            ring.mul_add_assign(&mut expected[1], &digit, &key.1);
        }
        let got = match galois {
            None => ring.key_product(digits, key, target),
            Some(g) => ring.key_product_automorphism(digits, key, g, target),
        };
        assert!(
            got.0 == expected[0] && got.1 == expected[1],
            "{} {} digits",
            ring.backend_name(),
            digits.len()
        );
    }
}

#[test]
fn fused_sums_equal_their_parts() {
    for log_n in [4, 9] {
        for ring in rings(log_n, 4) {
            let (wide, narrow) = (ring.full_basis(), Basis::single(1).with(3));
            let mut random = Random(77);
            let start = random.poly(&ring, wide, Form::Evaluation);
            let a = random.poly(&ring, narrow, Form::Evaluation);
            for galois in [5, 2 * ring.n() as u64 - 1] {
                let mut got = start.clone();
                ring.add_automorphism_assign(&mut got, &a, galois);
                let mut expected = start.clone();
                ring.add_to_limbs(&mut expected, &ring.automorphism(&a, galois));
                assert!(got == expected, "{} {galois}", ring.backend_name());

                let digits = [random.poly(&ring, wide, Form::Evaluation)];
                let key = [(start.clone(), random.poly(&ring, wide, Form::Evaluation))];
                let (mut got0, mut got1) = (start.clone(), digits[0].clone());
                ring.add_key_product_automorphism((&mut got0, &mut got1), &digits, &key, galois);
                let product = ring.key_product_automorphism(&digits, &key, galois, wide);
                let (mut expected0, mut expected1) = (start.clone(), digits[0].clone());
                ring.add_assign(&mut expected0, &product.0);
                ring.add_assign(&mut expected1, &product.1);
                assert!(
                    got0 == expected0 && got1 == expected1,
                    "{} {galois}",
                    ring.backend_name()
                );
            }
            let factor = |limb: usize| ring.moduli()[limb].value() - 1 - limb as u64;
            let mut got = start.clone();
            ring.add_scaled_to_limbs(&mut got, &a, &factor);
            let mut scaled = a.clone();
            ring.mul_scalar_assign(&mut scaled, &factor);
            let mut expected = start.clone();
            ring.add_to_limbs(&mut expected, &scaled);
            assert!(got == expected, "{}", ring.backend_name());
        }
    }
}

/// Long polynomials take other ways through the transforms of some backends, which divisions and extensions end differently.
#[test]
fn long_polynomials_agree() {
    for log_n in [13, 15, 16, 17] {
        let rings = rings(log_n, 5);
        let (all, drop) = (Basis::range(0..5), Basis::single(1).with(4));
        let a = Random(50).poly(&rings[0], all, Form::Evaluation);
        let words = |ring: &Ring| -> Vec<Vec<u64>> {
            // A copy each: a polynomial stays with the backend that computes on it.
            let a = a.clone();
            let mut out = ring.mod_down_all(&[a.clone(), a.clone()], drop);
            let coefficients = ring.intt_new(&a);
            let digits = [Basis::range(0..2), Basis::single(3)];
            out.extend(ring.extend_digits(&coefficients, &a, &digits, all));
            out.push(ring.automorphism(&a, 5));
            out.push(coefficients);
            out.iter().map(|p| p.words().to_vec()).collect()
        };
        let expected = words(&rings[0]);
        for ring in &rings[1..] {
            assert!(words(ring) == expected, "{} 2^{log_n}", ring.backend_name());
        }
    }
}
