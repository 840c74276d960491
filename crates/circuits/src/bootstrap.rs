//! Bootstrapping: SlotsToCoeffs, modulus raising under an encapsulated sparse secret, CoeffsToSlots, EvalMod.
//!
//! SlotsToCoeffs comes first, where few limbs are left and rotations are cheap. The message then sits in the coefficients themselves, so
//! that the precision is the same for every vector of a given bound, a constant one or one with a single entry included.
//! Sources: Cheon et al. 2018; Bossuat et al. 2021 (EvalMod, double hoisting) and 2022 (sparse-secret encapsulation).

use std::collections::BTreeSet;

use taciturn_ckks::{
    Ciphertext, CircuitId, CkksError, Encoder, Evaluator, Extended, GadgetName, KeyId, KeyRequest,
    Level, Parameters, Scale,
};
use taciturn_ring::Basis;

use crate::{
    Diagonals, LinearTransform,
    embedding::{coeffs_to_real_slots, coeffs_to_slots, real_slots_to_coeffs, slots_to_coeffs},
    eval_mod::EvalMod,
    halves::Halves,
    shape::{BootstrapShape, RATIOS, Values, slots_to_coeffs_levels},
    trace::Trace,
};

/// Refreshes ciphertexts of one shape to any level.
pub struct Bootstrapper {
    circuit: CircuitId,
    params: Parameters,
    shape: BootstrapShape,
    eval_mod: EvalMod,
    trace: Trace,
    /// Takes the two values of a pair apart.
    halves: Option<Halves>,
    /// In order of application; the last lands on the message scale.
    slots_to_coeffs: Vec<LinearTransform>,
    coeffs_to_slots: Vec<LinearTransform>,
    /// Scale of a slot's value after SlotsToCoeffs: q0 / (ratio * bound).
    message_scale: Scale,
    /// The slope of the sine's best linear fit over the interval, relative to 2 pi.
    slope: f64,
}

impl Bootstrapper {
    /// Encodes the transforms of a shape.
    pub fn new(encoder: &Encoder, shape: BootstrapShape) -> Result<Self, CkksError> {
        let params = encoder.parameters().clone();
        let most = params.log_slots() - u32::from(shape.values == Values::Pair);
        if shape.log_slots > most || !(shape.bound > 0.0 && shape.bound.is_finite()) {
            return Err(CkksError::Mismatch {
                operation: "bootstrap",
                expected: format!("at most 2^{most} slots and a positive bound"),
                got: format!("2^{} slots, bound {}", shape.log_slots, shape.bound),
            });
        }
        if !RATIOS.contains(&shape.message_ratio_bits) {
            return Err(CkksError::Mismatch {
                operation: "bootstrap",
                expected: format!(
                    "a message ratio of {} to {} bits",
                    RATIOS.start(),
                    RATIOS.end()
                ),
                got: format!("{} bits", shape.message_ratio_bits),
            });
        }
        let ratio = shape.message_ratio_bits.exp2();
        let q0 = params.prime(0) as f64;
        let message_scale = Scale(q0 / (ratio * shape.bound));
        let eval_mod = EvalMod::new(ratio);
        let to_coeffs = if shape.log_slots == 0 {
            Vec::new()
        } else {
            let stages = slots_to_coeffs_levels(shape.log_slots);
            let matrices = match shape.values {
                Values::Real => real_slots_to_coeffs(encoder, shape.log_slots, stages as u32),
                _ => slots_to_coeffs(encoder, shape.log_slots, stages as u32),
            };
            let last = matrices.len() - 1;
            let basis = params
                .level_basis(Level(stages))
                .union(params.gadget(GadgetName::Model).special);
            let encode = |(i, m): (usize, &Diagonals)| {
                // Stage i takes level `stages - i` one lower.
                let level = Level(stages - i);
                let landing = if i == last {
                    message_scale
                } else {
                    params.scale(Level(level.0 - 1))
                };
                let scale = landing.0 * params.prime(level.0) as f64 / params.scale(level).0;
                LinearTransform::new(encoder, m, Scale(scale), basis)
            };
            matrices
                .iter()
                .enumerate()
                .map(encode)
                .collect::<Result<_, _>>()?
        };
        // From coefficients at scale q0 N/2d per unit of x, and z + conj(z) = 2x, to t' = x / K' at EvalMod's scale.
        let log_complex = shape.log_complex_slots();
        let gain = (params.slots() >> log_complex) as f64;
        let stages = shape.coeffs_to_slots_stages();
        let reduction = Self::eval_mod_scale(&params) / (q0 * gain);
        let to_slots = if shape.is_constant() {
            Vec::new()
        } else {
            let mut matrices = match shape.values {
                Values::Complex => coeffs_to_slots(encoder, log_complex, stages as u32),
                _ => coeffs_to_real_slots(encoder, log_complex, stages as u32),
            };
            let each = matrices.len() as f64;
            let basis = params.ring().full_basis();
            let mut limb = params.coeffs_to_slots_limbs().start + stages;
            matrices
                .iter_mut()
                .map(|m| {
                    limb -= 1;
                    m.scale((0.5 / eval_mod.range).powf(1.0 / each));
                    let scale = params.prime(limb) as f64 * reduction.powf(1.0 / each);
                    LinearTransform::new(encoder, m, Scale(scale), basis)
                })
                .collect::<Result<_, _>>()?
        };
        // The slope whose line is nearest to sin(a v) over v in [-1, 1] at its worst; the cubic term alone matters: a - a^3/8.
        let a = std::f64::consts::TAU / ratio;
        let slope = 1.0 - a * a / 8.0;
        let trace = Trace::new(&params, 1 << log_complex, shape.is_constant());
        let halves = (shape.values == Values::Pair).then(|| Halves::new(&params, shape.log_slots));
        Ok(Self {
            circuit: CircuitId::new(),
            params,
            shape,
            eval_mod,
            trace,
            halves,
            slots_to_coeffs: to_coeffs,
            coeffs_to_slots: to_slots,
            message_scale,
            slope,
        })
    }

    /// The shape that it was made for.
    pub fn shape(&self) -> BootstrapShape {
        self.shape
    }

    /// The scale of t': near the primes of EvalMod, so that squarings keep it.
    fn eval_mod_scale(params: &Parameters) -> f64 {
        params.prime(params.eval_mod_limbs().end - 1) as f64
    }

    /// Limbs after the modulus is raised, for the level that EvalMod ends at: that level's, EvalMod's, and as many of CoeffsToSlots' as the
    /// size needs.
    fn raised_basis(&self, refreshed: Level) -> Basis {
        let start = self.params.coeffs_to_slots_limbs().start;
        let stages = self.shape.coeffs_to_slots_stages();
        self.params
            .level_basis(refreshed)
            .union(Basis::range(self.params.eval_mod_limbs()))
            .union(Basis::range(start..start + stages))
    }

    /// The level that EvalMod ends at: taking a pair apart takes one more. The error names the highest target.
    fn refreshed_level(&self, target: Level) -> Result<Level, CkksError> {
        let apart = usize::from(self.halves.is_some());
        let most = self.params.max_level().0 - apart;
        if target.0 <= most {
            return Ok(Level(target.0 + apart));
        }
        Err(CkksError::Mismatch {
            operation: "bootstrap",
            expected: format!("a target of at most level {most}"),
            got: target.to_string(),
        })
    }

    /// Adds the keys that bootstraps of this shape to this level need. Fails where the level is too high.
    pub fn request_keys(&self, target: Level, request: &mut KeyRequest) -> Result<(), CkksError> {
        let refreshed = self.refreshed_level(target)?;
        let raised = self.raised_basis(refreshed);
        let galois = |k: i64| Evaluator::galois_of_rotation(&self.params, k);
        let mut switch = |gadget, galois, limbs| request.add(KeyId { gadget, galois }, limbs);
        switch(GadgetName::Encapsulate, 1, Basis::single(0));
        for galois in self.trace.lifted() {
            switch(GadgetName::Decapsulate, galois, raised);
        }
        switch(GadgetName::Bootstrap, 1, raised);
        let transforms = self.coeffs_to_slots.iter();
        let top: BTreeSet<u64> = transforms
            .flat_map(LinearTransform::rotations)
            .map(galois)
            .chain(self.trace.switched())
            .chain([Evaluator::galois_of_conjugation(&self.params)])
            .collect();
        for galois in top {
            switch(GadgetName::Bootstrap, galois, raised);
        }
        let low = self
            .params
            .level_basis(Level(slots_to_coeffs_levels(self.shape.log_slots)));
        for k in self
            .slots_to_coeffs
            .iter()
            .flat_map(LinearTransform::rotations)
        {
            switch(GadgetName::Model, galois(k), low);
        }
        if let Some(halves) = &self.halves {
            let limbs = self.params.level_basis(refreshed);
            switch(GadgetName::Model, galois(halves.rotation()), limbs);
        }
        Ok(())
    }

    /// The value of `ct` at `target` level and its canonical scale. The input is at its level's canonical scale, at
    /// [`slots_to_coeffs_levels`] or above. On a device the second bootstrap of equal inputs' shapes is recorded, and later ones are replayed.
    pub fn bootstrap(
        &self,
        encoder: &Encoder,
        ev: &Evaluator,
        ct: &Ciphertext,
        target: Level,
    ) -> Result<Ciphertext, CkksError> {
        if self.shape.values == Values::Pair {
            return Err(CkksError::Mismatch {
                operation: "bootstrap",
                expected: "two values, for which it was made".into(),
                got: "one".into(),
            });
        }
        let [out] = self.recorded(ev, [ct], target, |[ct]| {
            let input = self.input(ev, ct)?;
            Ok([self.refresh(encoder, ev, input, target)?])
        })?;
        Ok(out)
    }

    /// [`bootstrap`](Self::bootstrap) of two real values, by a shape of [`Values::Pair`].
    pub fn bootstrap_pair(
        &self,
        encoder: &Encoder,
        ev: &Evaluator,
        pair: [&Ciphertext; 2],
        target: Level,
    ) -> Result<[Ciphertext; 2], CkksError> {
        let Some(halves) = &self.halves else {
            return Err(CkksError::Mismatch {
                operation: "bootstrap",
                expected: "one value, for which it was made".into(),
                got: "two".into(),
            });
        };
        self.recorded(ev, pair, target, |pair| {
            let mut input = self.input(ev, pair[1])?;
            ev.mul_by_i_assign(&mut input);
            ev.add_assign(&mut input, &self.input(ev, pair[0])?)?;
            let both = self.refresh(encoder, ev, input, self.refreshed_level(target)?)?;
            halves.apart(encoder, ev, &both)
        })
    }

    /// Recorded and replayed where a device computes; as many results as inputs.
    fn recorded<const COUNT: usize>(
        &self,
        ev: &Evaluator,
        inputs: [&Ciphertext; COUNT],
        target: Level,
        work: impl Fn([&Ciphertext; COUNT]) -> Result<[Ciphertext; COUNT], CkksError>,
    ) -> Result<[Ciphertext; COUNT], CkksError> {
        let outs = ev.recorded(self.circuit, target.0 as u64, &inputs, |inputs| {
            let inputs = std::array::from_fn(|k| inputs[k]);
            work(inputs).map(Vec::from)
        })?;
        let mut outs = outs.into_iter();
        Ok(std::array::from_fn(|_| {
            outs.next().expect("a result for each input")
        }))
    }

    /// A value at the level that SlotsToCoeffs begins at.
    fn input(&self, ev: &Evaluator, ct: &Ciphertext) -> Result<Ciphertext, CkksError> {
        let level = Level(slots_to_coeffs_levels(self.shape.log_slots));
        let have = self.params.level_of(ct.basis());
        if have.is_none_or(|l| l < level) {
            return Err(CkksError::Mismatch {
                operation: "bootstrap",
                expected: format!("an input at {level} or above"),
                got: have.map_or("limbs of no level".into(), |l| l.to_string()),
            });
        }
        ev.drop_to(ct, level)
    }

    /// From an [`input`](Self::input) to a level at its canonical scale; of a pair both values, one after the other.
    fn refresh(
        &self,
        encoder: &Encoder,
        ev: &Evaluator,
        input: Ciphertext,
        level: Level,
    ) -> Result<Ciphertext, CkksError> {
        let message = self.to_coefficients(encoder, ev, input)?;
        let raised = self.raise(ev, &message, level)?;
        let (re, im) = self.to_slots(ev, raised)?;

        // sin(2 pi m/q0) at scale S is m / message_scale at scale S * 2 pi * message_scale / q0.
        let q0 = self.params.prime(0) as f64;
        let unit = std::f64::consts::TAU * self.slope * self.message_scale.0 / q0;
        let sine_scale = Scale(self.params.scale(level).0 / unit);
        let mut out = self.eval_mod.apply(ev, &re, sine_scale)?;
        if let Some(im) = im {
            let mut im = self.eval_mod.apply(ev, &im, sine_scale)?;
            ev.mul_by_i_assign(&mut im);
            ev.add_assign(&mut out, &im)?;
        }
        out.scale = self.params.scale(level);
        Ok(out)
    }

    /// SlotsToCoeffs down to the base limb.
    fn to_coefficients(
        &self,
        encoder: &Encoder,
        ev: &Evaluator,
        input: Ciphertext,
    ) -> Result<Ciphertext, CkksError> {
        if self.slots_to_coeffs.is_empty() {
            return ev.mul_constant_to(&input, 1.0, self.message_scale);
        }
        self.slots_to_coeffs
            .iter()
            .try_fold(input, |value, stage| stage.apply(encoder, ev, &value))
    }

    /// The same integers modulo more limbs, projected onto the size's subring: multiples of m + q0 I in place of m modulo q0, with I kept
    /// small by a sparse secret in between.
    fn raise(&self, ev: &Evaluator, ct: &Ciphertext, level: Level) -> Result<Extended, CkksError> {
        let ring = self.params.ring();
        let (gadget, galois) = (GadgetName::Encapsulate, 1);
        let to_sparse = ev.keys().get(KeyId { gadget, galois }, Basis::single(0))?;
        let decomposed = ev.decompose(&ct.polys[1], gadget);
        let mut sparse = ev.mod_down(&ev.key_product(&decomposed, to_sparse, 1, ct.scale));
        ring.add_assign(&mut sparse.polys[0], &ct.polys[0]);
        let polys = [&sparse.polys[0], &sparse.polys[1]];
        self.trace
            .of_raised(ev, polys, self.raised_basis(level), ct.scale)
    }

    /// CoeffsToSlots: t' = x / K' for the real parts, and for the imaginary parts of complex values.
    fn to_slots(
        &self,
        ev: &Evaluator,
        raised: Extended,
    ) -> Result<(Ciphertext, Option<Ciphertext>), CkksError> {
        let scale = Scale(Self::eval_mod_scale(&self.params));
        let conjugation = Evaluator::galois_of_conjugation(&self.params);
        let hoisted = |value| ev.hoist_extended(value, GadgetName::Bootstrap);
        let mut value = if let Some((first, rest)) = self.coeffs_to_slots.split_first() {
            let mut value = first.apply_hoisted(ev, &hoisted(raised))?;
            for stage in rest {
                let rescaled = ev.mod_down_rescale(&value)?;
                value = stage.apply_hoisted(ev, &ev.hoist(&rescaled, GadgetName::Bootstrap))?;
            }
            if self.shape.values != Values::Complex {
                value = ev.add_automorphisms(&hoisted(value), &[conjugation])?;
            }
            ev.mod_down_rescale(&value)?
        } else {
            // One slot: the polynomial is the value already, only its scale is too large.
            let gain = 2.0 * self.params.slots() as f64;
            let scale_now = Scale(self.params.prime(0) as f64 * gain * self.eval_mod.range);
            let value = Extended {
                scale: scale_now,
                ..raised
            };
            ev.rescale_extended_to(value, scale)?
        };
        value.scale = scale;
        if self.shape.values != Values::Complex {
            return Ok((value, None));
        }
        let conjugate = ev.conjugate(&value)?;
        let mut re = value.clone();
        ev.add_assign(&mut re, &conjugate)?;
        let mut im = conjugate;
        ev.sub_assign(&mut im, &value)?;
        ev.mul_by_i_assign(&mut im);
        Ok((re, Some(im)))
    }
}
