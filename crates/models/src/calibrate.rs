//! Sample text -> a calibration table: the interval of every site, and the constants that keep softmax denominators narrow.

use std::collections::BTreeMap;
use std::path::Path;

use rayon::prelude::*;
use taciturn_approx::{CALIBRATION_VERSION, Calibration, SiteRange};

use crate::checkpoint::Checkpoint;
use crate::clear::ClearModel;
use crate::error::ModelError;
use crate::files;
use crate::observe::{Observed, RangeCollector, SumCollector};
use crate::shift::{HeadSamples, HeadShift, fit_shift};
use crate::site::Observer;

/// Name of the table beside a checkpoint.
pub const CALIBRATION_FILE: &str = "taciturn.calibration.json";

/// Largest table read, in bytes.
const MAX_TABLE_BYTES: u64 = 256 << 20;

/// Most rounds of normalise-and-square: with more, the first exponential is flat.
const MAX_SQUARINGS: u32 = 8;

/// How to measure a model.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationOptions {
    /// Tokens per window, the beginning-of-text token included; the table holds for positions below it.
    pub context: usize,
    /// Most windows measured.
    pub windows: usize,
    /// Share by which intervals are widened: of their length, or of their ends where a ratio matters.
    pub margin: f64,
    /// Rounds of normalise-and-square after the first exponential of a softmax; 0 is the plain softmax.
    pub squarings: u32,
}

impl Default for CalibrationOptions {
    fn default() -> Self {
        Self {
            context: 128,
            windows: 64,
            margin: 0.2,
            squarings: 3,
        }
    }
}

/// Name of the constant added to every key of a block: `width` values, head after head.
pub fn key_shift_name(layer: usize) -> String {
    format!("layer{layer}.key_shift")
}

/// Name of the constant subtracted from `score / 2^squarings`: `context` values per head, one per position, head after head.
pub fn beta_name(layer: usize) -> String {
    format!("layer{layer}.beta")
}

/// Measures a model on `tokens` (sample text without a beginning-of-text token), cut into windows that each follow one.
///
/// The first token's own values are in no range: it is public and computed in the clear; scores against it are included. Shifts
/// are fitted on every other window and ranges measured on all, so the ranges do not flatter the fit. Cost: each window is run
/// twice by the clear model.
pub fn calibrate(
    checkpoint: &Checkpoint,
    tokens: &[u32],
    options: &CalibrationOptions,
) -> Result<Calibration, ModelError> {
    let config = &checkpoint.config;
    check_options(options, config.positions)?;
    let windows: Vec<&[u32]> = tokens
        .chunks_exact(options.context - 1)
        .take(options.windows)
        .collect();
    if windows.len() < 2 {
        let got = format!("{} tokens", tokens.len());
        return Err(bad(
            "text",
            format!("at least two windows of {} tokens", options.context - 1),
            got,
        ));
    }
    let collected = observe_windows(checkpoint, &windows, || {
        SumCollector::new(config, options.squarings)
    })?;
    let headroom = options.margin.ln_1p();
    let shifts: Vec<Vec<HeadShift>> = (0..config.layers)
        .map(|layer| {
            let heads = (0..config.heads).into_par_iter().map(|head| {
                let gather = |step: usize| {
                    let mut all = HeadSamples::default();
                    for window in collected.iter().step_by(step) {
                        let part = &window.samples[layer][head];
                        all.queries.extend(&part.queries);
                        all.positions.extend(&part.positions);
                        all.sums.extend(&part.sums);
                    }
                    all
                };
                fit_shift(
                    &gather(2),
                    &gather(1),
                    config.head_width(),
                    options.context,
                    headroom,
                )
            });
            heads.collect()
        })
        .collect();
    let ranges = measure(checkpoint, &windows, &shifts, options.squarings)?;
    let sites = ranges.into_iter().map(|(name, seen)| {
        let make = if seen.positive {
            SiteRange::positive
        } else {
            SiteRange::signed
        };
        (
            name,
            make(&seen.min, &seen.max, options.margin, seen.samples),
        )
    });
    let temperature = f64::from(1u32 << options.squarings);
    let constants = shifts.iter().enumerate().flat_map(|(layer, heads)| {
        let shift = heads
            .iter()
            .flat_map(|h| h.slope.iter().map(|s| -s * temperature))
            .collect();
        let beta = heads.iter().flat_map(|h| h.beta.iter().copied()).collect();
        [(key_shift_name(layer), shift), (beta_name(layer), beta)]
    });
    let calibration = Calibration {
        version: CALIBRATION_VERSION,
        model_hash: checkpoint.hash.clone(),
        context: options.context,
        softmax_squarings: options.squarings,
        sites: sites.collect(),
        bounds: BTreeMap::new(),
        constants: constants.collect(),
    };
    calibration.check(&checkpoint.hash)?;
    Ok(calibration)
}

/// How far a text leaves the table's intervals: per site the worst excess over an end, as a share of the interval's length.
/// Sites that stay inside are absent.
pub fn overshoot(
    checkpoint: &Checkpoint,
    tokens: &[u32],
    calibration: &Calibration,
) -> Result<BTreeMap<String, f64>, ModelError> {
    let config = &checkpoint.config;
    calibration.check(&checkpoint.hash)?;
    let (context, squarings) = (calibration.context, calibration.softmax_squarings);
    check_options(
        &CalibrationOptions {
            context,
            squarings,
            ..CalibrationOptions::default()
        },
        config.positions,
    )?;
    let temperature = f64::from(1u32 << squarings);
    let shifts = (0..config.layers)
        .map(|layer| {
            let shift = calibration.constant(&key_shift_name(layer), config.width)?;
            let beta = calibration.constant(&beta_name(layer), config.heads * context)?;
            let heads = shift.chunks(config.head_width()).zip(beta.chunks(context));
            Ok(heads
                .map(|(shift, beta)| HeadShift {
                    slope: shift.iter().map(|s| -s / temperature).collect(),
                    beta: beta.to_vec(),
                })
                .collect())
        })
        .collect::<Result<Vec<Vec<HeadShift>>, ModelError>>()?;
    let windows: Vec<&[u32]> = tokens.chunks_exact(context - 1).collect();
    let mut excesses = BTreeMap::new();
    for (name, seen) in measure(checkpoint, &windows, &shifts, squarings)? {
        let range = calibration.site(&name)?;
        let heads = range
            .min
            .iter()
            .zip(&range.max)
            .zip(seen.min.iter().zip(&seen.max));
        let excess =
            heads.map(|((low, high), (min, max))| (low - min).max(max - high) / (high - low));
        let worst = excess.fold(0.0, f64::max);
        if worst > 0.0 {
            excesses.insert(name, worst);
        }
    }
    Ok(excesses)
}

/// Writes a table beside its checkpoint.
pub fn save_calibration(folder: &Path, calibration: &Calibration) -> Result<(), ModelError> {
    let path = folder.join(CALIBRATION_FILE);
    let text = serde_json::to_string(calibration).map_err(|source| ModelError::Json {
        path: path.clone(),
        source,
    })?;
    std::fs::write(&path, text).map_err(|source| ModelError::Io { path, source })
}

/// Reads and checks the table beside a checkpoint. Fails if there is none, or if it was made for other weights.
pub fn load_calibration(folder: &Path, checkpoint: &Checkpoint) -> Result<Calibration, ModelError> {
    let path = folder.join(CALIBRATION_FILE);
    let bytes = files::read_limited(&path, MAX_TABLE_BYTES)?;
    let calibration: Calibration =
        serde_json::from_slice(&bytes).map_err(|source| ModelError::Json { path, source })?;
    calibration.check(&checkpoint.hash)?;
    Ok(calibration)
}

fn bad(what: &'static str, expected: String, got: String) -> ModelError {
    ModelError::Calibration {
        what,
        expected,
        got,
    }
}

fn check_options(options: &CalibrationOptions, positions: usize) -> Result<(), ModelError> {
    if !(2..=positions).contains(&options.context) {
        return Err(bad(
            "context",
            format!("2 to {positions} tokens"),
            options.context.to_string(),
        ));
    }
    if options.squarings > MAX_SQUARINGS {
        return Err(bad(
            "squarings",
            format!("at most {MAX_SQUARINGS}"),
            options.squarings.to_string(),
        ));
    }
    if !(options.margin >= 0.0 && options.margin <= 100.0) {
        return Err(bad(
            "margin",
            "a share from 0 to 100".into(),
            options.margin.to_string(),
        ));
    }
    Ok(())
}

/// Runs the clear model over every window, each with its own observer, which sees all tokens but the first.
fn observe_windows<O: Observer + Send>(
    checkpoint: &Checkpoint,
    windows: &[&[u32]],
    observer: impl Fn() -> O + Sync,
) -> Result<Vec<O>, ModelError> {
    let model = ClearModel::new(checkpoint);
    let run = |window: &&[u32]| {
        let (mut cache, mut observer) = (model.cache(), observer());
        model.step(&mut cache, checkpoint.config.bos)?;
        for &token in *window {
            model.step_observed(&mut cache, token, &mut observer)?;
        }
        Ok(observer)
    };
    windows.par_iter().map(run).collect()
}

fn measure(
    checkpoint: &Checkpoint,
    windows: &[&[u32]],
    shifts: &[Vec<HeadShift>],
    squarings: u32,
) -> Result<BTreeMap<String, Observed>, ModelError> {
    let collector = || RangeCollector::new(&checkpoint.config, shifts, squarings);
    let mut ranges: BTreeMap<String, Observed> = BTreeMap::new();
    for window in observe_windows(checkpoint, windows, collector)? {
        for (name, seen) in window.ranges {
            match ranges.get_mut(&name) {
                Some(all) => all.merge(&seen),
                None => _ = ranges.insert(name, seen),
            }
        }
    }
    Ok(ranges)
}
