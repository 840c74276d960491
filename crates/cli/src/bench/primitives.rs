//! `taciturn bench primitives`: transforms, products and rotations by level.

mod transforms;

use std::fmt::Write;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use taciturn_ckks::{
    Ciphertext, CkksError, Complex64, Encoder, Evaluator, GadgetName, KeyId, KeyRequest, Level,
    Parameters, Scale,
};
use taciturn_graph::LevelCost;
use taciturn_ring::Basis;
use taciturn_secret::Keyholder;

use self::transforms::{TransformCost, transform_cost};
use super::timing::{median, sorted_ms, sorted_queued_ms};
use crate::args::PrimitivesArgs;
use crate::device::{self, GpuReport};
use crate::rows::Rows;
use crate::setup::parameters;
use crate::system;

/// Hoisted rotations of one value.
const STEPS: [i64; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
/// Giant steps of the transforms that are timed are multiples of this.
const GIANT: i64 = 8;
const LEVELS: [usize; 5] = [1, 4, 7, 10, 13];
const TRANSFORM_RUNS: usize = 401;
const RUNS: usize = 11;
/// Calls of one measurement on a device, which works on while the next is prepared.
const QUEUED: u32 = 10;

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    library: String,
    params: String,
    backend: &'static str,
    gpu: Option<GpuReport>,
    threads: usize,
    limbs_q: usize,
    limbs_p: usize,
    log_qp: f64,
    level_bits: u32,
    galois_key_bytes: usize,
    #[serde(flatten)]
    transforms: Transforms,
    levels: Vec<LevelReport>,
    peak_rss_bytes: u64,
}

/// Transforms by themselves.
#[derive(Serialize)]
struct Transforms {
    /// One limb.
    ntt_ms: f64,
    /// One limb.
    intt_ms: f64,
    /// Limbs that are transformed in one call for the next two.
    ntt_limbs: usize,
    ntt_all_ms: f64,
    intt_all_ms: f64,
}

/// One level.
#[derive(Serialize)]
struct LevelReport {
    /// One less than the limbs, past the model's highest level too.
    level: usize,
    /// Limbs of a ciphertext there.
    limbs: usize,
    /// Digits of a key switch there.
    digits: usize,
    rotate_ms: f64,
    hoisted_rotate_ms: f64,
    product_rescale_ms: f64,
    plain_product_ms: f64,
    /// Of two ciphertexts.
    add_ms: f64,
    rescale_ms: f64,
    /// From slot values to a plaintext ready for products.
    encode_ms: f64,
}

/// Runs the command.
pub fn run(args: &PrimitivesArgs) -> Result<()> {
    let host = parameters(&args.params)?;
    let (params, gpu) = device::place(&host, &args.device)?;
    let mut client = Keyholder::new(&host)?;
    let mut request = key_request(&params);
    let whole = whole_basis(&params);
    add_keys(&params, GadgetName::Bootstrap, whole, &mut request);
    let on_host = client.evaluator(&request)?;
    let evaluator = Evaluator::new(&params, on_host.keys().clone());
    let reference = gpu.is_some().then_some(&on_host);
    let key_bytes = evaluator
        .keys()
        .iter()
        .map(|key| key.stored_bytes())
        .max()
        .context("keys were made")?;
    let (ntt_ms, intt_ms) = transforms(&params, Basis::single(1));
    let all = params.ring().full_basis();
    let (ntt_all_ms, intt_all_ms) = transforms(&params, all);
    let mut rows = Rows::open(args.rows.rows.as_deref())?;
    let (limbs_q, limbs_p) = params.limb_counts();
    let transforms = Transforms {
        ntt_ms,
        intt_ms,
        ntt_limbs: all.len(),
        ntt_all_ms,
        intt_all_ms,
    };
    rows.add("transforms", &transforms)?;
    let mut levels = Vec::new();
    for level in probe_levels(params.max_level().0) {
        let level = Level(level);
        let (scale, basis) = (params.scale(level), params.level_basis(level));
        let report = level_report(&mut client, &evaluator, reference, scale, basis)?;
        rows.add("level", &report)?;
        levels.push(report);
    }
    // Where bootstraps begin: all limbs, those of EvalMod and CoeffsToSlots included.
    let top = params.prime(params.limb_counts().0 - 1) as f64;
    let report = level_report(&mut client, &evaluator, reference, Scale(top), whole)?;
    rows.add("level", &report)?;
    levels.push(report);
    let report = Report {
        library: format!("taciturn {}", env!("CARGO_PKG_VERSION")),
        params: params.name().to_owned(),
        backend: params.ring().backend_name(),
        threads: system::threads(),
        limbs_q,
        limbs_p,
        log_qp: params.log_qp(),
        level_bits: params.literal().level_bits,
        galois_key_bytes: key_bytes,
        gpu,
        transforms,
        levels,
        peak_rss_bytes: system::peak_rss_bytes(),
    };
    if args.json {
        return system::print_json(&report);
    }
    system::print_text(&text(&report))
}

/// Levels that are measured: a few below the highest, and the highest.
pub fn probe_levels(max: usize) -> impl Iterator<Item = usize> {
    LEVELS
        .into_iter()
        .filter(move |&level| level < max)
        .chain([max])
}

/// Relinearization and the rotations that are timed, at all levels.
pub fn key_request(params: &Parameters) -> KeyRequest {
    let mut request = KeyRequest::default();
    let limbs = params.level_basis(params.max_level());
    add_keys(params, GadgetName::Model, limbs, &mut request);
    request
}

/// Relinearization and the rotations that are timed, with one gadget on some limbs.
pub fn add_keys(params: &Parameters, gadget: GadgetName, limbs: Basis, request: &mut KeyRequest) {
    let steps = STEPS.into_iter().chain([2 * GIANT, 3 * GIANT]);
    let rotations = steps.map(|k| Evaluator::galois_of_rotation(params, k));
    for galois in rotations.chain([1]) {
        request.add(KeyId { gadget, galois }, limbs);
    }
}

/// All limbs of a ciphertext.
pub fn whole_basis(params: &Parameters) -> Basis {
    Basis::range(0..params.limb_counts().0)
}

/// Milliseconds of the planner's operations at one level: of `runs` times, sorted, those that `pick` takes.
pub fn level_cost(
    client: &mut Keyholder,
    evaluator: &Evaluator,
    level: Level,
    runs: usize,
    pick: fn(&[f64]) -> f64,
) -> Result<LevelCost> {
    let (scale, basis) = (
        client.params().scale(level),
        client.params().level_basis(level),
    );
    cost(client, evaluator, scale, basis, runs, pick)
}

fn cost(
    client: &mut Keyholder,
    evaluator: &Evaluator,
    scale: Scale,
    basis: Basis,
    runs: usize,
    pick: fn(&[f64]) -> f64,
) -> Result<LevelCost> {
    let params = evaluator.params();
    let encoder = Encoder::new(params);
    let integers = encoder.encode_integers(&sample(params), scale)?;
    let ct = client
        .encrypt_on(&sample(params), scale, basis)?
        .expand(params);
    let plaintext = encoder.to_plaintext(&integers, basis);
    let product = evaluator.mul_plain(&ct, &plaintext)?;
    let mut sum = ct.clone();
    let timed = |f: &mut dyn FnMut() -> Result<(), CkksError>| -> Result<f64> {
        let times = sorted_queued_ms(params.ring(), runs, QUEUED, f);
        Ok(pick(&times?))
    };
    let mut products = evaluator.mul(&ct, &ct)?;
    let rotate_ms = timed(&mut || evaluator.rotate(&ct, 1).map(drop))?;
    let rotate_many_ms = timed(&mut || evaluator.rotate_many(&ct, &STEPS).map(drop))?;
    let TransformCost {
        transform_ms,
        baby_ms,
        giant_ms,
        diagonal_ms,
    } = transform_cost(&encoder, evaluator, &ct, &integers, timed)?;
    Ok(LevelCost {
        rotate_ms,
        hoisted_rotate_ms: ((rotate_many_ms - rotate_ms) / (STEPS.len() - 1) as f64).max(0.0),
        product_rescale_ms: timed(&mut || {
            evaluator
                .relinearize_rescale(&evaluator.mul(&ct, &ct)?)
                .map(drop)
        })?,
        tensor_ms: timed(&mut || {
            let product = evaluator.mul(&ct, &ct)?;
            evaluator.add_assign(&mut products, &product)
        })?,
        plain_product_ms: timed(&mut || evaluator.mul_plain(&ct, &plaintext).map(drop))?,
        multiple_ms: timed(&mut || evaluator.add_multiple_assign(&mut sum, &ct, 12_345))?,
        rescale_ms: timed(&mut || evaluator.rescale(&product).map(drop))?,
        add_ms: timed(&mut || {
            let mut sum = ct.clone();
            evaluator.add_assign(&mut sum, &ct)
        })?,
        encode_ms: timed(&mut || {
            encoder.to_plaintext(&integers, basis);
            Ok(())
        })?,
        transform_ms,
        baby_ms,
        giant_ms,
        diagonal_ms,
    })
}

/// Fails where rotation, product or rescale give other words than the reference.
fn compare(
    client: &mut Keyholder,
    evaluator: &Evaluator,
    reference: &Evaluator,
    scale: Scale,
    basis: Basis,
) -> Result<()> {
    let ct = client
        .encrypt_on(&sample(client.params()), scale, basis)?
        .expand(client.params());
    let run = |ev: &Evaluator| -> Result<[Ciphertext; 3], CkksError> {
        Ok([
            ev.rotate(&ct, 1)?,
            ev.rotate_many(&ct, &STEPS)?.swap_remove(1),
            ev.relinearize_rescale(&ev.mul(&ct, &ct)?)?,
        ])
    };
    let (have, want) = (run(evaluator)?, run(reference)?);
    for ((have, want), name) in
        have.iter()
            .zip(&want)
            .zip(["rotation", "hoisted rotation", "product"])
    {
        ensure!(
            have.polys == want.polys,
            "{name} at {} limbs: the words of {} differ from the processor's",
            basis.len(),
            evaluator.params().ring().backend_name()
        );
    }
    Ok(())
}

fn level_report(
    client: &mut Keyholder,
    evaluator: &Evaluator,
    reference: Option<&Evaluator>,
    scale: Scale,
    basis: Basis,
) -> Result<LevelReport> {
    if let Some(reference) = reference {
        compare(client, evaluator, reference, scale, basis)?;
    }
    let cost = cost(client, evaluator, scale, basis, RUNS, median)?;
    let params = client.params();
    let values = sample(params);
    let gadget = params.gadget(params.cheapest_gadget(basis));
    let used = gadget
        .digits
        .iter()
        .filter(|d| !d.intersection(basis).is_empty());
    let encoder = Encoder::new(evaluator.params());
    Ok(LevelReport {
        level: basis.len() - 1,
        limbs: basis.len(),
        digits: used.count(),
        rotate_ms: cost.rotate_ms,
        hoisted_rotate_ms: cost.hoisted_rotate_ms,
        product_rescale_ms: cost.product_rescale_ms,
        plain_product_ms: cost.plain_product_ms,
        add_ms: cost.add_ms,
        rescale_ms: cost.rescale_ms,
        encode_ms: median(&sorted_ms(5, || {
            let encoded = encoder.encode(&values, scale, basis);
            evaluator.params().ring().synchronize();
            encoded.map(drop)
        })?),
    })
}

/// Transforms of some limbs at once, forth and back.
fn transforms(params: &Parameters, limbs: Basis) -> (f64, f64) {
    let ring = params.ring();
    let coefficients: Vec<i64> = (0..ring.n() as i64).map(|i| i * 7919 % (1 << 40)).collect();
    let poly = ring.from_signed(&coefficients, limbs);
    let mut evaluated = poly.clone();
    ring.ntt(&mut evaluated);
    // A transform works in place and checks the form: each call takes a copy that is made before the clock starts.
    let timed = |poly: &taciturn_ring::Poly, f: &dyn Fn(&mut taciturn_ring::Poly)| {
        let calls = if ring.queue().is_some() { QUEUED } else { 1 };
        let mut times = Vec::with_capacity(TRANSFORM_RUNS);
        for _ in 0..TRANSFORM_RUNS {
            let mut copies: Vec<_> = (0..calls).map(|_| poly.clone()).collect();
            ring.synchronize();
            let clock = ring.queue().map(taciturn_ring::Queue::start_clock);
            let start = std::time::Instant::now();
            copies.iter_mut().for_each(f);
            let ms = match clock {
                Some(clock) => clock.elapsed_ms(),
                None => start.elapsed().as_secs_f64() * 1e3,
            };
            times.push(ms / f64::from(calls));
        }
        times.sort_by(f64::total_cmp);
        median(&times)
    };
    (
        timed(&poly, &|poly| ring.ntt(poly)),
        timed(&evaluated, &|poly| ring.intt(poly)),
    )
}

/// Different values in all slots.
pub fn sample(params: &Parameters) -> Vec<Complex64> {
    (0..params.slots())
        .map(|i| Complex64::new((i % 17) as f64 / 17.0, (i % 13) as f64 / 13.0))
        .collect()
}

fn text(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{}, {} threads of {}: NTT {:.3} ms, inverse {:.3} ms per limb; key of one rotation {}",
        report.params,
        report.threads,
        report.backend,
        report.transforms.ntt_ms,
        report.transforms.intt_ms,
        system::gigabytes(report.galois_key_bytes as u64)
    );
    let _ = writeln!(
        out,
        "level  rotate  hoisted  product  plain product     add  encode   (ms)"
    );
    for level in &report.levels {
        let _ = writeln!(
            out,
            "{:>5} {:>7.3} {:>8.3} {:>8.3} {:>14.3} {:>7.3} {:>7.2}",
            level.level,
            level.rotate_ms,
            level.hoisted_rotate_ms,
            level.product_rescale_ms,
            level.plain_product_ms,
            level.add_ms,
            level.encode_ms
        );
    }
    out
}
