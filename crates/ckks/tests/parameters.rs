//! Parameter sets: what builds, what does not, and what the encoder keeps.

use proptest::prelude::*;
use taciturn_ckks::{
    CkksError, Complex64, Encoder, GadgetName, Level, Parameters, ParametersLiteral, bound_bits,
    named, names,
};
use taciturn_ring::Basis;

fn literal() -> ParametersLiteral {
    *named("n16-128").unwrap().literal()
}

#[test]
fn the_default_set_is_within_its_bounds() {
    let params = named(names().next().unwrap()).unwrap();
    assert_eq!((params.name(), params.security_bits()), ("n16-128", 128));
    assert!(
        (params.log_qp() - 1690.0).abs() < 0.1,
        "{}",
        params.log_qp()
    );
    for name in [
        GadgetName::Bootstrap,
        GadgetName::Product,
        GadgetName::Trace,
        GadgetName::Model,
        GadgetName::Encapsulate,
        GadgetName::Decapsulate,
    ] {
        let gadget = params.gadget(name);
        let bits = params.bits(gadget.limbs.union(gadget.special));
        assert!(
            bits <= bound_bits(16, gadget.encrypted_under).unwrap(),
            "{name:?}: {bits}"
        );
        let covered = gadget
            .digits
            .iter()
            .fold(Basis::EMPTY, |all, d| all.union(*d));
        assert_eq!(covered, gadget.limbs, "{name:?}");
    }
    for level in 0..=params.max_level().0 {
        let deviation = params.scale(Level(level)).log2() - 40.0;
        assert!(deviation.abs() < 1e-3, "level {level}: 2^{deviation} off");
    }
}

#[test]
fn a_set_beyond_the_bound_cannot_be_built() {
    let cases = [
        ParametersLiteral {
            levels: 18,
            ..literal()
        },
        ParametersLiteral {
            bootstrap_special_limbs: 11,
            ..literal()
        },
        ParametersLiteral {
            log_n: 15,
            ..literal()
        },
        ParametersLiteral {
            sparse_weight: 16,
            ..literal()
        },
        ParametersLiteral {
            base_bits: 51,
            ..literal()
        },
        ParametersLiteral {
            insecure: true,
            ..literal()
        },
    ];
    for (i, case) in cases.into_iter().enumerate() {
        let result = Parameters::new("test", case);
        assert!(
            matches!(result, Err(CkksError::Parameters { .. })),
            "case {i} was built"
        );
    }
    assert!(matches!(
        named("n15"),
        Err(CkksError::UnknownParameters { .. })
    ));
}

#[test]
fn a_set_that_no_bootstrap_can_use_is_refused_by_field() {
    type Spoil = fn(&mut ParametersLiteral);
    let cases: [(&str, Spoil); 9] = [
        ("model_special_limbs", |l| l.model_special_limbs = 0),
        ("eval_mod_limbs", |l| l.eval_mod_limbs = 7),
        ("eval_mod_limbs", |l| l.eval_mod_limbs = usize::MAX),
        ("coeffs_to_slots_limbs", |l| l.coeffs_to_slots_limbs = 2),
        ("levels", |l| l.levels = 2),
        ("levels", |l| l.levels = usize::MAX),
        ("sparse_weight", |l| l.sparse_weight = 0),
        ("sparse_weight", |l| l.sparse_weight = 33),
        ("estimate", |l| l.estimate = None),
    ];
    for (field, spoil) in cases {
        let mut case = literal();
        spoil(&mut case);
        match Parameters::new("test", case) {
            Err(CkksError::Parameters { what, .. }) => {
                assert!(what.starts_with(&format!("{field}: ")), "{what}");
            }
            Err(other) => panic!("{field}: {other}"),
            Ok(_) => panic!("{field}: the set was built"),
        }
    }
}

/// Digits that a key switch takes come first in their gadget for every basis of a level and of a bootstrap to it.
#[test]
fn every_basis_fills_digits_from_the_front() {
    for name in names() {
        let params = named(name).unwrap();
        let top = params.coeffs_to_slots_limbs().end;
        for gadget in [
            GadgetName::Bootstrap,
            GadgetName::Product,
            GadgetName::Model,
        ] {
            let gadget = params.gadget(gadget);
            for level in 0..=params.max_level().0 {
                for end in params.eval_mod_limbs().start..=top {
                    let raised = Basis::range(params.eval_mod_limbs().start..end);
                    let limbs = params.level_basis(Level(level)).union(raised);
                    if !limbs.is_subset(gadget.limbs) {
                        continue;
                    }
                    let met: Vec<bool> = (gadget.digits.iter())
                        .map(|digit| !digit.intersection(limbs).is_empty())
                        .collect();
                    assert!(met.is_sorted_by(|a, b| a >= b), "{name} {limbs:?}: {met:?}");
                }
            }
        }
    }
}

#[test]
fn a_set_whose_digits_some_basis_leaves_out_is_refused() {
    let insecure = *named("insecure-n11").unwrap().literal();
    // EvalMod's and CoeffsToSlots' limbs fill two digits with no room for the levels, which then lie in the third.
    let gap = ParametersLiteral {
        level_bits: 45,
        coeffs_to_slots_limbs: 7,
        ..insecure
    };
    match Parameters::new("insecure-gap", gap) {
        Err(CkksError::Parameters { what, .. }) => {
            assert!(
                what.contains("Bootstrap gadget") && what.contains("level 1"),
                "{what}"
            );
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the set was built"),
    }
    let filled = ParametersLiteral {
        level_bits: 45,
        ..insecure
    };
    assert!(Parameters::new("insecure-filled", filled).is_ok());
}

#[test]
fn impossible_encodings_are_errors() {
    let params = named("insecure-n11").unwrap();
    let encoder = Encoder::new(&params);
    let (scale, basis) = (params.scale(Level(1)), params.level_basis(Level(1)));
    for values in [vec![], vec![Complex64::ONE; 3], vec![Complex64::ONE; 2048]] {
        assert!(matches!(
            encoder.encode(&values, scale, basis),
            Err(CkksError::Mismatch { .. })
        ));
    }
    for value in [f64::NAN, f64::INFINITY, 1e9] {
        let values = [Complex64::new(value, 0.0)];
        assert!(
            matches!(
                encoder.encode(&values, scale, basis),
                Err(CkksError::TooLarge { .. })
            ),
            "{value}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn encoding_keeps_values(log_d in 0u32..=10, seed in any::<u64>(), limbs in 0usize..3) {
        let params = named("insecure-n11").unwrap();
        let encoder = Encoder::new(&params);
        let mut x = seed;
        let mut next = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 11) as f64 / (1u64 << 50) as f64 - 4.0
        };
        let values: Vec<_> = (0..1 << log_d).map(|_| Complex64::new(next(), next())).collect();
        let level = Level(limbs);
        let plaintext = encoder.encode(&values, params.scale(level), params.level_basis(level)).unwrap();
        let back = encoder.decode(&plaintext, values.len()).unwrap();
        for (a, b) in values.iter().zip(&back) {
            prop_assert!((a - b).norm() < 1e-9);
        }
        // A shorter vector stands for its repetition.
        let full = encoder.decode(&plaintext, params.slots()).unwrap();
        for (i, z) in full.iter().enumerate() {
            prop_assert!((z - values[i % values.len()]).norm() < 1e-9);
        }
    }
}
