//! Invariants of the choosers over a table of intervals and precisions.

use taciturn_approx::{
    ApproxError, Exp, Gelu, GeluForm, Inverse, InverseSqrt, Silu, worst_on_grid,
};

#[test]
fn inverses_reach_their_bits_on_every_ratio_and_scale() {
    for log_ratio in [1, 4, 7, 10, 14] {
        let ratio = f64::from(1 << log_ratio);
        for bits in [10.0, 16.0, 22.0] {
            let chosen = InverseSqrt::choose(1.0 / ratio, 1.0, bits).unwrap();
            let inverse = Inverse::choose(1.0 / ratio, 1.0, bits).unwrap();
            assert!(chosen.worst_error_bits() >= bits && inverse.worst_error_bits() >= bits);
            for scale in [900.0, 1.0 / 900.0, 1e12] {
                let scaled = InverseSqrt::choose(scale / ratio, scale, bits).unwrap();
                assert_eq!(
                    (scaled.depth(), scaled.newton),
                    (chosen.depth(), chosen.newton),
                    "ratio 2^{log_ratio}"
                );
                let scaled = Inverse::choose(scale / ratio, scale, bits).unwrap();
                assert_eq!(
                    (scaled.depth(), scaled.newton),
                    (inverse.depth(), inverse.newton),
                    "ratio 2^{log_ratio}"
                );
            }
        }
    }
}

#[test]
fn precision_costs_depth() {
    for low in [0.5, 0.05, 0.001] {
        let depths: Vec<u32> = [8.0, 14.0, 20.0]
            .map(|bits| InverseSqrt::choose(low, 1.0, bits).unwrap().depth())
            .into();
        assert!(depths.is_sorted(), "{depths:?}");
    }
}

#[test]
fn exp_is_accurate_and_stays_small_at_the_lower_end() {
    for (low, high) in [
        (-4.0, 0.0),
        (-16.0, 0.0),
        (-64.0, 0.0),
        (-20.0, 12.0),
        (3.0, 5.0),
    ] {
        let chosen = Exp::choose(low, high, 18.0).unwrap();
        assert!(chosen.worst_error_bits() >= 18.0);
        let top = high.exp();
        let worst = worst_on_grid(low, high, 3000, |x| (chosen.evaluate(x) - x.exp()) / top);
        assert!(worst <= 1.01 * 2f64.powi(-18), "[{low}, {high}]: {worst}");
    }
}

#[test]
fn gelu_is_accurate_and_zero_at_zero() {
    for form in [GeluForm::Tanh, GeluForm::Erf] {
        for (low, high) in [(-4.0, 4.0), (-12.3, 8.3), (-0.01, 0.02), (-40.0, 30.0)] {
            let chosen = Gelu::choose(form, low, high, 12.0).unwrap();
            assert!(chosen.worst_error_bits() >= 12.0);
            assert!(chosen.evaluate(0.0).abs() < 1e-12 * high.max(1.0));
        }
    }
}

#[test]
fn silu_is_accurate_and_zero_at_zero() {
    for (low, high) in [(-4.0, 4.0), (-12.3, 8.3), (-0.01, 0.02), (-31.6, 24.5)] {
        let chosen = Silu::choose(low, high, 12.0).unwrap();
        assert!(chosen.worst_error_bits() >= 12.0);
        assert!(chosen.evaluate(0.0).abs() < 1e-12 * high.max(1.0));
        let worst = worst_on_grid(low, high, 3000, |x| {
            chosen.evaluate(x) - x / (1.0 + (-x).exp())
        });
        assert!(worst <= 1.01 * 2f64.powi(-12), "[{low}, {high}]: {worst}");
    }
    assert!(matches!(
        Silu::choose(1.0, 2.0, 10.0),
        Err(ApproxError::Interval { .. })
    ));
}

#[test]
fn impossible_requests_are_typed_errors() {
    assert!(matches!(
        InverseSqrt::choose(-1.0, 1.0, 10.0),
        Err(ApproxError::Interval { .. })
    ));
    assert!(matches!(
        Inverse::choose(0.0, 1.0, 10.0),
        Err(ApproxError::Interval { .. })
    ));
    assert!(matches!(
        Inverse::choose(1.0, f64::NAN, 10.0),
        Err(ApproxError::Interval { .. })
    ));
    assert!(matches!(
        Inverse::choose(1e-12, 1.0, 20.0),
        Err(ApproxError::TooWide { .. })
    ));
    assert!(matches!(
        Gelu::choose(GeluForm::Tanh, 1.0, 2.0, 10.0),
        Err(ApproxError::Interval { .. })
    ));
    assert!(matches!(
        Gelu::choose(GeluForm::Tanh, -900.0, 900.0, 20.0),
        Err(ApproxError::TooWide { .. })
    ));
    assert!(matches!(
        Exp::choose(-2000.0, 0.0, 10.0),
        Err(ApproxError::Interval { .. })
    ));
    assert!(matches!(
        Exp::choose(-16.0, 0.0, 60.0),
        Err(ApproxError::TooWide { .. })
    ));
}
