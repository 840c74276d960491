//! Sums of products with plaintexts, and the weights and masks that are kept for them.

use std::sync::Arc;

use rayon::prelude::*;
use taciturn_ckks::{Ciphertext, CkksError, IntegerPlaintext, Level, Scale};

use super::{CpuMachine, complex};
use crate::Plain;

impl CpuMachine {
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
        pairs: impl Iterator<Item = (&'a Ciphertext, &'a IntegerPlaintext)>,
    ) -> Result<Ciphertext, CkksError> {
        let pairs: Vec<_> = pairs.collect();
        let sum = self.evaluator.dot_integers(&pairs)?;
        self.landed(self.evaluator.rescale(&sum)?)
    }
}
