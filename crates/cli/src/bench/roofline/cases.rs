//! The operations that are measured.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use taciturn_circuits::{
    BootstrapShape, Bootstrapper, LinearTransform, MESSAGE_RATIO_BITS, Values, evaluate_chebyshev,
    slots_to_coeffs_levels,
};
use taciturn_ckks::{
    Ciphertext, CkksError, Complex64, Encoder, Evaluator, GadgetName, KeyRequest, Level,
    Parameters, Scale,
};
use taciturn_ring::{Basis, Form};
use taciturn_secret::Keyholder;

use crate::bench::primitives::{add_keys, key_request, sample, whole_basis};

/// Levels whose key switches are measured, besides the model's highest and all limbs.
const LEVELS: [usize; 5] = [1, 4, 7, 10, 13];
/// The level at which a model's products run: five limbs.
const PRODUCTS: Level = Level(4);
/// Hoisted rotations of one value; the linear transform has two giant steps of so many baby steps.
const STEPS: i64 = 8;
const DEGREE: usize = 15;
/// log2 of the slots of the bootstraps, and the level that they refresh to.
const BOOTSTRAPS: [u32; 7] = [15, 12, 11, 10, 9, 4, 0];
const TARGET: usize = 13;

/// What computes: a backend's parameters with the keys.
pub struct Machine {
    encoder: Encoder,
    evaluator: Evaluator,
}

impl Machine {
    /// The machine that measures.
    fn new(params: &Parameters, evaluator: Evaluator) -> Self {
        Self {
            encoder: Encoder::new(params),
            evaluator,
        }
    }

    /// The same keys under other parameters' backend.
    pub fn on(&self, params: &Parameters) -> Self {
        Self::new(
            params,
            Evaluator::new(params, self.evaluator.keys().clone()),
        )
    }
}

type Run = Box<dyn FnMut(&Machine) -> Result<Duration, CkksError> + Send>;

/// One operation.
pub struct Case {
    /// What it is.
    pub name: String,
    /// Limbs of its operand.
    pub limbs: usize,
    /// Operations of this kind in one run, whose time is of one.
    pub parts: u32,
    /// Whether its operands stay in the second-level cache.
    pub in_cache: bool,
    /// Runs it and takes the time of one operation.
    pub run: Run,
}

impl Case {
    fn new(
        name: impl Into<String>,
        limbs: usize,
        mut f: impl FnMut(&Machine) -> Result<(), CkksError> + Send + 'static,
    ) -> Self {
        let run = move |machine: &Machine| {
            let start = Instant::now();
            f(machine)?;
            Ok(start.elapsed())
        };
        Self {
            name: name.into(),
            limbs,
            parts: 1,
            in_cache: false,
            run: Box::new(run),
        }
    }

    /// So many operations in one run.
    fn parts(mut self, parts: u32) -> Self {
        let mut run = self.run;
        self.parts = parts;
        self.run = Box::new(move |machine| Ok(run(machine)? / parts));
        self
    }
}

/// Everything but bootstraps, with the machine to run it on.
pub fn primitives(params: &Parameters) -> Result<(Machine, Vec<Case>)> {
    let mut client = Keyholder::new(params)?;
    let whole = whole_basis(params);
    let mut request = key_request(params);
    add_keys(params, GadgetName::Bootstrap, whole, &mut request);
    let machine = Machine::new(params, client.evaluator(&request)?);
    let top = Scale(params.prime(params.limb_counts().0 - 1) as f64);

    let mut cases = transforms(params, Basis::single(1), true);
    cases.extend(transforms(params, whole, false));
    cases.push(conversion(params, whole));
    let products = PRODUCTS.0.min(params.max_level().0);
    for (scale, basis) in [
        (top, whole),
        (
            params.scale(Level(products)),
            params.level_basis(Level(products)),
        ),
    ] {
        let ct = client.encrypt_on(&sample(params), scale, basis)?;
        cases.extend(arithmetic(params, &client, ct.expand(params))?);
    }
    for level in LEVELS.into_iter().chain([params.max_level().0]) {
        let ct = client.encrypt(&sample(params), Level(level))?;
        cases.push(key_switch(ct.expand(params)));
    }
    let ct = client.encrypt_on(&sample(params), top, whole)?;
    cases.push(key_switch(ct.expand(params)));
    let ct = client.encrypt(&sample(params), Level(products))?;
    cases.push(linear_transform(&client, ct.expand(params))?);
    let ct = client.encrypt(&sample(params), params.max_level())?;
    cases.push(chebyshev(params, ct.expand(params)));
    Ok((machine, cases))
}

/// Transform and inverse in turns.
fn transforms(params: &Parameters, basis: Basis, in_cache: bool) -> Vec<Case> {
    let ring = params.ring();
    let turn = |name: &str, form: Form| {
        let coefficients: Vec<i64> = (0..ring.n() as i64).map(|i| i * 7919 % (1 << 40)).collect();
        let mut poly = ring.from_signed(&coefficients, basis);
        let mut run = move |machine: &Machine| {
            let ring = machine.evaluator.params().ring();
            let start = Instant::now();
            ring.ntt(&mut poly);
            let middle = Instant::now();
            ring.intt(&mut poly);
            match form {
                Form::Evaluation => middle - start,
                Form::Coefficient => middle.elapsed(),
            }
        };
        Case {
            name: name.to_owned(),
            limbs: basis.len(),
            parts: 2,
            in_cache,
            run: Box::new(move |machine| Ok(run(machine))),
        }
    };
    vec![
        turn("NTT", Form::Evaluation),
        turn("inverse NTT", Form::Coefficient),
    ]
}

/// From the first digit of a bootstrap's gadget to all limbs.
fn conversion(params: &Parameters, whole: Basis) -> Case {
    let ring = params.ring();
    let digit = params.gadget(GadgetName::Bootstrap).digits[0];
    let poly = ring.from_signed(&vec![77; ring.n()], digit.intersection(whole));
    let all = ring.full_basis();
    Case::new("base conversion", digit.len(), move |machine| {
        machine.evaluator.params().ring().convert(&poly, all);
        Ok(())
    })
}

fn arithmetic(params: &Parameters, client: &Keyholder, ct: Ciphertext) -> Result<Vec<Case>> {
    let (basis, scale) = (ct.basis(), ct.scale);
    let limbs = basis.len();
    let values = sample(params);
    let integers = client.encoder().encode_integers(&values, scale)?;
    let plaintext = client.encoder().to_plaintext(&integers, basis);
    let steps: Vec<i64> = (1..=STEPS).collect();
    let own = || ct.clone();
    let (a, b, c, d, e) = (own(), own(), own(), own(), own());
    Ok(vec![
        Case::new("encode", limbs, move |machine| {
            machine.encoder.encode(&values, scale, basis).map(drop)
        }),
        Case::new("plain product", limbs, move |machine| {
            machine.evaluator.mul_plain(&a, &plaintext).map(drop)
        }),
        Case::new("plain product, transform included", limbs, move |machine| {
            let plaintext = machine.encoder.to_plaintext(&integers, basis);
            machine.evaluator.mul_plain(&b, &plaintext).map(drop)
        }),
        Case::new("product, relinearized, rescaled", limbs, move |machine| {
            let ev = &machine.evaluator;
            ev.relinearize_rescale(&ev.mul(&c, &c)?).map(drop)
        }),
        Case::new("rotation", limbs, move |machine| {
            machine.evaluator.rotate(&d, 1).map(drop)
        }),
        Case::new("rotation, one of 8 hoisted", limbs, move |machine| {
            machine.evaluator.rotate_many(&e, &steps).map(drop)
        })
        .parts(STEPS as u32),
    ])
}

/// Of one polynomial: decomposition, product with the key, division.
fn key_switch(ct: Ciphertext) -> Case {
    Case::new("key switch", ct.basis().len(), move |machine| {
        let ev = &machine.evaluator;
        let (key, gadget) = ev.galois_key(1, ct.basis())?;
        let decomposed = ev.decompose(&ct.polys[1], gadget);
        ev.mod_down(&ev.key_product(&decomposed, key, 1, ct.scale));
        Ok(())
    })
}

fn linear_transform(client: &Keyholder, ct: Ciphertext) -> Result<Case> {
    let values = sample(client.params());
    let steps = (0..2 * STEPS).map(|k| {
        let integers = client.encoder().encode_integers(&values, ct.scale)?;
        Ok((k / STEPS * STEPS, k % STEPS, integers))
    });
    let steps = steps.collect::<Result<Vec<_>, CkksError>>()?;
    let transform = LinearTransform::from_steps(steps, ct.scale);
    let name = format!("linear transform, {} diagonals", 2 * STEPS);
    Ok(Case::new(name, ct.basis().len(), move |machine| {
        transform
            .apply(&machine.encoder, &machine.evaluator, &ct)
            .map(drop)
    }))
}

fn chebyshev(params: &Parameters, ct: Ciphertext) -> Case {
    let target = params.scale(Level(params.max_level().0 - 4));
    let coefficients: Vec<f64> = (0..=DEGREE).map(|k| 1.0 / (k + 2) as f64).collect();
    let name = format!("Chebyshev evaluation, degree {DEGREE}");
    Case::new(name, ct.basis().len(), move |machine| {
        evaluate_chebyshev(&machine.evaluator, &ct, &coefficients, target).map(drop)
    })
}

/// Calls `measure` with each size's bootstrap, measuring and counting machine: tables and keys of one size at a time are in memory.
pub fn bootstraps(
    params: &Parameters,
    counting: &Parameters,
    mut measure: impl FnMut(Case, &Machine, Case, &Machine) -> Result<()>,
) -> Result<()> {
    let sizes = BOOTSTRAPS.into_iter().filter(|&s| s <= params.log_slots());
    for log_slots in sizes {
        let shape = BootstrapShape {
            log_slots,
            bound: 1.0,
            values: Values::Real,
            message_ratio_bits: MESSAGE_RATIO_BITS,
        };
        let target = Level(TARGET.min(params.max_level().0));
        let mut client = Keyholder::new(params)?;
        let bootstrapper = Bootstrapper::new(client.encoder(), shape)?;
        let mut request = KeyRequest::default();
        bootstrapper.request_keys(target, &mut request)?;
        let machine = Machine::new(params, client.evaluator(&request)?);
        let level = Level(slots_to_coeffs_levels(log_slots));
        let values = vec![Complex64::new(0.9, 0.0); 1 << log_slots];
        let ct = client.encrypt(&values, level)?.expand(params);
        let case = |bootstrapper: Bootstrapper, ct: Ciphertext| {
            let name = format!("bootstrap, 2^{log_slots} slots to {target}");
            Case::new(name, ct.basis().len(), move |machine| {
                let (encoder, ev) = (&machine.encoder, &machine.evaluator);
                bootstrapper.bootstrap(encoder, ev, &ct, target).map(drop)
            })
        };
        let counter = machine.on(counting);
        let counted = Bootstrapper::new(&counter.encoder, shape)?;
        let counted = case(counted, ct.clone());
        measure(case(bootstrapper, ct), &machine, counted, &counter)
            .with_context(|| format!("bootstrap of 2^{log_slots} slots"))?;
        taciturn_ring::trim_pool();
    }
    Ok(())
}
