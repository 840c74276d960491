//! Slot-wise arithmetic.

use super::*;
use taciturn_ring::IntegerPoly;

/// Compares an operation with a formula on single words, for random and largest operands.
fn check(
    operation: impl Fn(&Ring, &mut Poly, &Poly, &Poly),
    formula: impl Fn(u64, u64, u64, u64) -> u64,
    name: &str,
) {
    for log_n in [4, 6, 11] {
        for ring in rings(log_n, 6) {
            let (all, some) = (ring.full_basis(), Basis::single(0).with(2).with(5));
            let random = [7, 8, 9].map(|seed| Random(seed).poly(&ring, all, Form::Evaluation));
            let largest = [(); 3].map(|()| all_largest(&ring, all, Form::Evaluation));
            for [a, b, c] in [random, largest] {
                // The operand written has fewer limbs than the others.
                let mut out = ring.restrict(&a, some);
                operation(&ring, &mut out, &b, &c);
                assert_eq!((out.basis(), out.form()), (some, Form::Evaluation));
                for i in some.iter() {
                    let q = ring.moduli()[i].value();
                    for k in 0..ring.n() {
                        let expected = formula(a.limb(i)[k], b.limb(i)[k], c.limb(i)[k], q);
                        assert_eq!(
                            out.limb(i)[k],
                            expected,
                            "{name} {} limb {i} word {k}",
                            ring.backend_name()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn sums_and_products() {
    check(
        |r, a, b, _| r.add_assign(a, b),
        |a, b, _, q| (a + b) % q,
        "add",
    );
    check(
        |r, a, b, _| r.sub_assign(a, b),
        |a, b, _, q| (a + q - b) % q,
        "sub",
    );
    check(
        |r, a, _, _| r.neg_assign(a),
        |a, _, _, q| (q - a) % q,
        "neg",
    );
    check(
        |r, a, b, _| r.mul_assign(a, b),
        |a, b, _, q| mul(a, b, q),
        "mul",
    );
    check(
        |r, acc, a, b| r.mul_add_assign(acc, a, b),
        |acc, a, b, q| (acc + mul(a, b, q)) % q,
        "mul_add",
    );
    check(
        |r, out, a, b| *out = r.mul_new(&r.restrict(a, out.basis()), b),
        |_, a, b, q| mul(a, b, q),
        "mul_new",
    );
}

#[test]
fn scalars() {
    let scalar = |q: u64| [0, 1, q - 1, q / 2, 12345][q as usize / 2 % 5];
    check(
        |r, a, _, _| r.mul_scalar_assign(a, &|i| scalar(r.moduli()[i].value())),
        |a, _, _, q| mul(a, scalar(q), q),
        "mul_scalar",
    );
    for integer in [0, 1, -1, i128::MAX, i128::MIN + 1, -(1 << 60) - 7] {
        let residue = move |q: u64| integer.rem_euclid(q as i128) as u64;
        check(
            |r, a, _, _| r.mul_integer_assign(a, integer),
            |a, _, _, q| mul(a, residue(q), q),
            "mul_integer",
        );
        check(
            |r, a, _, _| r.add_integer_assign(a, integer),
            |a, _, _, q| (a + residue(q)) % q,
            "add_integer",
        );
    }
}

#[test]
fn constants_and_the_imaginary_unit_mean_the_same_in_both_forms() {
    for ring in rings(6, 3) {
        let n = ring.n();
        let a = Random(10).poly(&ring, ring.full_basis(), Form::Coefficient);
        let mut b = a.clone();
        ring.add_integer_assign(&mut b, -77);
        ring.add_imaginary_integer_assign(&mut b, 1 << 70);
        ring.ntt(&mut b);
        let mut c = a.clone();
        ring.ntt(&mut c);
        ring.add_integer_assign(&mut c, -77);
        ring.add_imaginary_integer_assign(&mut c, 1 << 70);
        assert!(b == c);

        let mut x = vec![0; n];
        x[n / 2] = 1;
        let mut x = ring.from_signed(&x, ring.full_basis());
        ring.ntt(&mut x);
        let mut turned = c.clone();
        ring.mul_by_i_assign(&mut turned);
        assert!(turned == ring.mul_new(&c, &x));
    }
}

#[test]
fn limbs_are_kept_by_name() {
    for ring in rings(5, 6) {
        let a = Random(11).poly(&ring, ring.full_basis(), Form::Coefficient);
        let keep: Basis = [1, 4, 5].into_iter().collect();
        let copy = ring.restrict(&a, keep);
        let mut dropped = a.clone();
        ring.drop_limbs(&mut dropped, keep);
        assert!(copy == dropped);
        assert!(keep.iter().all(|i| copy.limb(i) == a.limb(i)));
        assert_eq!(copy.words().len(), 3 * ring.n());
    }
}

#[test]
fn sums_of_products_with_integers_equal_their_parts() {
    for log_n in [4, 5, 7, 10] {
        for ring in rings(log_n, 6) {
            let (all, target) = (ring.full_basis(), Basis::range(1..5));
            let mut random = Random(log_n.into());
            for (terms, shift) in [(1, 33), (3, 33), (3, 20), (18, 40)] {
                let mut poly = || random.poly(&ring, all, Form::Evaluation);
                let factors: Vec<[Poly; 2]> = (0..terms).map(|_| [poly(), poly()]).collect();
                let integers: Vec<IntegerPoly> = (0..terms)
                    .map(|k| {
                        // Of the whole ring, but for every third term.
                        let count = if k % 3 == 2 { ring.n() / 4 } else { ring.n() };
                        IntegerPoly::new(
                            (0..count).map(|_| random.next() as i64 >> shift).collect(),
                        )
                    })
                    .collect();
                let mut expected = [(); 2].map(|()| ring.zero(target, Form::Evaluation));
                for (factors, integers) in factors.iter().zip(&integers) {
                    let mut weight = ring.from_integers(integers, target);
                    ring.ntt(&mut weight);
                    for (sum, factor) in expected.iter_mut().zip(factors) {
                        ring.mul_add_assign(sum, factor, &weight);
                    }
                }
                let pairs: Vec<([&Poly; 2], &IntegerPoly)> = factors
                    .iter()
                    .map(|factors| factors.each_ref())
                    .zip(&integers)
                    .collect();
                let (a, b) = ring.dot_integers(&pairs, target);
                assert!([a, b] == expected, "{} 2^{log_n}", ring.backend_name());
            }
        }
    }
}
