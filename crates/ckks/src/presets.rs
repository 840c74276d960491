//! The named parameter sets.

use crate::{CkksError, Parameters, ParametersLiteral, SecurityEstimate};

/// A named parameter set.
pub struct ParameterSet {
    /// Its name, as `--params` takes it.
    pub name: &'static str,
    literal: ParametersLiteral,
}

const SECURE: ParametersLiteral = ParametersLiteral {
    log_n: 16,
    base_bits: 50,
    level_bits: 40,
    levels: 16,
    eval_mod_limbs: 8,
    coeffs_to_slots_limbs: 3,
    bootstrap_special_limbs: 9,
    model_special_limbs: 5,
    sparse_weight: 32,
    insecure: false,
    // Lattice estimator, default cost model, sigma 3.19: 1,690 bits, uniform ternary.
    estimate: Some(SecurityEstimate {
        bits: 132.6,
        attack: "primal uSVP",
        date: "June 2026",
    }),
};

const fn insecure(log_n: u32) -> ParametersLiteral {
    ParametersLiteral {
        log_n,
        insecure: true,
        estimate: None,
        ..SECURE
    }
}

const SETS: [ParameterSet; 4] = [
    ParameterSet {
        name: "n16-128",
        literal: SECURE,
    },
    ParameterSet {
        name: "insecure-n13",
        literal: insecure(13),
    },
    ParameterSet {
        name: "insecure-n12",
        literal: insecure(12),
    },
    ParameterSet {
        name: "insecure-n11",
        literal: insecure(11),
    },
];

/// Names of all sets, the default first.
pub fn names() -> impl Iterator<Item = &'static str> {
    SETS.iter().map(|s| s.name)
}

/// Builds the named set.
pub fn named(name: &str) -> Result<Parameters, CkksError> {
    match SETS.iter().find(|s| s.name == name) {
        Some(set) => Parameters::new(set.name, set.literal),
        None => Err(CkksError::UnknownParameters {
            got: name.into(),
            known: names().collect::<Vec<_>>().join(", "),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn insecure_sets_say_so() {
        for set in &SETS {
            assert_eq!(
                set.literal.insecure,
                set.name.contains("insecure"),
                "{}",
                set.name
            );
        }
    }
}
