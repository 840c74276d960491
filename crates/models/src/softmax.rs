//! The divisions of a softmax by rounds of normalise-and-square: their intervals, and what the coarse ones are divided by.

use taciturn_approx::{Approximation, Inverse, Named};

use crate::error::ModelError;

/// Degree of the coarse division of the first sum. Where it does not suffice there is another way: one more squaring, which halves the
/// logarithms of the sums' ratio.
const FIRST_DEGREE: usize = 15;
/// Degrees of the other coarse divisions, the first that suffices. No squaring helps here: weights that sum to one have a sum of squares from
/// one over the number of tokens to one.
const LATER_DEGREES: [usize; 3] = [15, 31, 63];
/// Relative error that a coarse division may have: it only has to keep sums in the next interval.
const COARSE_ERROR: f64 = 0.5;
/// Bits of a coarse division beyond which it makes no difference: the next interval is widened for an error of as many.
pub(crate) const COARSE_BITS: f64 = 7.0;

/// The rounds of one layer, in order.
pub(crate) struct Rounds {
    layer: usize,
    round: usize,
    /// What the sums of the next round may be off by.
    factor: (f64, f64),
}

impl Rounds {
    pub(crate) fn new(layer: usize) -> Self {
        Rounds {
            layer,
            round: 0,
            factor: (1.0, 1.0),
        }
    }

    /// The interval of this round's sums, which was calibrated with exact divisions.
    pub(crate) fn interval(&self, (low, high): (f64, f64)) -> (f64, f64) {
        (low * self.factor.0, high * self.factor.1)
    }

    /// The division of this round where nobody asks for another.
    pub(crate) fn coarse(&self, interval: (f64, f64)) -> Result<Inverse, ModelError> {
        let (low, high) = interval;
        match coarse(self.round, interval)? {
            Some(inverse) => Ok(inverse),
            None => Err(self.too_wide(
                "a ratio that a polynomial can divide by",
                format!("[{low:.3e}, {high:.3e}]; calibrate with more squarings"),
            )),
        }
    }

    /// Goes to the next round, whose sums are off by the square of what this one's division is off by.
    pub(crate) fn divided(&mut self, by: &Named) -> Result<(), ModelError> {
        let error = (-by.approximation.bits()).exp2();
        if error.is_nan() || error >= COARSE_ERROR {
            return Err(self.too_wide(
                &format!("a relative error of the division below {COARSE_ERROR}"),
                format!("{error:.2} by {by}; choose another approximation"),
            ));
        }
        let error = error.max((-COARSE_BITS).exp2());
        self.factor = ((1.0 - error).powi(2), (1.0 + error).powi(2));
        self.round += 1;
        Ok(())
    }

    fn too_wide(&self, expected: &str, got: String) -> ModelError {
        let (layer, round) = (self.layer, self.round);
        ModelError::Calibration {
            what: "softmax denominators",
            expected: format!("{expected} in round {round} of layer {layer}"),
            got,
        }
    }
}

/// Whether the first of several sums with this ratio of its interval's ends can be divided by.
pub(crate) fn first_divides(ratio: f64) -> Result<bool, ModelError> {
    Ok(coarse(0, (1.0 / ratio, 1.0))?.is_some())
}

/// Whether there are divisions for the calibrated intervals of a layer's sums, one more than there are squarings; an error says where not.
pub(crate) fn check_divisions(layer: usize, intervals: &[(f64, f64)]) -> Result<(), ModelError> {
    let mut rounds = Rounds::new(layer);
    for &interval in intervals {
        // The last sum is divided by with all digits; that a coarse division exists shows that its interval is reasonable.
        rounds.divided(&named(rounds.coarse(rounds.interval(interval))?))?;
    }
    Ok(())
}

/// A fitted polynomial by its name.
pub(crate) fn named(inverse: Inverse) -> Named {
    Named {
        name: "minimax-newton",
        approximation: Approximation::Inverse(inverse),
    }
}

/// A coarse division of a round.
fn coarse(round: usize, (low, high): (f64, f64)) -> Result<Option<Inverse>, ModelError> {
    let degrees = match round {
        0 => &[FIRST_DEGREE][..],
        _ => &LATER_DEGREES,
    };
    for &degree in degrees {
        let inverse = Inverse::fit(low, high, degree, 0)?;
        if inverse.worst_error_bits() > -COARSE_ERROR.log2() {
            return Ok(Some(inverse));
        }
    }
    Ok(None)
}
