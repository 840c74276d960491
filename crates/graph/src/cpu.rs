//! The machine of ciphertexts: semantic operations on encrypted values, with public material only.

mod circuits;
mod polynomials;
mod recent;
mod transforms;
mod weights;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use taciturn_approx::Chebyshev;
use taciturn_circuits::{Bootstrapper, Values, slots_to_coeffs_levels};
use taciturn_ckks::{
    Ciphertext, CkksError, Complex64, Encoder, Evaluator, IntegerPlaintext, Parameters, Plaintext,
    Scale,
};

use self::circuits::{Circuit, Circuits};
use self::recent::Recent;
pub use self::transforms::ENCODED_AT_ONCE;
use self::transforms::Transforms;
use crate::keys::{bootstrap_shape, pair_fits};
use crate::{Diagonals, Graph, Level, Machine, Plain, PlainId, Plan, RunError, weight_diagonals};

fn engine_level(level: Level) -> taciturn_ckks::Level {
    taciturn_ckks::Level(level.index())
}

/// Levels that a bootstrap of this many slots takes from its input.
pub fn bootstrap_input_levels(log_slots: u32) -> u32 {
    slots_to_coeffs_levels(log_slots) as u32
}

/// Bytes of encoded masks and shifts that a machine keeps: more than a step of GPT-2 small uses, a few percent of its keys.
pub const KEPT_MASKS: usize = 256 << 20;

/// Computes on ciphertexts. Encoded weights, as far as there is room for them, and bootstrap tables are kept between steps.
pub struct CpuMachine {
    params: Parameters,
    encoder: Encoder,
    evaluator: Evaluator,
    transforms: Transforms,
    weights: HashMap<(PlainId, usize), IntegerPlaintext>,
    masks: Recent,
    bootstrappers: HashMap<(u32, u64, Values), Arc<Bootstrapper>>,
    circuits: Circuits,
    bootstraps: usize,
}

impl CpuMachine {
    /// A machine over an evaluator's parameters and keys.
    pub fn new(evaluator: Evaluator) -> Self {
        let params = evaluator.params().clone();
        CpuMachine {
            encoder: Encoder::new(&params),
            params,
            evaluator,
            transforms: Transforms::default(),
            weights: HashMap::new(),
            masks: Recent::new(KEPT_MASKS),
            bootstrappers: HashMap::new(),
            circuits: Circuits::default(),
            bootstraps: 0,
        }
    }

    /// Bootstraps done so far.
    pub fn bootstraps(&self) -> usize {
        self.bootstraps
    }

    /// The evaluator.
    pub fn evaluator(&self) -> &Evaluator {
        &self.evaluator
    }

    /// A public value as a ciphertext that hides nothing: for what the server computes in the clear.
    pub fn trivial(&self, plain: &Plain, level: Level) -> Result<Arc<Ciphertext>, CkksError> {
        let basis = self.params.level_basis(engine_level(level));
        let encoded = self.encode(plain, self.params.scale(engine_level(level)), basis)?;
        let zero = self.params.ring().zero(basis, encoded.poly.form());
        Ok(Arc::new(Ciphertext {
            polys: vec![encoded.poly, zero],
            scale: encoded.scale,
        }))
    }

    fn encode(
        &self,
        plain: &Plain,
        scale: Scale,
        basis: taciturn_ring::Basis,
    ) -> Result<Plaintext, CkksError> {
        self.encoder.encode(&complex(plain), scale, basis)
    }

    fn level_of(&self, a: &Ciphertext) -> taciturn_ckks::Level {
        // Every value of this machine lives on a level's limbs: no operation below makes any other.
        self.params
            .level_of(a.basis())
            .unwrap_or(taciturn_ckks::Level(0))
    }

    /// One level down, exactly at that level's scale; anything else would be silently wrong from here on.
    fn landed(&self, mut a: Ciphertext) -> Result<Ciphertext, CkksError> {
        let level = self.params.level_of(a.basis());
        let canonical = level.map(|level| self.params.scale(level));
        match canonical {
            Some(canonical) if a.scale.matches(canonical) => {
                a.scale = canonical;
                Ok(a)
            }
            _ => Err(CkksError::Mismatch {
                operation: "rescale to a level",
                expected: canonical
                    .map_or("limbs of a level".into(), |scale| format!("scale {scale}")),
                got: format!("{} limbs at scale {}", a.basis().len(), a.scale),
            }),
        }
    }

    /// Encodes the weights of a step's graph that are kept, and its bootstrap tables, so that no step waits for them. `progress` hears how
    /// many of how many are done.
    pub fn prepare(
        &mut self,
        graph: &Graph,
        plan: &Plan,
        mut progress: impl FnMut(usize, usize),
    ) -> Result<(), RunError<CkksError>> {
        let mut refreshes = HashSet::new();
        for node in graph.nodes() {
            let (Some(bootstrap), Some(bound)) = (&plan.node(&node.name)?.bootstrap, node.bound)
            else {
                continue;
            };
            let partner = (bootstrap.partner.as_ref()).and_then(|partner| graph.find(partner));
            let other = partner.and_then(|partner| graph.node(partner).bound);
            let (values, bound) = match other {
                Some(other) if pair_fits(&self.params, bootstrap.slots, bootstrap.target) => {
                    (Values::Pair, bound.max(other))
                }
                _ => (Values::Real, bound),
            };
            refreshes.insert((bootstrap.slots, bound.to_bits(), values));
        }
        let mut products = Vec::new();
        let mut seen = HashSet::new();
        for node in graph.nodes() {
            if let Some(diagonals) = weight_diagonals(&node.op, self.params.slots()) {
                let level = plan.node(&node.name)?.level_in;
                if seen.insert((diagonals.id(), level)) {
                    products.push((diagonals, level));
                }
            }
        }
        let total = refreshes.len() + products.len();
        let mut done = 0;
        let mut step = || {
            progress(done, total);
            done += 1;
        };
        let failed = |source| RunError::Machine {
            node: "encoding of weights".into(),
            source,
        };
        for (slots, bound, values) in refreshes {
            step();
            self.bootstrapper(slots, f64::from_bits(bound), values)
                .map_err(failed)?;
        }
        for (diagonals, level) in products {
            step();
            self.keep_transform(&diagonals, engine_level(level))
                .map_err(failed)?;
        }
        step();
        Ok(())
    }

    fn bootstrapper(
        &mut self,
        distinct_slots: usize,
        bound: f64,
        values: Values,
    ) -> Result<Arc<Bootstrapper>, CkksError> {
        let log_slots = distinct_slots.ilog2();
        let key = (log_slots, bound.to_bits(), values);
        if let Some(known) = self.bootstrappers.get(&key) {
            return Ok(known.clone());
        }
        let alike = |shape: &(u32, u64, Values)| (shape.0, shape.2) == (log_slots, values);
        let alike = self.bootstrappers.iter().find(|(shape, _)| alike(shape));
        let made = Arc::new(match alike {
            Some((_, other)) => other.with_bound(&self.encoder, bound)?,
            None => Bootstrapper::new(&self.encoder, bootstrap_shape(log_slots, bound, values))?,
        });
        self.bootstrappers.insert(key, made.clone());
        Ok(made)
    }
}

fn complex(plain: &Plain) -> Vec<Complex64> {
    plain
        .values()
        .into_iter()
        .map(|v| Complex64::new(v, 0.0))
        .collect()
}

impl Machine for CpuMachine {
    type Value = Arc<Ciphertext>;
    type Error = CkksError;

    fn slots(&self) -> usize {
        self.params.slots()
    }

    fn level(&self, a: &Self::Value) -> Level {
        Level(self.level_of(a).0 as u32)
    }

    fn add(&mut self, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, CkksError> {
        let mut out = Ciphertext::clone(a);
        self.evaluator.add_assign(&mut out, b)?;
        Ok(Arc::new(out))
    }

    fn sub(&mut self, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, CkksError> {
        let mut out = Ciphertext::clone(a);
        self.evaluator.sub_assign(&mut out, b)?;
        Ok(Arc::new(out))
    }

    fn add_plain(&mut self, a: &Self::Value, plain: &Plain) -> Result<Self::Value, CkksError> {
        let mut out = Ciphertext::clone(a);
        if plain.period() == 1 {
            let constant = Complex64::new(plain.values()[0], 0.0);
            self.evaluator.add_constant_assign(&mut out, constant)?;
        } else {
            let integers = self.mask(plain, a.scale)?;
            let encoded = self.encoder.to_plaintext(&integers, a.basis());
            self.evaluator.add_plain_assign(&mut out, &encoded)?;
        }
        Ok(Arc::new(out))
    }

    fn mul_plain(&mut self, a: &Self::Value, plain: &Plain) -> Result<Self::Value, CkksError> {
        self.dot_plain(&[(a, plain.clone())])
    }

    fn mul_constant(&mut self, a: &Self::Value, constant: f64) -> Result<Self::Value, CkksError> {
        Ok(Arc::new(self.times_constant(a, constant)?))
    }

    fn mul(&mut self, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, CkksError> {
        self.dot(&[(a, b)])
    }

    fn dot(&mut self, pairs: &[(&Self::Value, &Self::Value)]) -> Result<Self::Value, CkksError> {
        let inputs: Vec<&Ciphertext> = pairs.iter().flat_map(|&(a, b)| [&**a, &**b]).collect();
        self.recorded_one(
            Circuit::Products(pairs.len()),
            &inputs,
            |machine, inputs| {
                let ev = &machine.evaluator;
                let mut sum = ev.mul(inputs[0], inputs[1])?;
                for pair in inputs[2..].chunks_exact(2) {
                    ev.add_assign(&mut sum, &ev.mul(pair[0], pair[1])?)?;
                }
                machine.landed(ev.relinearize_rescale(&sum)?)
            },
        )
    }

    fn dot_plain(&mut self, pairs: &[(&Self::Value, Plain)]) -> Result<Self::Value, CkksError> {
        let masks = pairs
            .iter()
            .map(|(a, plain)| self.mask(plain, a.scale))
            .collect::<Result<Vec<_>, _>>()?;
        let ids = pairs.iter().map(|(_, plain)| plain.id()).collect();
        let inputs: Vec<&Ciphertext> = pairs.iter().map(|(a, _)| &***a).collect();
        self.recorded_one(Circuit::Masks(ids), &inputs, |machine, inputs| {
            let masks = masks.iter().map(|integers| &**integers);
            machine.sum_of_products(inputs.iter().copied().zip(masks))
        })
    }

    fn dot_weights(&mut self, pairs: &[(&Self::Value, Plain)]) -> Result<Self::Value, CkksError> {
        let level = pairs
            .first()
            .map_or(taciturn_ckks::Level(0), |(a, _)| self.level_of(a));
        self.keep_weights(pairs.iter().map(|(_, plain)| plain), level)?;
        let ids: Vec<PlainId> = pairs.iter().map(|(_, plain)| plain.id()).collect();
        let inputs: Vec<&Ciphertext> = pairs.iter().map(|(a, _)| &***a).collect();
        self.recorded_one(Circuit::Weights(ids.clone()), &inputs, |machine, inputs| {
            let weights = ids.iter().map(|id| &machine.weights[&(*id, level.0)]);
            machine.sum_of_products(inputs.iter().copied().zip(weights))
        })
    }

    fn rotate(&mut self, a: &Self::Value, steps: i64) -> Result<Self::Value, CkksError> {
        self.recorded_one(Circuit::Rotations(vec![steps]), &[a], |machine, inputs| {
            machine.evaluator.rotate(inputs[0], steps)
        })
    }

    fn rotate_many(
        &mut self,
        a: &Self::Value,
        steps: &[i64],
    ) -> Result<Vec<Self::Value>, CkksError> {
        let circuit = Circuit::Rotations(steps.to_vec());
        let rotated = self.recorded(circuit, &[a], |machine, inputs| {
            machine.evaluator.rotate_many(inputs[0], steps)
        })?;
        Ok(rotated.into_iter().map(Arc::new).collect())
    }

    fn linear_transform(
        &mut self,
        a: &Self::Value,
        diagonals: &Diagonals,
    ) -> Result<Self::Value, CkksError> {
        let level = self.level_of(a);
        let Some(kept) = self.keep_transform(diagonals, level)? else {
            let latest = self.latest_transform(diagonals, level)?;
            return Ok(Arc::new(self.linear_map(
                a,
                diagonals,
                |operand| match &latest {
                    Some(whole) => whole.apply(&self.encoder, &self.evaluator, operand),
                    None => self.transformed_in_parts(operand, diagonals),
                },
            )?));
        };
        self.recorded_one(
            Circuit::Transform(diagonals.id()),
            &[a],
            |machine, inputs| {
                machine.linear_map(inputs[0], diagonals, |operand| {
                    kept.apply(&machine.encoder, &machine.evaluator, operand)
                })
            },
        )
    }

    fn polynomial(
        &mut self,
        a: &Self::Value,
        polynomial: &Chebyshev,
    ) -> Result<Self::Value, CkksError> {
        let circuit = Circuit::of_polynomial(polynomial);
        self.recorded_one(circuit, &[a], |machine, inputs| {
            machine.evaluated(inputs[0], polynomial)
        })
    }

    fn drop_to(&mut self, a: &Self::Value, level: Level) -> Result<Self::Value, CkksError> {
        Ok(Arc::new(self.evaluator.drop_to(a, engine_level(level))?))
    }

    fn bootstrap(
        &mut self,
        a: &Self::Value,
        distinct_slots: usize,
        bound: f64,
        target: Level,
    ) -> Result<Self::Value, CkksError> {
        let bootstrapper = self.bootstrapper(distinct_slots, bound, Values::Real)?;
        self.bootstraps += 1;
        let target = engine_level(target);
        Ok(Arc::new(bootstrapper.bootstrap(
            &self.encoder,
            &self.evaluator,
            a,
            target,
        )?))
    }

    fn bootstrap_pair(
        &mut self,
        pair: [&Self::Value; 2],
        distinct_slots: usize,
        bound: f64,
        target: Level,
    ) -> Result<[Self::Value; 2], CkksError> {
        if !pair_fits(&self.params, distinct_slots, target) {
            let [first, second] = pair.map(|a| self.bootstrap(a, distinct_slots, bound, target));
            return Ok([first?, second?]);
        }
        let bootstrapper = self.bootstrapper(distinct_slots, bound, Values::Pair)?;
        self.bootstraps += 1;
        let refreshed = bootstrapper.bootstrap_pair(
            &self.encoder,
            &self.evaluator,
            pair.map(|a| &**a),
            engine_level(target),
        )?;
        Ok(refreshed.map(Arc::new))
    }
}
