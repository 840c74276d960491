//! Magnitudes of the encrypted step's values, measured by simulating it on sample text.

use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;
use taciturn_approx::Calibration;
use taciturn_graph::{Logical, NoiseLevels};

use crate::checkpoint::Checkpoint;
use crate::error::ModelError;
use crate::step::StepModel;

/// Slots of the machine whose steps are simulated. Magnitudes do not depend on it.
const SLOTS: usize = 1 << 15;
/// Share by which magnitudes are widened.
const MARGIN: f64 = 0.5;

/// Under which name the table holds the bound of a node: numbered members of one value (its groups or blocks) share one, because how
/// many there are follows the number of slots.
pub(crate) fn bound_name(node: &str) -> &str {
    match node.rsplit_once('.') {
        Some((value, member)) if member.bytes().all(|b| b.is_ascii_digit()) => value,
        _ => node,
    }
}

/// Simulates the step, approximations included, on windows of sample text, and puts the magnitude of every value into the table.
///
/// Fails where a value leaves its calibrated interval: the table is then not good for this text.
pub fn measure_bounds(
    checkpoint: &Checkpoint,
    calibration: &mut Calibration,
    tokens: &[u32],
    windows: usize,
) -> Result<(), ModelError> {
    let model = StepModel::new(checkpoint, calibration, SLOTS, calibration.context)?;
    let windows: Vec<&[u32]> = tokens
        .chunks_exact(calibration.context - 1)
        .take(windows)
        .collect();
    let measured: Vec<BTreeMap<String, f64>> = windows
        .par_iter()
        .map(|window| magnitudes(&model, window))
        .collect::<Result<_, _>>()?;
    let mut bounds = BTreeMap::new();
    for (name, magnitude) in measured.into_iter().flatten() {
        let bound: &mut f64 = bounds.entry(bound_name(&name).to_owned()).or_default();
        *bound = bound.max((1.0 + MARGIN) * magnitude);
    }
    // A value that is always zero (a bias of zeros added to zeros) needs no refresh, and a bound of zero would be none.
    bounds.retain(|_, bound| *bound > 0.0);
    calibration.bounds = bounds;
    Ok(())
}

fn magnitudes(model: &StepModel, window: &[u32]) -> Result<BTreeMap<String, f64>, ModelError> {
    let mut simulator = Logical::simulated(NoiseLevels::NONE, 0);
    let mut caches: HashMap<String, Vec<f64>> = HashMap::new();
    for (name, plain) in model.prefix_caches() {
        caches.insert(name, plain.values());
    }
    for (i, &token) in window.iter().enumerate() {
        let graph = model.graph(i + 1)?;
        caches.insert(StepModel::input_name().into(), model.embed(token, i + 1)?);
        let outputs = simulator.run(&graph, None, &caches)?;
        caches.extend(
            outputs
                .into_iter()
                .filter(|(name, _)| name.contains(".cache.")),
        );
    }
    Ok(simulator.magnitudes().clone())
}
