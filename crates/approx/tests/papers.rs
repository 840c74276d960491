//! The papers' approximations against the exact functions.

use taciturn_approx::*;

fn grid(low: f64, high: f64) -> impl Iterator<Item = f64> {
    (0..=997).map(move |k| low + (high - low) * f64::from(k) / 997.0)
}

fn worst(low: f64, high: f64, error: impl Fn(f64) -> f64) -> f64 {
    grid(low, high).map(|x| error(x).abs()).fold(0.0, f64::max)
}

/// Goldschmidt's values are Newton's; his depth for `1/x` is less from two steps on.
#[test]
fn goldschmidt_is_newton_with_less_depth() {
    for (low, high, degree) in [(0.1, 1.0, 7), (0.02, 30.0, 31), (1e-3, 1.0, 63)] {
        for steps in 0..4 {
            let newton = Inverse::fit(low, high, degree, steps).unwrap();
            let gold = GoldschmidtInverse::fit(low, high, degree, steps).unwrap();
            let error = worst(low, high, |x| x * (gold.evaluate(x) - newton.evaluate(x)));
            assert!(error < 1e-9, "[{low}, {high}], {steps} steps: {error:e}");
            if steps >= 2 {
                assert!(gold.depth() < newton.depth());
            }
            let newton = InverseSqrt::fit(low, high, degree, steps).unwrap();
            let gold = GoldschmidtInverseSqrt::fit(low, high, degree, steps).unwrap();
            let error = worst(low, high, |x| {
                x.sqrt() * (gold.evaluate(x) - newton.evaluate(x))
            });
            assert!(
                error < 1e-9,
                "root, [{low}, {high}], {steps} steps: {error:e}"
            );
        }
    }
}

#[test]
fn constants_are_enough_of_a_start() {
    // Softmax denominators and norms of Cachemir, scaled to end at 1.
    let inverse = GoldschmidtInverse::from_constant(1.0 / 128.0, 1.0, 10).unwrap();
    assert_eq!((inverse.depth(), inverse.products()), (11, 18));
    assert!(inverse.worst_error_bits() > 20.0);
    assert!(worst(1.0 / 128.0, 1.0, |x| inverse.evaluate(x) * x - 1.0) < 1e-6);
    let root = GoldschmidtInverseSqrt::from_constant(0.04, 1.0, 8).unwrap();
    assert_eq!((root.depth(), root.products()), (16, 21));
    assert!(worst(0.04, 1.0, |x| root.evaluate(x) * x.sqrt() - 1.0) < 1e-4);
}

#[test]
fn taylor_starts_converge_on_any_interval() {
    for (low, high) in [(0.5, 2.0), (1e-2, 50.0), (1.0, 1000.0)] {
        let root = InverseSqrt::taylor(low, high, 16).unwrap();
        assert_eq!(root.depth(), 34);
        assert!(worst(low, high, |x| root.evaluate(x) * x.sqrt() - 1.0) < 1e-9);
    }
}

#[test]
fn the_limit_is_an_exponential_of_few_bits() {
    let exp = Exp::limit(-16.0, 0.0, 7).unwrap();
    assert!((7.0..9.0).contains(&exp.worst_error_bits()));
    assert!(worst(-16.0, 0.0, |x| exp.evaluate(x) - x.exp()) < 2.2e-3);
    let error = |x: f64| exp.evaluate(x) - (1.0 + x / 128.0).powi(128);
    assert!(worst(-16.0, 0.0, error) < 1e-12);
    // An upper end above 0 is a factor.
    let shifted = Exp::limit(-14.0, 2.0, 7).unwrap();
    let error = |x: f64| shifted.evaluate(x) - 2f64.exp() * exp.evaluate(x - 2.0);
    assert!(worst(-14.0, 2.0, error) < 1e-12);
    assert!(matches!(
        Exp::limit(-300.0, 0.0, 7),
        Err(ApproxError::Interval { .. })
    ));
}

#[test]
fn composites_reach_their_bits_and_vanish_at_zero() {
    for gate in [Gate::Logistic, Gate::Normal, Gate::NormalByTanh] {
        for (low, high, bits) in [(-4.0, 4.0, 14.0), (-12.0, 7.0, 12.0), (-16.0, 16.0, 12.0)] {
            let composite = Composite::choose(gate, low, high, bits).unwrap();
            assert!(composite.worst_error_bits() >= bits);
            let error = worst(low, high, |x| composite.evaluate(x) - gate.activation(x));
            assert!(
                error < 1.1 * 2f64.powf(-bits),
                "{gate:?} [{low}, {high}]: {error:e}"
            );
            assert_eq!(composite.evaluate(0.0), 0.0);
        }
    }
    assert!(matches!(
        Composite::choose(Gate::Logistic, 1.0, 2.0, 10.0),
        Err(ApproxError::Interval { .. })
    ));
    assert!(matches!(
        Composite::choose(Gate::Logistic, -9.0, 9.0, 60.0),
        Err(ApproxError::TooWide { .. })
    ));
}

#[test]
fn gates_are_those_of_the_activations() {
    for x in grid(-9.0, 9.0) {
        assert!((Gate::Logistic.activation(x) - silu(x)).abs() < 1e-14);
        assert!((Gate::Normal.activation(x) - gelu_erf(x)).abs() < 1e-14);
        assert!((Gate::NormalByTanh.activation(x) - gelu_tanh(x)).abs() < 1e-14);
    }
}

#[test]
fn pieces_of_gelu_join() {
    let gelu = PiecewiseGelu::new(8.0).unwrap();
    assert_eq!(gelu.depth(), 17);
    assert!(worst(-8.0, 8.0, |x| gelu.evaluate(x) - gelu_tanh(x)) < 0.05);
    assert!(PiecewiseGelu::new(3.0).is_err() && PiecewiseGelu::new(f64::NAN).is_err());
    let [f0, f1] = &gelu.pieces;
    assert!((f0.evaluate(-3.0) - gelu_tanh(-3.0)).abs() < 0.02);
    assert!((f1.evaluate(1.0) - gelu_tanh(1.0)).abs() < 0.02);
}

const TARGETS: [(Target, f64, f64); 7] = [
    (Target::Inverse, 1.0 / 128.0, 1.0),
    (Target::InverseSqrt, 0.9, 20.0),
    (Target::Exp, -16.0, 0.0),
    (Target::Activation(Gate::NormalByTanh), -10.0, 9.0),
    (Target::Activation(Gate::Logistic), -4.0, 4.0),
    (Target::Sign, -1.0, 1.0),
    (Target::Max, -1.0, 1.0),
];

/// Those of papers are named; all others reach the bits. On points that no choice has seen the error is hardly larger.
#[test]
fn what_the_catalogue_chooses_reaches_its_bits() {
    let bits = 14.0;
    let fixed = ["taylor-newton", "limit", "piecewise", "f4-g4", "constant"];
    for (target, low, high) in TARGETS {
        for entry in catalogue(target, low, high, bits) {
            let approximation = entry.approximation.unwrap();
            let error = approximation.worst_error(grid(low, high));
            let (name, target) = (entry.name, target.name());
            if !fixed.contains(&name) {
                // Choosers measure on grids of their own.
                assert!(
                    error < 1.01 * 2f64.powf(-bits),
                    "{name} of {target}: {error:e}"
                );
            }
            let between = (0..7919).map(|k| low + (high - low) * f64::from(k) / 7918.0);
            let unseen = approximation.worst_error(between);
            assert!(
                unseen < 1.05 * error + 1e-12,
                "{name} of {target}: {unseen:e}, {error:e}"
            );
        }
    }
}

#[test]
fn what_cannot_be_made_says_why() {
    let entries = catalogue(Target::Exp, -299.0, 1.0, 14.0);
    let limit = entries.iter().find(|entry| entry.name == "limit").unwrap();
    assert!(matches!(
        limit.approximation,
        Err(ApproxError::Interval { .. })
    ));
    let inverses = catalogue(Target::Inverse, 1e-12, 1.0, 20.0).into_iter();
    for entry in inverses.filter(|entry| entry.name != "constant") {
        assert!(matches!(
            entry.approximation,
            Err(ApproxError::TooWide { .. })
        ));
    }
    for target in [Target::Inverse, Target::InverseSqrt, Target::Exp] {
        let nothing = catalogue(target, f64::NAN, 1.0, 14.0);
        assert!(nothing.iter().all(|entry| entry.approximation.is_err()));
    }
}
