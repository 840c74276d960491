//! What a bootstrap is made for, and what that takes.

/// The usual log2 of q0 over the largest message coefficient. The sine differs from the best line by (2 pi / ratio)^2 / 24 of the bound at
/// most, 2^-20.3 at 10.5 bits; noise of a slot grows with the ratio.
pub const MESSAGE_RATIO_BITS: f64 = 10.5;

/// What the slots of a bootstrap's value hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Values {
    /// Reals. They become the real and imaginary parts of half as many complex values; one EvalMod.
    Real,
    /// Complex values: an EvalMod for each part.
    Complex,
    /// Reals of two values at once, with one EvalMod: for at most half of the slots.
    Pair,
}

/// What one bootstrap is made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BootstrapShape {
    /// log2 of the distinct slots of the value.
    pub log_slots: u32,
    /// Bound on the absolute value of every slot (of the real and the imaginary part each).
    pub bound: f64,
    /// What the slots hold.
    pub values: Values,
    /// log2 of q0 over the largest message coefficient: more makes the sine truer and the message smaller beside the noise. See
    /// [`MESSAGE_RATIO_BITS`].
    pub message_ratio_bits: f64,
}

/// Message ratios that make sense: below, the sine bends within the message; above, noise drowns it.
pub(crate) const RATIOS: std::ops::RangeInclusive<f64> = 6.0..=20.0;

/// Levels that SlotsToCoeffs takes from the input: one for a value of a single slot (its scaling), up to three for all slots.
pub fn slots_to_coeffs_levels(log_slots: u32) -> usize {
    match log_slots {
        0..=6 => 1,
        7..=11 => 2,
        _ => 3,
    }
}

impl BootstrapShape {
    /// log2 of the complex slots whose coefficients the modulus is raised of: two reals make one.
    pub(crate) fn log_complex_slots(&self) -> u32 {
        match self.values {
            Values::Real => self.log_slots.saturating_sub(1),
            Values::Complex | Values::Pair => self.log_slots,
        }
    }

    /// A single real, which has no transforms: the trace leaves its one coefficient.
    pub(crate) fn is_constant(&self) -> bool {
        self.log_slots == 0 && self.values == Values::Real
    }

    /// Stages (and limbs) of CoeffsToSlots; a single slot needs one limb for its scaling.
    pub(crate) fn coeffs_to_slots_stages(&self) -> usize {
        match self.log_complex_slots() {
            0..=3 => 1,
            4..=8 => 2,
            _ => 3,
        }
    }
}
