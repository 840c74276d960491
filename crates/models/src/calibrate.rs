//! Sample text -> a calibration table: the interval of every site, and the constants that keep softmax denominators narrow.

use std::collections::BTreeMap;
use std::path::Path;

use rayon::prelude::*;
use taciturn_approx::{CALIBRATION_VERSION, Calibration, SiteRange};

use crate::checkpoint::Checkpoint;
use crate::clear::ClearModel;
use crate::error::ModelError;
use crate::files;
use crate::observe::{Observed, RangeCollector, SumCollector, denominator_name};
use crate::shift::{HeadSamples, HeadShift, fit_shift};
use crate::site::Observer;
use crate::softmax::{check_divisions, first_divides};

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
    /// Least rounds of normalise-and-square after the first exponential of a softmax; 0 allows the plain softmax. More are taken where
    /// the sums would otherwise vary too much to divide by them.
    pub squarings: u32,
}

impl Default for CalibrationOptions {
    fn default() -> Self {
        Self {
            context: 128,
            windows: 64,
            margin: 0.2,
            squarings: 0,
        }
    }
}

/// Name of the constant added to every key that a query head meets: `heads * head_width` values, head after head.
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
/// twice by the clear model, rarely more often.
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
    let (squarings, shifts, ranges) = fit_softmax(checkpoint, &windows, options)?;
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
    let temperature = f64::from(1u32 << squarings);
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
        softmax_squarings: squarings,
        sites: sites.collect(),
        bounds: BTreeMap::new(),
        constants: constants.collect(),
    };
    calibration.check(&checkpoint.hash)?;
    Ok(calibration)
}

type Shifts = Vec<Vec<HeadShift>>;

/// The least number of squarings that works, with its shifts and the ranges of every site.
fn fit_softmax(
    checkpoint: &Checkpoint,
    windows: &[&[u32]],
    options: &CalibrationOptions,
) -> Result<(u32, Shifts, BTreeMap<String, Observed>), ModelError> {
    let config = &checkpoint.config;
    let candidates = options.squarings..=MAX_SQUARINGS;
    let collected = observe_windows(checkpoint, windows, || {
        SumCollector::new(config, candidates.clone())
    })?;
    let headroom = options.margin.ln_1p();
    let mut failure = None;
    for (index, squarings) in candidates.enumerate() {
        let fitted: Vec<Vec<(HeadShift, f64)>> = (0..config.layers)
            .map(|layer| {
                let heads = (0..config.heads).into_par_iter().map(|head| {
                    let gather = |first: usize| {
                        let mut part = HeadSamples::default();
                        for window in collected.iter().skip(first).step_by(2) {
                            window.samples[layer][head].append_to(&mut part, index);
                        }
                        part
                    };
                    let (fit, other) = (gather(0), gather(1));
                    let (channels, context) = (config.head_width, options.context);
                    let shift = fit_shift(&fit, &other, channels, context, headroom);
                    let spreads = [shift.spread(&fit), shift.spread(&other)];
                    let low = spreads[0].0.min(spreads[1].0);
                    let high = spreads[0].1.max(spreads[1].1);
                    (shift, high - low)
                });
                heads.collect()
            })
            .collect();
        let spread = fitted.iter().flatten().fold(0.0, |w: f64, h| w.max(h.1));
        // What the first sums say costs nothing more; only then all sites are measured.
        let ratio = (spread + 2.0 * headroom).exp();
        if squarings < MAX_SQUARINGS && !(ratio.is_finite() && first_divides(ratio)?) {
            continue;
        }
        let shifts: Shifts = fitted
            .into_iter()
            .map(|heads| heads.into_iter().map(|(shift, _)| shift).collect())
            .collect();
        let ranges = measure(checkpoint, windows, &shifts, squarings)?;
        match divisible(config.layers, &ranges, squarings, options.margin) {
            Ok(()) => return Ok((squarings, shifts, ranges)),
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.unwrap_or_else(|| bad("squarings", "at least one".into(), "none".into())))
}

fn divisible(
    layers: usize,
    ranges: &BTreeMap<String, Observed>,
    squarings: u32,
    margin: f64,
) -> Result<(), ModelError> {
    for layer in 0..layers {
        let intervals: Vec<(f64, f64)> = (0..=squarings)
            .filter_map(|round| ranges.get(&denominator_name(layer, round)))
            .map(|seen| {
                let range = SiteRange::positive(&seen.min, &seen.max, margin, seen.samples);
                (range.low(), range.high())
            })
            .collect();
        check_divisions(layer, &intervals)?;
    }
    Ok(())
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
            let shift = calibration.constant(&key_shift_name(layer), config.query_width())?;
            let beta = calibration.constant(&beta_name(layer), config.heads * context)?;
            let heads = shift.chunks(config.head_width).zip(beta.chunks(context));
            Ok(heads
                .map(|(shift, beta)| HeadShift {
                    slope: shift.iter().map(|s| -s / temperature).collect(),
                    beta: beta.to_vec(),
                })
                .collect())
        })
        .collect::<Result<Vec<Vec<HeadShift>>, ModelError>>()?;
    let windows: Vec<&[u32]> = tokens.chunks_exact(context - 1).collect();
    if windows.is_empty() {
        return Err(bad(
            "text held out",
            format!("at least one window of {} tokens", context - 1),
            format!("{} tokens", tokens.len()),
        ));
    }
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
    if options.windows < 2 {
        return Err(bad(
            "windows",
            "at least 2".into(),
            options.windows.to_string(),
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
