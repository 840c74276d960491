//! Polynomials, and the maps to their intervals.

use taciturn_approx::Chebyshev;
use taciturn_circuits::evaluate_chebyshev;
use taciturn_ckks::{Ciphertext, CkksError, Complex64, Level};

use super::CpuMachine;
use crate::machine::{is_unit_interval, polynomial_depth};

impl CpuMachine {
    /// A product with a constant, one level down.
    pub(super) fn times_constant(
        &self,
        a: &Ciphertext,
        constant: f64,
    ) -> Result<Ciphertext, CkksError> {
        let landing = Level(self.level_of(a).0.saturating_sub(1));
        self.evaluator
            .mul_constant_to(a, constant, self.params.scale(landing))
    }

    /// A polynomial of a value.
    pub(super) fn evaluated(
        &self,
        a: &Ciphertext,
        polynomial: &Chebyshev,
    ) -> Result<Ciphertext, CkksError> {
        let depth = polynomial_depth(polynomial) as usize;
        let level = self.level_of(a);
        let landing = level
            .0
            .checked_sub(depth)
            .ok_or_else(|| CkksError::Mismatch {
                operation: "polynomial",
                expected: format!("a value at level {depth} or above"),
                got: level.to_string(),
            })?;
        let target = self.params.scale(Level(landing));
        if is_unit_interval(polynomial) {
            return evaluate_chebyshev(&self.evaluator, a, &polynomial.coefficients, target);
        }
        let width = polynomial.high - polynomial.low;
        let mut unit = self.times_constant(a, 2.0 / width)?;
        let shift = -(polynomial.low + polynomial.high) / width;
        self.evaluator
            .add_constant_assign(&mut unit, Complex64::new(shift, 0.0))?;
        evaluate_chebyshev(&self.evaluator, &unit, &polynomial.coefficients, target)
    }
}
