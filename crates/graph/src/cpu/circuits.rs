//! Operations that a device replays: each is a circuit by itself, found again by what it does.

use std::collections::HashMap;
use std::sync::Arc;

use taciturn_approx::Chebyshev;
use taciturn_ckks::{Ciphertext, CircuitId, CkksError};

use super::CpuMachine;
use crate::PlainId;

/// Operations that are known at a time. Those that come in one step only add up to more in a long exchange: then all begin anew.
const KNOWN: usize = 1 << 14;

/// What an operation does, beside the shapes of its inputs.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Circuit {
    /// A linear map that is kept encoded.
    Transform(PlainId),
    /// A polynomial: bits of its interval and its coefficients.
    Polynomial(Vec<u64>),
    /// The sum of so many products.
    Products(usize),
    /// The sum of products with weights that are kept encoded.
    Weights(Vec<PlainId>),
    /// The sum of products with other plaintexts. Some of them come in one step only and are never replayed.
    Masks(Vec<PlainId>),
    /// Rotations of one value.
    Rotations(Vec<i64>),
}

impl Circuit {
    pub(super) fn of_polynomial(polynomial: &Chebyshev) -> Self {
        let interval = [polynomial.low, polynomial.high];
        let numbers = interval.iter().chain(&polynomial.coefficients);
        Self::Polynomial(numbers.map(|x| x.to_bits()).collect())
    }
}

/// The numbers under which an evaluator knows a machine's operations.
#[derive(Default)]
pub(super) struct Circuits(HashMap<Circuit, CircuitId>);

impl CpuMachine {
    /// Runs an operation; a device replays it from the third time on. It must depend on nothing but its inputs, what `circuit` says, and what
    /// stays as it is for as long as the machine is there.
    pub(super) fn recorded(
        &mut self,
        circuit: Circuit,
        inputs: &[&Ciphertext],
        work: impl Fn(&Self, &[&Ciphertext]) -> Result<Vec<Ciphertext>, CkksError>,
    ) -> Result<Vec<Ciphertext>, CkksError> {
        let known = &mut self.circuits.0;
        if known.len() >= KNOWN {
            known.clear();
        }
        let id = *known.entry(circuit).or_insert_with(CircuitId::new);
        self.evaluator
            .recorded(id, 0, inputs, |inputs| work(self, inputs))
    }

    /// The same of an operation with one result.
    pub(super) fn recorded_one(
        &mut self,
        circuit: Circuit,
        inputs: &[&Ciphertext],
        work: impl Fn(&Self, &[&Ciphertext]) -> Result<Ciphertext, CkksError>,
    ) -> Result<Arc<Ciphertext>, CkksError> {
        let results = self.recorded(circuit, inputs, |machine, inputs| {
            work(machine, inputs).map(|result| vec![result])
        })?;
        let result = results.into_iter().next();
        Ok(Arc::new(result.expect("the work gives one result")))
    }
}
