//! Tables for contexts that nobody calibrated: to know what these would cost, never to compute with.

use taciturn_approx::Calibration;

use crate::calibrate::beta_name;
use crate::config::ModelConfig;
use crate::observe::denominator_name;

/// The table as it might be for a longer context: the values of later positions as those of the last that was measured, and sums over more
/// weights from as much further down as there are more tokens.
pub fn assumed_for(calibration: &Calibration, config: &ModelConfig, context: usize) -> Calibration {
    let measured = calibration.context;
    if context <= measured {
        return calibration.clone();
    }
    let mut assumed = Calibration {
        context,
        ..calibration.clone()
    };
    let more = context as f64 / measured as f64;
    for layer in 0..config.layers {
        if let Some(beta) = assumed.constants.get_mut(&beta_name(layer)) {
            *beta = (beta.chunks(measured))
                .flat_map(|head| {
                    let last = head.last().copied().unwrap_or(0.0);
                    let later = std::iter::repeat_n(last, context - head.len());
                    head.iter().copied().chain(later)
                })
                .collect();
        }
        // The first sum follows its constant; the later ones are of squares of weights that sum to one.
        for round in 1..=calibration.softmax_squarings {
            if let Some(range) = (assumed.sites).get_mut(&denominator_name(layer, round)) {
                range.min.iter_mut().for_each(|min| *min /= more);
            }
        }
    }
    assumed
}
