//! Bootstrapping: SlotsToCoeffs, modulus raising under an encapsulated sparse secret, CoeffsToSlots, EvalMod.
//!
//! SlotsToCoeffs comes first, where few limbs are left and rotations are cheap. The message then sits in the coefficients themselves, so
//! that the precision is the same for every vector of a given bound, a constant one or one with a single entry included.
//! Sources: Cheon et al. 2018; Bossuat et al. 2021 (EvalMod, double hoisting) and 2022 (sparse-secret encapsulation).

use std::collections::BTreeSet;

use taciturn_ckks::{
    Ciphertext, CkksError, Encoder, Evaluator, GadgetName, KeyId, KeyRequest, Level, Parameters,
    Scale,
};
use taciturn_ring::Basis;

use crate::{
    Diagonals, LinearTransform,
    embedding::{coeffs_to_slots, slots_to_coeffs},
    eval_mod::EvalMod,
    trace::{trace, trace_steps},
};

/// The usual log2 of q0 over the largest message coefficient. The sine differs from the identity by (2 pi / ratio)^2 / 6 of a value at the bound:
/// 2^-17.3 at 10 bits, and a slope fitted over the interval takes two bits off that.
pub const MESSAGE_RATIO_BITS: i32 = 10;

/// What one bootstrap is made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BootstrapShape {
    /// log2 of the distinct slots of the value.
    pub log_slots: u32,
    /// Bound on the absolute value of every slot (of the real and the imaginary part each).
    pub bound: f64,
    /// Whether the slots are complex; a real value needs one EvalMod, a complex one two.
    pub complex: bool,
    /// log2 of q0 over the largest message coefficient: more makes the sine truer and the message smaller beside the noise. See
    /// [`MESSAGE_RATIO_BITS`].
    pub message_ratio_bits: i32,
}

/// Message ratios that make sense: below, the sine bends within the message; above, noise drowns it.
const RATIOS: std::ops::RangeInclusive<i32> = 6..=20;

/// Levels that SlotsToCoeffs takes from the input: one for a value of a single slot (its scaling), up to three for all slots.
pub fn slots_to_coeffs_levels(log_slots: u32) -> usize {
    match log_slots {
        0..=6 => 1,
        7..=11 => 2,
        _ => 3,
    }
}

/// Stages (and limbs) of CoeffsToSlots; a single slot needs one limb for its scaling.
fn coeffs_to_slots_stages(log_slots: u32) -> usize {
    match log_slots {
        0..=3 => 1,
        4..=8 => 2,
        _ => 3,
    }
}

/// Refreshes ciphertexts of one shape to any level.
pub struct Bootstrapper {
    params: Parameters,
    shape: BootstrapShape,
    eval_mod: EvalMod,
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
        if shape.log_slots > params.log_slots() || !(shape.bound > 0.0 && shape.bound.is_finite()) {
            return Err(CkksError::Mismatch {
                operation: "bootstrap",
                expected: format!(
                    "at most 2^{} slots and a positive bound",
                    params.log_slots()
                ),
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
        let ratio = 2f64.powi(shape.message_ratio_bits);
        let q0 = params.prime(0) as f64;
        let message_scale = Scale(q0 / (ratio * shape.bound));
        let eval_mod = EvalMod::new(ratio);
        let to_coeffs = if shape.log_slots == 0 {
            Vec::new()
        } else {
            let stages = slots_to_coeffs_levels(shape.log_slots);
            let matrices = slots_to_coeffs(encoder, shape.log_slots, stages as u32);
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
        let gain = params.slots() as f64 / (1u64 << shape.log_slots) as f64;
        let stages = coeffs_to_slots_stages(shape.log_slots);
        let reduction = Self::eval_mod_scale(&params) / (q0 * gain);
        let to_slots = if shape.log_slots == 0 {
            Vec::new()
        } else {
            let mut matrices = coeffs_to_slots(encoder, shape.log_slots, stages as u32);
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
        // The least-squares slope of sin(a v) over v in [-1, 1]; the cubic term alone matters: a - a^3/10.
        let a = std::f64::consts::TAU / ratio;
        let slope = 1.0 - a * a / 10.0;
        Ok(Self {
            params,
            shape,
            eval_mod,
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

    /// Limbs after the modulus is raised, for an output level: the output's, EvalMod's, and as many of CoeffsToSlots' as the size needs.
    fn raised_basis(&self, target: Level) -> Basis {
        let start = self.params.coeffs_to_slots_limbs().start;
        let stages = coeffs_to_slots_stages(self.shape.log_slots);
        self.params
            .level_basis(target)
            .union(Basis::range(self.params.eval_mod_limbs()))
            .union(Basis::range(start..start + stages))
    }

    /// Adds the keys that bootstraps of this shape to this level need.
    pub fn request_keys(&self, target: Level, request: &mut KeyRequest) {
        let raised = self.raised_basis(target);
        let galois = |k: i64| Evaluator::galois_of_rotation(&self.params, k);
        let mut switch = |gadget, galois, limbs| request.add(KeyId { gadget, galois }, limbs);
        switch(GadgetName::Encapsulate, 1, Basis::single(0));
        switch(GadgetName::Decapsulate, 1, raised);
        switch(GadgetName::Bootstrap, 1, raised);
        switch(
            GadgetName::Bootstrap,
            Evaluator::galois_of_conjugation(&self.params),
            raised,
        );
        let top: BTreeSet<i64> = trace_steps(self.params.slots(), 1 << self.shape.log_slots)
            .into_iter()
            .flatten()
            .chain(
                self.coeffs_to_slots
                    .iter()
                    .flat_map(LinearTransform::rotations),
            )
            .collect();
        for k in top {
            switch(GadgetName::Bootstrap, galois(k), raised);
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
    }

    /// The value of `ct` at `target` level and its canonical scale. The input is at its level's canonical scale, at
    /// [`slots_to_coeffs_levels`] or above.
    pub fn bootstrap(
        &self,
        encoder: &Encoder,
        ev: &Evaluator,
        ct: &Ciphertext,
        target: Level,
    ) -> Result<Ciphertext, CkksError> {
        let message = self.to_coefficients(encoder, ev, ct)?;
        let raised = self.raise(ev, &message, target)?;
        let projected = trace(ev, raised, 1 << self.shape.log_slots)?;
        let (re, im) = self.to_slots(encoder, ev, projected)?;

        // sin(2 pi m/q0) at scale S is m / message_scale at scale S * 2 pi * message_scale / q0.
        let q0 = self.params.prime(0) as f64;
        let unit = std::f64::consts::TAU * self.slope * self.message_scale.0 / q0;
        let sine_scale = Scale(self.params.scale(target).0 / unit);
        let mut out = self.eval_mod.apply(ev, &re, sine_scale)?;
        if let Some(im) = im {
            let mut im = self.eval_mod.apply(ev, &im, sine_scale)?;
            ev.mul_by_i_assign(&mut im);
            ev.add_assign(&mut out, &im)?;
        }
        out.scale = self.params.scale(target);
        Ok(out)
    }

    /// SlotsToCoeffs down to the base limb.
    fn to_coefficients(
        &self,
        encoder: &Encoder,
        ev: &Evaluator,
        ct: &Ciphertext,
    ) -> Result<Ciphertext, CkksError> {
        let level = Level(slots_to_coeffs_levels(self.shape.log_slots));
        let have = self.params.level_of(ct.basis());
        if have.is_none_or(|l| l < level) {
            return Err(CkksError::Mismatch {
                operation: "bootstrap",
                expected: format!("an input at {level} or above"),
                got: have.map_or("limbs of no level".into(), |l| l.to_string()),
            });
        }
        let mut value = ev.drop_to(ct, level)?;
        if self.slots_to_coeffs.is_empty() {
            return ev.mul_constant_to(&value, 1.0, self.message_scale);
        }
        for stage in &self.slots_to_coeffs {
            value = stage.apply(encoder, ev, &value)?;
        }
        Ok(value)
    }

    /// The same integers modulo more limbs: m + q0 I in place of m modulo q0, with I kept small by a sparse secret in between.
    fn raise(
        &self,
        ev: &Evaluator,
        ct: &Ciphertext,
        target: Level,
    ) -> Result<Ciphertext, CkksError> {
        let ring = self.params.ring();
        let base = Basis::single(0);
        let id = |gadget| KeyId { gadget, galois: 1 };
        let to_sparse = ev.keys().get(id(GadgetName::Encapsulate), base)?;
        let decomposed = ev.decompose(&ct.polys[1], GadgetName::Encapsulate);
        let mut sparse = ev.mod_down(&ev.key_product(&decomposed, to_sparse, 1, ct.scale));
        ring.add_assign(&mut sparse.polys[0], &ct.polys[0]);

        let raised = self.raised_basis(target);
        let to_dense = ev.keys().get(id(GadgetName::Decapsulate), raised)?;
        let special = self.params.gadget(GadgetName::Decapsulate).special;
        let lift = |poly: &taciturn_ring::Poly, to: Basis| {
            let mut lifted = ring.raise(&ring.intt_new(poly), to);
            ring.ntt(&mut lifted);
            lifted
        };
        let c1 = lift(&sparse.polys[1], raised.union(special));
        let mut out = ev.mod_down(&ev.lifted_product(c1, to_dense, special, ct.scale));
        ring.add_assign(&mut out.polys[0], &lift(&sparse.polys[0], raised));
        Ok(out)
    }

    /// CoeffsToSlots: t' = x / K' for the real parts, and for the imaginary parts of complex values.
    fn to_slots(
        &self,
        encoder: &Encoder,
        ev: &Evaluator,
        ct: Ciphertext,
    ) -> Result<(Ciphertext, Option<Ciphertext>), CkksError> {
        let scale = Scale(Self::eval_mod_scale(&self.params));
        let mut value = ct;
        if self.coeffs_to_slots.is_empty() {
            // One slot: the polynomial is the value already, only its scale is too large.
            let gain = self.params.slots() as f64;
            value.scale = Scale(self.params.prime(0) as f64 * gain * 2.0 * self.eval_mod.range);
            value = ev.mul_constant_to(&value, 1.0, scale)?;
        }
        for stage in &self.coeffs_to_slots {
            value = stage.apply(encoder, ev, &value)?;
        }
        value.scale = scale;
        let conjugate = ev.conjugate(&value)?;
        let mut re = value.clone();
        ev.add_assign(&mut re, &conjugate)?;
        if !self.shape.complex {
            return Ok((re, None));
        }
        let mut im = conjugate;
        ev.sub_assign(&mut im, &value)?;
        ev.mul_by_i_assign(&mut im);
        Ok((re, Some(im)))
    }
}
