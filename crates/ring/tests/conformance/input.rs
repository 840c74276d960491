//! Polynomials from integers and from seeds.

use super::*;
use taciturn_ring::{Coefficients, IntegerPoly};

#[test]
fn signed_integers_become_residues() {
    for ring in rings(4, 6) {
        let edges = [
            0,
            1,
            -1,
            i64::MAX,
            i64::MIN,
            1 << 32,
            -(1 << 33),
            1 << 50,
            -(1 << 50),
            77,
            -77,
            1 << 62,
            5,
            6,
            7,
            8,
        ];
        let basis = Basis::single(0).with(1).with(4);
        let a = ring.from_signed(&edges, basis);
        let wide: Vec<i128> = edges.iter().map(|&x| x as i128 * (1 << 60) + 1).collect();
        let b = ring.from_signed_i128(&wide, basis);
        for i in basis.iter() {
            let q = ring.moduli()[i].value() as i128;
            for k in 0..16 {
                assert_eq!(a.limb(i)[k] as i128, (edges[k] as i128).rem_euclid(q));
                assert_eq!(b.limb(i)[k] as i128, wide[k].rem_euclid(q));
            }
        }
    }
}

#[test]
fn integer_polynomials_are_spread() {
    for ring in rings(6, 3) {
        let basis = Basis::single(0).with(2);
        for count in [1, 4, 64] {
            // In 32 and in 64 bits each.
            for bits in [20, 55] {
                let integers: Vec<i64> = (0..count).map(|k| (k - 3) << bits | 5).collect();
                let mut spread = vec![0; 64];
                let places = spread.iter_mut().step_by(64 / count as usize);
                places.zip(&integers).for_each(|(to, &from)| *to = from);
                let integers = IntegerPoly::new(integers);
                let reduced = ring.from_signed(&spread, basis);
                let mut transformed = reduced.clone();
                ring.ntt(&mut transformed);
                for _ in 0..2 {
                    assert!(
                        ring.from_integers(&integers, basis) == reduced
                            && ring.transform_integers(&integers, basis) == transformed,
                        "{} {count}",
                        ring.backend_name()
                    );
                }
            }
        }
    }
}

#[test]
fn coefficients_take_32_bits_where_all_fit() {
    let edges = vec![i32::MIN, i32::MAX, 0, -1];
    let wide: Vec<i64> = edges.iter().map(|&x| x.into()).collect();
    let narrow = IntegerPoly::new(wide.clone());
    assert_eq!(narrow.coefficients(), Coefficients::Narrow(&edges));
    assert_eq!(narrow.bytes(), 16);
    for outside in [1i64 << 31, -(1 << 31) - 1, i64::MAX, i64::MIN] {
        let mut integers = wide.clone();
        integers[2] = outside;
        let poly = IntegerPoly::new(integers.clone());
        assert_eq!(poly.coefficients(), Coefficients::Wide(&integers));
        assert_eq!(poly.bytes(), 32);
    }
}

#[test]
fn integers_of_every_size_transform() {
    for log_n in [4, 5, 8, 9, 12, 13, 16] {
        for ring in rings(log_n, 6) {
            let (n, basis) = (ring.n(), ring.full_basis());
            let mut random = Random(log_n.into());
            let shifts = if log_n < 13 {
                &[1, 12, 24, 32, 40][..]
            } else {
                &[24, 32]
            };
            for &shift in shifts {
                // Of any size in 64 bits, then in fewer, down to 24.
                let edge = |x: i64| {
                    if x % 5 == 0 {
                        i64::MIN >> shift
                    } else {
                        x >> shift
                    }
                };
                let values: Vec<i64> = (0..n).map(|_| edge(random.next() as i64)).collect();
                let mut expected = ring.from_signed(&values, basis);
                ring.ntt(&mut expected);
                let integers = IntegerPoly::new(values);
                assert!(
                    ring.transform_integers(&integers, basis) == expected,
                    "{} 2^{log_n}, shift {shift}",
                    ring.backend_name()
                );
            }
        }
    }
}

#[test]
fn a_seed_expands_alike_for_every_subset() {
    let seed = [9; 32];
    let first = rings(12, 6)[0].uniform(&seed, Basis::range(0..6));
    for ring in rings(12, 6) {
        let whole = ring.uniform(&seed, Basis::range(0..6));
        assert!(whole == first);
        let some = Basis::single(2).with(5);
        assert!(ring.uniform(&seed, some) == ring.restrict(&whole, some));
        assert!(ring.uniform(&[8; 32], some) != ring.uniform(&seed, some));
    }
}

#[test]
fn uniform_residues_fill_their_range() {
    let ring = &rings(14, 6)[0];
    let a = ring.uniform(&[1; 32], ring.full_basis());
    for (i, modulus) in ring.moduli().iter().enumerate() {
        let (q, mut cells) = (modulus.value(), [0i64; 16]);
        for &word in a.limb(i) {
            assert!(word < q);
            cells[(word as u128 * 16 / q as u128) as usize] += 1;
        }
        let expected = ring.n() as f64 / 16.0;
        let statistic: f64 = cells
            .iter()
            .map(|&c| (c as f64 - expected).powi(2) / expected)
            .sum();
        // Fifteen degrees of freedom: 45 has probability 10^-4.
        assert!(statistic < 45.0, "limb {i}: {statistic}");
    }
}

#[test]
fn wrong_rings_are_refused() {
    let good = primes(10, 2);
    assert!(matches!(
        Ring::new(3, &good),
        Err(RingError::Degree { got: 3 })
    ));
    assert!(matches!(
        Ring::new(18, &good),
        Err(RingError::Degree { got: 18 })
    ));
    assert!(matches!(
        Ring::new(10, &[]),
        Err(RingError::ModuliCount { got: 0 })
    ));
    assert!(matches!(
        Ring::new(10, &[good[0], good[0]]),
        Err(RingError::Duplicate { .. })
    ));
    assert!(matches!(
        Ring::new(10, &[(1 << 40) + 15]),
        Err(RingError::NotPrime { .. } | RingError::NoRootOfUnity { .. })
    ));
    let only_for_small = primes_near(2f64.powi(40), 4, 20, &[]).unwrap();
    assert!(matches!(
        Ring::new(17, &only_for_small),
        Err(RingError::NoRootOfUnity { .. })
    ));
}

#[test]
fn degree_2_17_works() {
    for ring in rings(17, 1) {
        let a = Random(20).poly(&ring, ring.full_basis(), Form::Coefficient);
        let mut b = a.clone();
        ring.ntt(&mut b);
        ring.intt(&mut b);
        assert!(a == b);
    }
}

/// Keys are stored as seeds: what a seed expands to may never change. The words come from another implementation of ChaCha20.
#[test]
fn a_seed_expands_to_known_words() {
    let q = 1_125_899_903_827_969;
    let ring = Ring::new(10, &[q]).unwrap();
    let a = ring.uniform(&[3; 32], ring.full_basis());
    assert_eq!(
        a.limb(0)[..3],
        [
            769_476_059_353_505,
            449_743_717_457_572,
            715_144_455_610_178
        ]
    );
}
