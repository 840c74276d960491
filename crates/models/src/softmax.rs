//! The divisions of a softmax by rounds of normalise-and-square: polynomials, or why there is none.

use taciturn_approx::Inverse;

use crate::error::ModelError;

/// Degree of the coarse division of the first sum. Where it does not suffice there is another way: one more squaring, which halves the
/// logarithms of the sums' ratio.
const FIRST_DEGREE: usize = 15;
/// Degrees of the other coarse divisions, the first that suffices. No squaring helps here: weights that sum to one have a sum of squares from
/// one over the number of tokens to one.
const LATER_DEGREES: [usize; 3] = [15, 31, 63];
/// Relative error that a coarse division may have: it only has to keep sums in the next interval.
const COARSE_ERROR: f64 = 0.5;

/// The coarse divisions of all rounds, and the interval of the last sum.
#[derive(Clone, Debug)]
pub(crate) struct Divisions {
    pub(crate) coarse: Vec<Inverse>,
    pub(crate) last: (f64, f64),
}

/// Whether the first of several sums with this ratio of its interval's ends can be divided by.
pub(crate) fn first_divides(ratio: f64) -> Result<bool, ModelError> {
    Ok(coarse(0, (1.0 / ratio, 1.0))?.is_some())
}

/// Divisions for the calibrated intervals of a layer's sums, one more than there are squarings.
pub(crate) fn divisions(layer: usize, intervals: &[(f64, f64)]) -> Result<Divisions, ModelError> {
    // A coarse division by a factor within 1 +- e leaves sums of squares off by its square.
    let mut factor = (1.0, 1.0);
    let mut widened = Vec::with_capacity(intervals.len());
    let mut inverses = Vec::with_capacity(intervals.len());
    for (round, &(low, high)) in intervals.iter().enumerate() {
        let (low, high) = (low * factor.0, high * factor.1);
        widened.push((low, high));
        let Some((inverse, error)) = coarse(round, (low, high))? else {
            return Err(ModelError::Calibration {
                what: "softmax denominators",
                expected: format!(
                    "a ratio that a polynomial can divide by in round {round} of layer {layer}"
                ),
                got: format!("[{low:.3e}, {high:.3e}]; calibrate with more squarings"),
            });
        };
        factor = ((1.0 - error).powi(2), (1.0 + error).powi(2));
        inverses.push(inverse);
    }
    // The last sum is divided by with all digits; that a coarse division exists shows that its interval is reasonable.
    inverses.pop();
    let last = widened.pop().unwrap_or((1.0, 1.0));
    Ok(Divisions {
        coarse: inverses,
        last,
    })
}

/// A coarse division of a round with its worst relative error.
fn coarse(round: usize, (low, high): (f64, f64)) -> Result<Option<(Inverse, f64)>, ModelError> {
    let degrees = match round {
        0 => &[FIRST_DEGREE][..],
        _ => &LATER_DEGREES,
    };
    for &degree in degrees {
        let inverse = Inverse::fit(low, high, degree, 0)?;
        let error = 2f64.powf(-inverse.worst_error_bits());
        if error < COARSE_ERROR {
            return Ok(Some((inverse, error)));
        }
    }
    Ok(None)
}
