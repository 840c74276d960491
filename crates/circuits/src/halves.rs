//! Two values in one, the first in the even blocks of slots and the second in the odd ones.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use taciturn_ckks::{
    Ciphertext, CkksError, Complex64, Encoder, Evaluator, IntegerPlaintext, Scale,
};

/// Takes a value of period 2d apart into two of period d: its even blocks of d slots, and its odd ones.
pub(crate) struct Halves {
    d: usize,
    /// The even blocks' mask, by the bits of its scale: where a device computes it stays there.
    masks: Mutex<HashMap<u64, Arc<IntegerPlaintext>>>,
}

impl Halves {
    /// For blocks of 2^log_d slots.
    pub(crate) fn new(log_d: u32) -> Self {
        Self {
            d: 1 << log_d,
            masks: Mutex::default(),
        }
    }

    /// The rotation that needs a key, on the limbs of the operand.
    pub(crate) fn rotation(&self) -> i64 {
        self.d as i64
    }

    /// Both values, one level below the operand, whose scale is its level's canonical one. One rotation and one plain product.
    pub(crate) fn apart(
        &self,
        encoder: &Encoder,
        ev: &Evaluator,
        both: &Ciphertext,
    ) -> Result<[Ciphertext; 2], CkksError> {
        let mask = self.mask(encoder, both.scale)?;
        let even = encoder.to_plaintext(&mask, both.basis());
        // With E the even blocks' mask, o the operand and t what it is when turned: E o + (1 - E) t = E (o - t) + t is the first value
        // everywhere, and (1 - E) o + E t = o - E (o - t) the second.
        let turned = ev.rotate(both, self.rotation())?;
        let mut difference = both.clone();
        ev.sub_assign(&mut difference, &turned)?;
        let difference = ev.mul_plain(&difference, &even)?;
        let scaled = |value: &Ciphertext| {
            let mut scaled = value.clone();
            ev.mul_integer_assign(&mut scaled, even.scale.0.round() as i128);
            scaled.scale = difference.scale;
            scaled
        };
        let (mut first, mut second) = (scaled(&turned), scaled(both));
        ev.add_assign(&mut first, &difference)?;
        ev.sub_assign(&mut second, &difference)?;
        Ok([ev.rescale(&first)?, ev.rescale(&second)?])
    }

    fn mask(&self, encoder: &Encoder, scale: Scale) -> Result<Arc<IntegerPlaintext>, CkksError> {
        let mut masks = self.masks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mask) = masks.get(&scale.0.to_bits()) {
            return Ok(mask.clone());
        }
        let ones = (0..2 * self.d).map(|i| Complex64::new(f64::from(u8::from(i < self.d)), 0.0));
        let mask = encoder.encode_integers(&ones.collect::<Vec<_>>(), scale)?;
        let mask = Arc::new(mask);
        masks.insert(scale.0.to_bits(), mask.clone());
        Ok(mask)
    }
}
