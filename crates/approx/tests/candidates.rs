//! What a planner may choose among, and approximations by name.

use proptest::prelude::*;
use taciturn_approx::*;

fn targets() -> impl Strategy<Value = (Target, f64, f64)> {
    let positive =
        (-3.0..3.0f64, 0.5..11.0f64).prop_map(|(at, ratio)| (at.exp2(), (at + ratio).exp2()));
    let around = (-20.0..-0.5f64, 0.5..20.0f64);
    let exponents = (-30.0..-1.0f64, -0.5..2.0f64);
    prop_oneof![
        positive
            .clone()
            .prop_map(|(low, high)| (Target::Inverse, low, high)),
        positive.prop_map(|(low, high)| (Target::InverseSqrt, low, high)),
        exponents.prop_map(|(low, high)| (Target::Exp, low, high)),
        around.prop_map(|(low, high)| (Target::Activation(Gate::Logistic), low, high)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every candidate is as exact as the current choice, or exact enough; none beats another; and its name gives it back.
    #[test]
    fn candidates_are_exact_and_differ_in_cost((target, low, high) in targets(), bits in 10.0..16.0f64) {
        let first = target.rows()[0].name;
        let Ok(current) = target.choose(first, (low, high), bits) else {
            return Ok(());
        };
        let least = current.approximation.bits().min(ENOUGH_BITS);
        let all = candidates(&current, bits, ENOUGH_BITS).unwrap();
        let cost = |named: &Named| (named.approximation.depth(), named.approximation.products());
        prop_assert!(!all.is_empty());
        prop_assert!(all.iter().any(|named| cost(named).0 <= cost(&current).0));
        for named in &all {
            prop_assert!(named.approximation.bits() >= least, "{named}");
            prop_assert_eq!(named.approximation.target(), target);
            let again = Named::parse(target, &named.to_string(), (low, high), bits).unwrap();
            prop_assert_eq!(&again, named);
        }
        for pair in all.windows(2) {
            prop_assert!(cost(&pair[0]).0 < cost(&pair[1]).0 && cost(&pair[0]).1 > cost(&pair[1]).1);
        }
    }
}

/// Every row of the catalogue can be named, alone and with its numbers.
#[test]
fn every_row_is_selected_by_its_name() {
    let targets = [
        (Target::Inverse, 0.02, 1.0),
        (Target::InverseSqrt, 0.1, 4.0),
        (Target::Exp, -14.0, 0.9),
        (Target::Activation(Gate::NormalByTanh), -7.0, 6.0),
        (Target::Activation(Gate::Normal), -7.0, 6.0),
        (Target::Activation(Gate::Logistic), -5.0, 6.0),
    ];
    for (target, low, high) in targets {
        for row in target.rows() {
            let named = Named::parse(target, row.name, (low, high), 12.0).unwrap();
            assert_eq!(named.name, row.name);
            let again = Named::parse(target, &named.to_string(), (low, high), 12.0).unwrap();
            assert_eq!(again, named);
        }
    }
}

#[test]
fn names_that_are_none_say_what_there_is() {
    let squarings = Named::parse(Target::Exp, "minimax-squarings/7+33", (-9.0, 0.0), 12.0);
    assert!(matches!(squarings, Err(ApproxError::Unknown { .. })));
    let silu = Target::Activation(Gate::Logistic);
    let large = Named::parse(silu, "composite/7x255", (-9.0, 9.0), 12.0);
    assert!(matches!(large, Err(ApproxError::Degree { limit: 63, .. })));
    let texts = [
        "",
        "minimax",
        "minimax-newton/",
        "minimax-newton/x",
        "minimax-newton/0",
        "minimax-newton/15+99",
        "minimax-newton/15+-1",
        "composite/7x7",
        "constant-goldschmidt/3+2",
        "taylor-newton/3+16",
    ];
    for text in texts {
        let error = Named::parse(Target::Inverse, text, (0.1, 1.0), 12.0).unwrap_err();
        assert!(
            matches!(error, ApproxError::Unknown { .. }),
            "{text}: {error}"
        );
        assert!(error.to_string().contains("minimax-goldschmidt"), "{error}");
    }
    let error = Named::parse(Target::Inverse, "minimax-newton/9999", (0.1, 1.0), 12.0).unwrap_err();
    assert!(matches!(error, ApproxError::Degree { .. }), "{error}");
}
