//! Sums of products with plaintexts, and the weights and masks that are kept for them.

use std::sync::Arc;

use rayon::prelude::*;
use taciturn_ckks::{Ciphertext, CkksError, IntegerPlaintext, Level, Scale};

use super::{CpuMachine, complex};
use crate::{Diagonals, Plain};

/// Plaintexts that one thread computes before it encodes them: neighbours share what is read of the weights.
const NEIGHBOURS: usize = 32;

impl CpuMachine {
    /// The plaintexts of one giant step of a linear map, by giant and baby rotation.
    pub(super) fn encode_giant_step(
        &self,
        diagonals: &Diagonals,
        giant: usize,
        scale: Scale,
    ) -> Result<Vec<(i64, i64, IntegerPlaintext)>, CkksError> {
        let babies = diagonals.baby_steps();
        let turn = diagonals.giant_rotation(giant);
        let mut steps = Vec::with_capacity(babies);
        for first in (0..babies).step_by(NEIGHBOURS) {
            let some = first..(first + NEIGHBOURS).min(babies);
            let values = diagonals.baby_giant_values(some.clone(), giant);
            for (baby, values) in some.zip(values) {
                let integers = self.encoder.encode_integers(&values, scale)?;
                steps.push((turn, (baby * diagonals.stride()) as i64, integers));
            }
        }
        Ok(steps)
    }

    /// Encodes the weights that are not kept yet, at a level's scale.
    pub(super) fn keep_weights<'p>(
        &mut self,
        plains: impl Iterator<Item = &'p Plain>,
        level: Level,
    ) -> Result<(), CkksError> {
        let scale = self.params.scale(level);
        let missing: Vec<&Plain> = plains
            .filter(|plain| !self.weights.contains_key(&(plain.id(), level.0)))
            .collect();
        let encode = |plain: &Plain| {
            let integers = self.encoder.encode_integers(&complex(plain), scale)?;
            Ok(((plain.id(), level.0), integers))
        };
        let encoded = missing
            .into_par_iter()
            .map(encode)
            .collect::<Result<Vec<_>, CkksError>>()?;
        self.weights.extend(encoded);
        Ok(())
    }

    /// A mask or shift at a scale, kept while there is room: most of them come again in every step.
    pub(super) fn mask(
        &mut self,
        plain: &Plain,
        scale: Scale,
    ) -> Result<Arc<IntegerPlaintext>, CkksError> {
        let key = (plain.id(), scale.0.to_bits());
        if let Some(known) = self.masks.get(key) {
            return Ok(known);
        }
        let made = Arc::new(self.encoder.encode_integers(&complex(plain), scale)?);
        self.masks.keep(key, made.clone());
        Ok(made)
    }

    /// The sum of products with plaintexts, one level down.
    pub(super) fn sum_of_products<'a>(
        &self,
        pairs: impl Iterator<Item = (&'a Arc<Ciphertext>, &'a IntegerPlaintext)>,
    ) -> Result<Arc<Ciphertext>, CkksError> {
        let pairs: Vec<_> = pairs.map(|(a, plain)| (&**a, plain)).collect();
        let sum = self.evaluator.dot_integers(&pairs)?;
        self.landed(self.evaluator.rescale(&sum)?)
    }
}
