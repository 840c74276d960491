//! Products on ciphertexts: time, and how far the result is from the clear one.

use std::sync::Arc;

use anyhow::Result;
use serde::Serialize;
use taciturn_ckks::{
    Complex64, Evaluator, GadgetName, KeyId, KeyRequest, Level as EngineLevel, Parameters,
};
use taciturn_graph::{Counter, CpuMachine, Level, Matrix, ProductLayout};
use taciturn_secret::Keyholder;

use crate::args::ProductArgs;
use crate::bench::timing::{median, sorted_ms};
use crate::system;

/// What a process has beside its keys and weights: tables of the ring, and the values of a product. Measured.
const REST: u64 = 3 << 29;

/// What was measured, or why nothing was.
#[derive(Default, Serialize)]
pub struct Measured {
    /// Median.
    pub measured_ms: Option<f64>,
    /// Largest difference from the product in the clear, whose entries are of order one.
    pub worst_error: Option<f64>,
    /// Why not.
    pub not_measured: Option<String>,
}

impl Measured {
    /// Nothing, for this reason.
    pub fn not(reason: String) -> Self {
        Measured {
            not_measured: Some(reason),
            ..Measured::default()
        }
    }
}

/// Runs products within the bounds that the flags set.
pub struct Bench {
    client: Option<Keyholder>,
    memory_limit: Option<u64>,
    longest_ms: f64,
    runs: usize,
}

impl Bench {
    /// As the flags say.
    pub fn new(args: &ProductArgs, params: &Parameters) -> Result<Self> {
        let client = args.measure.then(|| Keyholder::new(params)).transpose()?;
        Ok(Bench {
            client,
            memory_limit: args.memory.memory_limit,
            longest_ms: args.longest * 1e3,
            runs: args.runs.get(),
        })
    }

    /// Measures one product unless it takes too long or too much memory.
    pub fn measure(
        &mut self,
        layout: ProductLayout,
        (width, level): (usize, Level),
        counted: &Counter,
        request: &KeyRequest,
    ) -> Result<Measured> {
        let Some(client) = &mut self.client else {
            return Ok(Measured::default());
        };
        let params = client.params().clone();
        if counted.milliseconds() > self.longest_ms {
            return Ok(Measured::not("longer than --longest".to_owned()));
        }
        let weights = counted.counts().weights as u64 * params.ring().n() as u64 * 8;
        let bytes = request.resident_bytes(&params) as u64 + weights + REST;
        if bytes
            > self
                .memory_limit
                .unwrap_or_else(|| system::memory().available)
        {
            let needs = format!("needs {} of memory", system::gigabytes(bytes));
            return Ok(Measured::not(needs));
        }
        let x: Vec<f64> = (0..width).map(|i| noise(i, width)).collect();
        let matrix = Matrix::computed("measured", width, width, move |row, column| {
            noise(row * width + column, 0) / (width as f64).sqrt()
        });
        let mut machine = CpuMachine::new(client.evaluator(request)?);
        let slots: Vec<Complex64> = layout
            .input()
            .expand(&x, params.slots())
            .into_iter()
            .map(Complex64::from)
            .collect();
        let input = client.encrypt(&slots, EngineLevel(level.index()))?;
        let input = Arc::new(input.expand(&params));
        let mut output = None;
        let times = sorted_ms(self.runs, || {
            output = Some(layout.apply(&mut machine, &input, &matrix)?);
            Ok::<_, anyhow::Error>(())
        })?;
        let output = output.expect("the product ran");
        let have: Vec<f64> = client
            .decrypt(&output, params.slots())?
            .into_iter()
            .map(|slot| slot.re)
            .collect();
        let have = layout.output().compact(&have, width);
        let worst = have
            .iter()
            .zip(matrix.apply(&x))
            .fold(0.0, |worst: f64, (have, want)| {
                worst.max((have - want).abs())
            });
        Ok(Measured {
            measured_ms: Some(median(&times)),
            worst_error: Some(worst),
            not_measured: None,
        })
    }
}

/// The keys of all rotations that were counted, and of conjugations.
pub fn key_request(params: &Parameters, counted: &Counter) -> KeyRequest {
    let mut request = KeyRequest::default();
    let rotations = (counted.rotations().iter())
        .map(|(&steps, &level)| (Evaluator::galois_of_rotation(params, steps), level));
    let conjugation = Evaluator::galois_of_conjugation(params);
    let conjugations = counted.conjugation().map(|level| (conjugation, level));
    for (galois, level) in rotations.chain(conjugations) {
        let gadget = GadgetName::Model;
        let id = KeyId { gadget, galois };
        request.add(id, params.level_basis(EngineLevel(level.index())));
    }
    request
}

/// Reproducible numbers in [-1, 1], without a table of them.
fn noise(i: usize, seed: usize) -> f64 {
    let mut x = (i as u64 ^ (seed as u64) << 40)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ x >> 31) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}
