//! Quick measurements of this machine, interpolated to a whole table.

use std::time::Instant;

use anyhow::Result;
use rayon::prelude::*;
use taciturn_circuits::{
    BootstrapShape, Bootstrapper, MESSAGE_RATIO_BITS, Values, slots_to_coeffs_levels,
};
use taciturn_ckks::{Complex64, Encoder, Evaluator, KeyRequest, Level, Parameters};
use taciturn_graph::{BootstrapCost, CostTable, LevelCost};
use taciturn_secret::Keyholder;

use super::{Costs, Origin};
use crate::bench::primitives;
use crate::bench::timing::{median, shortest, sorted_ms, sorted_queued_ms};
use crate::progress;
use crate::system;

/// Sizes whose bootstraps are run, as logarithms; the full size comes on top.
const SIZES: [u32; 6] = [0, 3, 6, 8, 10, 12];
/// Targets whose bootstraps are run.
const TARGETS: [usize; 3] = [4, 10, 16];
/// Counted bootstraps of each.
const RUNS: usize = 2;
/// Every level is measured this often, one level after another, so that other work of some seconds spoils one time of each at most.
const ROUNDS: usize = 3;
/// Counted runs of each operation in a round.
const LEVEL_RUNS: usize = 3;
/// Timed rounds of plaintexts from slots to integers.
const EMBED_RUNS: usize = 5;

/// Measures a table of what the device computes, which may be this machine; four minutes at N = 2^16.
pub fn measure(params: &Parameters, device: &Parameters) -> Result<Costs> {
    let max = params.max_level().0;
    let mut client = Keyholder::new(params)?;
    let probes: Vec<usize> = primitives::probe_levels(max).collect();
    let sizes: Vec<u32> = SIZES
        .into_iter()
        .filter(|&size| size < params.log_slots())
        .chain([params.log_slots()])
        .collect();
    let bar = progress::bar(
        ROUNDS * probes.len() + sizes.len(),
        "measuring this machine",
    );
    let keys = client.evaluator(&primitives::key_request(params))?;
    let evaluator = Evaluator::new(device, keys.keys().clone());
    let mut rounds: Vec<(usize, Vec<LevelCost>)> =
        probes.iter().map(|&level| (level, Vec::new())).collect();
    for _ in 0..ROUNDS {
        for (level, costs) in &mut rounds {
            let level = Level(*level);
            costs.push(primitives::level_cost(
                &mut client,
                &evaluator,
                level,
                LEVEL_RUNS,
                median,
            )?);
            bar.inc(1);
        }
    }
    let measured: Vec<(usize, LevelCost)> = rounds
        .into_iter()
        .map(|(level, costs)| (level, middle(&costs)))
        .collect();
    let levels = (0..=max)
        .map(|level| level_between(&measured, level))
        .collect();

    let mut keygen = (0.0, 0.0);
    let mut alone: Vec<(u32, Vec<f64>)> = Vec::new();
    let mut pairs: Vec<(u32, Vec<f64>)> = Vec::new();
    for size in sizes {
        let one = bootstrap(params, device, size, Values::Real, &mut keygen)?;
        if size < params.log_slots() {
            let mut pair = bootstrap(params, device, size, Values::Pair, &mut keygen)?;
            // No level is left above the highest to take a pair apart: two bootstraps.
            pair[max] = 2.0 * one[max];
            pairs.push((size, pair));
        }
        alone.push((size, one));
        bar.inc(1);
    }
    let bootstraps = (0..=params.log_slots())
        .map(|log_slots| BootstrapCost {
            log_slots,
            slots_to_coeffs_levels: slots_to_coeffs_levels(log_slots) as u32,
            pair_ms: (log_slots < params.log_slots()).then(|| by_target(&pairs, log_slots, max)),
            target_ms: by_target(&alone, log_slots, max),
        })
        .collect();
    bar.finish_and_clear();
    Ok(Costs {
        origin: Origin::Measured,
        table: CostTable {
            levels,
            bootstraps,
            embed_ms: embed(params)?,
        },
        keygen_ms_per_mib: keygen.0 / keygen.1,
    })
}

/// Milliseconds by target level of a size between those measured.
fn by_target(measured: &[(u32, Vec<f64>)], log_slots: u32, max: usize) -> Vec<f64> {
    (0..=max)
        .map(|target| {
            let mut column: Vec<(f64, f64)> = measured
                .iter()
                .map(|(size, targets)| (f64::from(*size), targets[target]))
                .collect();
            lower_envelope(&mut column);
            between(&column, f64::from(log_slots))
        })
        .collect()
}

/// Milliseconds by target level of one size, of one real value or of a pair; adds milliseconds and MiB of its keys to `keygen`.
fn bootstrap(
    params: &Parameters,
    device: &Parameters,
    log_slots: u32,
    values: Values,
    keygen: &mut (f64, f64),
) -> Result<Vec<f64>> {
    let max = params.max_level().0;
    let paired = values == Values::Pair;
    let highest = Level(max - usize::from(paired));
    let mut client = Keyholder::new(params)?;
    let shape = BootstrapShape {
        log_slots,
        bound: 1.0,
        values,
        message_ratio_bits: MESSAGE_RATIO_BITS,
    };
    let encoder = Encoder::new(device);
    let bootstrapper = Bootstrapper::new(&encoder, shape)?;
    let mut request = KeyRequest::default();
    bootstrapper.request_keys(highest, &mut request)?;
    let start = Instant::now();
    let evaluator = Evaluator::new(device, client.evaluator(&request)?.keys().clone());
    keygen.0 += start.elapsed().as_secs_f64() * 1e3;
    keygen.1 += evaluator.keys().resident_bytes() as f64 / (1 << 20) as f64;
    let halves = vec![Complex64::new(0.5, 0.0); 1 << log_slots];
    let input = client
        .encrypt(&halves, Level(slots_to_coeffs_levels(log_slots)))?
        .expand(params);
    let mut column = Vec::new();
    for target in TARGETS.map(|target| target.min(highest.0)) {
        let level = Level(target);
        let times = sorted_queued_ms(device.ring(), RUNS, 1, || match values {
            Values::Pair => bootstrapper
                .bootstrap_pair(&encoder, &evaluator, [&input; 2], level)
                .map(drop),
            _ => bootstrapper
                .bootstrap(&encoder, &evaluator, &input, level)
                .map(drop),
        })?;
        column.push((target as f64, shortest(&times)));
    }
    lower_envelope(&mut column);
    Ok((0..=max)
        .map(|target| between(&column, target as f64))
        .collect())
}

/// Other work on the machine only adds time, and more limbs never take less: where a later point is lower, an earlier one was
/// disturbed.
fn lower_envelope(points: &mut [(f64, f64)]) {
    for i in (1..points.len()).rev() {
        points[i - 1].1 = points[i - 1].1.min(points[i].1);
    }
}

fn level_between(measured: &[(usize, LevelCost)], level: usize) -> LevelCost {
    let field = |i: usize| {
        let column: Vec<(f64, f64)> = measured
            .iter()
            .map(|(level, cost)| (*level as f64, cost.times()[i]))
            .collect();
        between(&column, level as f64)
    };
    LevelCost::from_times(std::array::from_fn(field))
}

/// The median of every time.
fn middle(costs: &[LevelCost]) -> LevelCost {
    let times = std::array::from_fn(|i| {
        let mut times: Vec<f64> = costs.iter().map(|cost| cost.times()[i]).collect();
        times.sort_by(f64::total_cmp);
        median(&times)
    });
    LevelCost::from_times(times)
}

/// Milliseconds from slots to integers, each of several plaintexts that are made at once.
fn embed(params: &Parameters) -> Result<f64> {
    let encoder = Encoder::new(params);
    let values = primitives::sample(params);
    let scale = params.scale(params.max_level());
    let each = 4 * system::threads();
    let times = sorted_ms(EMBED_RUNS, || {
        (0..each)
            .into_par_iter()
            .try_for_each(|_| encoder.encode_integers(&values, scale).map(drop))
    })?;
    Ok(median(&times) / each as f64)
}

/// Straight lines between points in ascending order, level before the first and after the last.
fn between(points: &[(f64, f64)], x: f64) -> f64 {
    let after = points.iter().position(|point| point.0 >= x);
    match after {
        None => points.last().map_or(0.0, |point| point.1),
        Some(0) => points[0].1,
        Some(i) => {
            let ((x0, y0), (x1, y1)) = (points[i - 1], points[i]);
            y0 + (y1 - y0) * (x - x0) / (x1 - x0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{between, lower_envelope};

    #[test]
    fn disturbed_times_are_lowered() {
        let mut points = [(0.0, 5.0), (1.0, 9.0), (2.0, 7.0), (3.0, 8.0)];
        lower_envelope(&mut points);
        assert_eq!(points.map(|point| point.1), [5.0, 7.0, 7.0, 8.0]);
    }

    #[test]
    fn lines_between_points() {
        let points = [(1.0, 10.0), (3.0, 30.0), (4.0, 20.0)];
        for (x, y) in [
            (0.0, 10.0),
            (1.0, 10.0),
            (2.0, 20.0),
            (3.5, 25.0),
            (9.0, 20.0),
        ] {
            assert_eq!(between(&points, x), y);
        }
    }
}
