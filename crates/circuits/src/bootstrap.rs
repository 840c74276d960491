//! Bootstrapping: SlotsToCoeffs, modulus raising under an encapsulated sparse secret, CoeffsToSlots, EvalMod.
//!
//! SlotsToCoeffs comes first, where few limbs are left and rotations are cheap. The message then sits in the coefficients themselves, so
//! that the precision is the same for every vector of a given bound, a constant one or one with a single entry included.
//! Sources: Cheon et al. 2018; Bossuat et al. 2021 (EvalMod, double hoisting) and 2022 (sparse-secret encapsulation).

use std::{collections::BTreeSet, sync::Arc};

use taciturn_ckks::{
    Ciphertext, CircuitId, CkksError, Encoder, Evaluator, Extended, GadgetName, KeyId, KeyRequest,
    Level, Parameters, Scale,
};
use taciturn_ring::Basis;

use crate::{
    LinearTransform,
    shape::{BootstrapShape, RATIOS, Values, slots_to_coeffs_levels},
    tables::{Tables, eval_mod_scale},
};

/// Refreshes ciphertexts of one shape to any level.
pub struct Bootstrapper {
    circuit: CircuitId,
    shape: BootstrapShape,
    /// Scale of a slot's value after SlotsToCoeffs: q0 / (ratio * bound).
    message_scale: Scale,
    /// The last stage of SlotsToCoeffs, which lands on the message scale. None for a single slot.
    to_message: Option<LinearTransform>,
    tables: Arc<Tables>,
}

impl Bootstrapper {
    /// Encodes the transforms of a shape.
    pub fn new(encoder: &Encoder, shape: BootstrapShape) -> Result<Self, CkksError> {
        Self::check(encoder.parameters(), shape)?;
        Self::over(encoder, shape, Arc::new(Tables::new(encoder, shape)?))
    }

    /// The same for values of another bound. Nearly all tables are shared.
    pub fn with_bound(&self, encoder: &Encoder, bound: f64) -> Result<Self, CkksError> {
        let shape = BootstrapShape {
            bound,
            ..self.shape
        };
        Self::check(encoder.parameters(), shape)?;
        Self::over(encoder, shape, self.tables.clone())
    }

    fn check(params: &Parameters, shape: BootstrapShape) -> Result<(), CkksError> {
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
        Ok(())
    }

    fn over(
        encoder: &Encoder,
        shape: BootstrapShape,
        tables: Arc<Tables>,
    ) -> Result<Self, CkksError> {
        let params = &tables.params;
        let ratio = shape.message_ratio_bits.exp2();
        let message_scale = Scale(params.prime(0) as f64 / (ratio * shape.bound));
        let encode = |matrix| tables.slots_to_coeffs_stage(encoder, matrix, 1, message_scale);
        let to_message = tables.to_message.as_ref().map(encode).transpose()?;
        Ok(Self {
            circuit: CircuitId::new(),
            shape,
            message_scale,
            to_message,
            tables,
        })
    }

    /// The stages of SlotsToCoeffs in order of application.
    fn slots_to_coeffs(&self) -> impl Iterator<Item = &LinearTransform> {
        self.tables.slots_to_coeffs.iter().chain(&self.to_message)
    }

    /// The shape that it was made for.
    pub fn shape(&self) -> BootstrapShape {
        self.shape
    }

    /// Limbs after the modulus is raised, for the level that EvalMod ends at: that level's, EvalMod's, and as many of CoeffsToSlots' as the
    /// size needs.
    fn raised_basis(&self, refreshed: Level) -> Basis {
        let start = self.tables.params.coeffs_to_slots_limbs().start;
        let stages = self.shape.coeffs_to_slots_stages();
        self.tables
            .params
            .level_basis(refreshed)
            .union(Basis::range(self.tables.params.eval_mod_limbs()))
            .union(Basis::range(start..start + stages))
    }

    /// The level that EvalMod ends at: taking a pair apart takes one more. The error names the highest target.
    fn refreshed_level(&self, target: Level) -> Result<Level, CkksError> {
        let apart = usize::from(self.tables.halves.is_some());
        let most = self.tables.params.max_level().0 - apart;
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
        let galois = |k: i64| Evaluator::galois_of_rotation(&self.tables.params, k);
        let mut switch = |gadget, galois, limbs| request.add(KeyId { gadget, galois }, limbs);
        switch(GadgetName::Encapsulate, 1, Basis::single(0));
        for galois in self.tables.trace.lifted() {
            switch(GadgetName::Decapsulate, galois, raised);
        }
        let product = self.tables.params.gadget(GadgetName::Product).limbs;
        switch(GadgetName::Product, 1, raised.intersection(product));
        for (gadget, galois) in self.tables.trace.switched() {
            switch(gadget, galois, raised);
        }
        if !self.shape.is_constant() {
            let rotations = self
                .tables
                .coeffs_to_slots
                .iter()
                .flat_map(LinearTransform::rotations);
            let conjugation = Evaluator::galois_of_conjugation(&self.tables.params);
            let top: BTreeSet<u64> = rotations.map(galois).chain([conjugation]).collect();
            for galois in top {
                switch(GadgetName::Bootstrap, galois, raised);
            }
        }
        let level = Level(slots_to_coeffs_levels(self.shape.log_slots));
        let low = self.tables.params.level_basis(level);
        let transforms = self.slots_to_coeffs();
        for k in transforms.flat_map(LinearTransform::rotations) {
            switch(GadgetName::Model, galois(k), low);
        }
        if let Some(halves) = &self.tables.halves {
            let limbs = self.tables.params.level_basis(refreshed);
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
        let Some(halves) = &self.tables.halves else {
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
        let have = self.tables.params.level_of(ct.basis());
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
        let q0 = self.tables.params.prime(0) as f64;
        let unit = std::f64::consts::TAU * self.tables.slope * self.message_scale.0 / q0;
        let sine_scale = Scale(self.tables.params.scale(level).0 / unit);
        let mut out = self.tables.eval_mod.apply(ev, &re, sine_scale)?;
        if let Some(im) = im {
            let mut im = self.tables.eval_mod.apply(ev, &im, sine_scale)?;
            ev.mul_by_i_assign(&mut im);
            ev.add_assign(&mut out, &im)?;
        }
        out.scale = self.tables.params.scale(level);
        Ok(out)
    }

    /// SlotsToCoeffs down to the base limb.
    fn to_coefficients(
        &self,
        encoder: &Encoder,
        ev: &Evaluator,
        input: Ciphertext,
    ) -> Result<Ciphertext, CkksError> {
        if self.to_message.is_none() {
            return ev.mul_constant_to(&input, 1.0, self.message_scale);
        }
        self.slots_to_coeffs()
            .try_fold(input, |value, stage| stage.apply(encoder, ev, &value))
    }

    /// The same integers modulo more limbs, projected onto the size's subring: multiples of m + q0 I in place of m modulo q0, with I kept
    /// small by a sparse secret in between.
    fn raise(&self, ev: &Evaluator, ct: &Ciphertext, level: Level) -> Result<Extended, CkksError> {
        let ring = self.tables.params.ring();
        let (gadget, galois) = (GadgetName::Encapsulate, 1);
        let to_sparse = ev.keys().get(KeyId { gadget, galois }, Basis::single(0))?;
        let decomposed = ev.decompose(&ct.polys[1], gadget);
        let mut sparse = ev.mod_down(&ev.key_product(&decomposed, to_sparse, 1, ct.scale));
        ring.add_assign(&mut sparse.polys[0], &ct.polys[0]);
        let polys = [&sparse.polys[0], &sparse.polys[1]];
        self.tables
            .trace
            .of_raised(ev, polys, self.raised_basis(level), ct.scale)
    }

    /// CoeffsToSlots: t' = x / K' for the real parts, and for the imaginary parts of complex values.
    fn to_slots(
        &self,
        ev: &Evaluator,
        raised: Extended,
    ) -> Result<(Ciphertext, Option<Ciphertext>), CkksError> {
        let scale = Scale(eval_mod_scale(&self.tables.params));
        let conjugation = Evaluator::galois_of_conjugation(&self.tables.params);
        let hoisted = |value| ev.hoist_extended(value, GadgetName::Bootstrap);
        let mut value = if let Some((first, rest)) = self.tables.coeffs_to_slots.split_first() {
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
            let gain = 2.0 * self.tables.params.slots() as f64;
            let scale_now =
                Scale(self.tables.params.prime(0) as f64 * gain * self.tables.eval_mod.range);
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
