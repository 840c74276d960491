//! Two values in one, the first in the even blocks of slots and the second in the odd ones.

use std::sync::OnceLock;

use taciturn_ckks::{
    Ciphertext, CkksError, Complex64, Encoder, Evaluator, IntegerPlaintext, Parameters,
};

/// Takes a value of period 2d apart into two of period d: its even blocks of d slots, and its odd ones.
pub(crate) struct Halves {
    d: usize,
    /// The mask of the even blocks by the operand's level, encoded at its scale when first used.
    even: Vec<OnceLock<IntegerPlaintext>>,
}

impl Halves {
    /// For blocks of 2^log_d slots.
    pub(crate) fn new(params: &Parameters, log_d: u32) -> Self {
        Self {
            d: 1 << log_d,
            even: vec![OnceLock::new(); params.max_level().0 + 1],
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
        let even = encoder.to_plaintext(self.mask(encoder, both)?, both.basis());
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

    fn mask(&self, encoder: &Encoder, both: &Ciphertext) -> Result<&IntegerPlaintext, CkksError> {
        // A level has as many limbs and one.
        let known = &self.even[both.basis().len() - 1];
        if let Some(mask) = known.get() {
            return Ok(mask);
        }
        let ones = (0..2 * self.d).map(|i| Complex64::new(f64::from(u8::from(i < self.d)), 0.0));
        let mask = encoder.encode_integers(&ones.collect::<Vec<_>>(), both.scale)?;
        Ok(known.get_or_init(|| mask))
    }
}
