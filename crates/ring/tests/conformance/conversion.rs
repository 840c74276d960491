//! Base conversion and division, against big integers.

use super::*;
use num_bigint::BigInt;

fn product(ring: &Ring, basis: Basis) -> BigInt {
    basis
        .iter()
        .map(|i| BigInt::from(ring.moduli()[i].value()))
        .product()
}

fn residue(x: &BigInt, q: u64) -> u64 {
    let q = BigInt::from(q);
    u64::try_from(((x % &q) + &q) % &q).unwrap()
}

/// The representative of coefficient `k` that the documented fixed-point formula picks.
fn reconstruct(ring: &Ring, a: &Poly, basis: Basis, k: usize) -> BigInt {
    let big_q = product(ring, basis);
    let mut sum = BigInt::ZERO;
    let mut quotient = 0u64;
    for i in basis.iter() {
        let q = ring.moduli()[i];
        let cofactor = &big_q / q.value();
        let y = q.mul(a.limb(i)[k], q.inv(residue(&cofactor, q.value())));
        let weight = ((1u128 << 84) / q.value() as u128) as u64;
        quotient += ((y as u128 * weight as u128) >> 52) as u64;
        sum += cofactor * y;
    }
    sum - big_q * ((quotient + (1 << 31)) >> 32)
}

fn bases() -> Vec<(Basis, Basis)> {
    vec![
        (Basis::single(0), Basis::range(0..7)),
        (Basis::single(1), Basis::range(2..9)),
        (Basis::range(0..9), Basis::range(9..13)),
        (Basis::range(2..5), Basis::range(0..8)),
        (
            [0, 3, 7, 11].into_iter().collect(),
            [1, 3, 8].into_iter().collect(),
        ),
        (Basis::range(0..26), Basis::range(24..28)),
        (Basis::range(0..27), Basis::range(27..28)),
    ]
}

#[test]
fn converts_the_centred_representative() {
    for log_n in [4, 10] {
        for ring in rings(log_n, 28) {
            for (from, to) in bases() {
                let big_q = product(&ring, from);
                for a in [
                    Random(12).poly(&ring, from, Form::Coefficient),
                    all_largest(&ring, from, Form::Coefficient),
                ] {
                    let out = ring.convert(&a, to);
                    assert!(out == ring.raise(&a, to));
                    assert_eq!((out.basis(), out.form()), (to, Form::Coefficient));
                    for k in (0..ring.n()).step_by(ring.n() / 16) {
                        let x = reconstruct(&ring, &a, from, k);
                        assert!(
                            BigInt::from(x.magnitude() * 2u32) < BigInt::from(1001) * &big_q / 1000
                        );
                        for j in to.iter() {
                            let q = ring.moduli()[j].value();
                            assert_eq!(
                                out.limb(j)[k],
                                residue(&x, q),
                                "{} {from:?} to {j}",
                                ring.backend_name()
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn small_integers_convert_exactly() {
    for ring in rings(5, 9) {
        let small: Vec<i64> = (0..ring.n() as i64)
            .map(|k| (k - 16) * 12_345_678_901_234)
            .collect();
        let a = ring.from_signed(&small, Basis::range(2..5));
        assert!(ring.raise(&a, Basis::range(0..9)) == ring.from_signed(&small, Basis::range(0..9)));
    }
}

#[test]
fn division_rounds_and_agrees_in_both_forms() {
    for log_n in [4, 9] {
        for ring in rings(log_n, 13) {
            let all = Basis::range(0..13);
            for drop in [
                Basis::single(12),
                Basis::single(3),
                Basis::range(9..13),
                Basis::range(8..12).with(1),
            ] {
                let a = Random(13).poly(&ring, all, Form::Coefficient);
                let divided = ring.mod_down_coeff(&a, drop);
                assert_eq!(
                    (divided.basis(), divided.form()),
                    (all.difference(drop), Form::Coefficient)
                );
                let p = product(&ring, drop);
                for k in (0..ring.n()).step_by(ring.n() / 16) {
                    let exact = reconstruct(&ring, &a, all, k) - reconstruct(&ring, &a, drop, k);
                    assert_eq!(&exact % &p, BigInt::ZERO);
                    let quotient = exact / &p;
                    for i in divided.basis().iter() {
                        assert_eq!(
                            divided.limb(i)[k],
                            residue(&quotient, ring.moduli()[i].value())
                        );
                    }
                }
                let mut a_eval = a.clone();
                ring.ntt(&mut a_eval);
                let mut divided_eval = ring.mod_down(&a_eval, drop);
                let all = [
                    a_eval.clone(),
                    Random(9).poly(&ring, a_eval.basis(), a_eval.form()),
                ];
                let several = ring.mod_down_all(&all, drop);
                assert!(several[0] == divided_eval && several[1] == ring.mod_down(&all[1], drop));
                ring.intt(&mut divided_eval);
                assert!(divided_eval == divided, "{} {drop:?}", ring.backend_name());
            }
        }
    }
}
