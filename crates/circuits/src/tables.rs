//! What the bootstraps of one shape compute with: transforms, encoded, and the polynomial of EvalMod.

use taciturn_ckks::{CkksError, Encoder, GadgetName, Level, Parameters, Scale};

use crate::{
    Diagonals, LinearTransform,
    embedding::{coeffs_to_real_slots, coeffs_to_slots, real_slots_to_coeffs, slots_to_coeffs},
    eval_mod::EvalMod,
    halves::Halves,
    shape::{BootstrapShape, Values, slots_to_coeffs_levels},
    trace::Trace,
};

/// What bootstraps of one shape share, whatever their bounds.
pub(crate) struct Tables {
    pub params: Parameters,
    pub eval_mod: EvalMod,
    pub trace: Trace,
    /// Takes the two values of a pair apart.
    pub halves: Option<Halves>,
    /// In order of application, without the last stage.
    pub slots_to_coeffs: Vec<LinearTransform>,
    /// The last stage of SlotsToCoeffs. None for a single slot.
    pub to_message: Option<Diagonals>,
    pub coeffs_to_slots: Vec<LinearTransform>,
    /// The slope of the sine's best linear fit over the interval, relative to 2 pi.
    pub slope: f64,
}

impl Tables {
    /// Encodes the transforms of a shape.
    pub fn new(encoder: &Encoder, shape: BootstrapShape) -> Result<Self, CkksError> {
        let params = encoder.parameters().clone();
        let ratio = shape.message_ratio_bits.exp2();
        let eval_mod = EvalMod::new(ratio);
        let log_complex = shape.log_complex_slots();
        let coeffs_to_slots = Self::coeffs_to_slots(encoder, shape, eval_mod.range)?;
        // The slope whose line is nearest to sin(a v) over v in [-1, 1] at its worst; the cubic term alone matters: a - a^3/8.
        let a = std::f64::consts::TAU / ratio;
        let mut tables = Self {
            eval_mod,
            trace: Trace::new(&params, 1 << log_complex, shape.is_constant()),
            halves: (shape.values == Values::Pair).then(|| Halves::new(&params, shape.log_slots)),
            slots_to_coeffs: Vec::new(),
            to_message: None,
            coeffs_to_slots,
            slope: 1.0 - a * a / 8.0,
            params,
        };
        if shape.log_slots > 0 {
            let stages = slots_to_coeffs_levels(shape.log_slots);
            let mut matrices = match shape.values {
                Values::Real => real_slots_to_coeffs(encoder, shape.log_slots, stages as u32),
                _ => slots_to_coeffs(encoder, shape.log_slots, stages as u32),
            };
            tables.to_message = matrices.pop();
            // Stage i takes level `stages - i` one lower.
            let encode = |(i, matrix): (usize, &Diagonals)| {
                let landing = tables.params.scale(Level(stages - i - 1));
                tables.slots_to_coeffs_stage(encoder, matrix, stages - i, landing)
            };
            let encoded: Result<_, _> = matrices.iter().enumerate().map(encode).collect();
            tables.slots_to_coeffs = encoded?;
        }
        Ok(tables)
    }

    /// A stage of SlotsToCoeffs from `level` to the one below, whose result has the scale `landing`.
    pub fn slots_to_coeffs_stage(
        &self,
        encoder: &Encoder,
        matrix: &Diagonals,
        level: usize,
        landing: Scale,
    ) -> Result<LinearTransform, CkksError> {
        let params = &self.params;
        let basis = params
            .level_basis(Level(level))
            .union(params.gadget(GadgetName::Model).special);
        let scale = landing.0 * params.prime(level) as f64 / params.scale(Level(level)).0;
        LinearTransform::new(encoder, matrix, Scale(scale), basis)
    }

    /// From coefficients at scale q0 N/2d per unit of x, and z + conj(z) = 2x, to t' = x / K' at EvalMod's scale.
    fn coeffs_to_slots(
        encoder: &Encoder,
        shape: BootstrapShape,
        range: f64,
    ) -> Result<Vec<LinearTransform>, CkksError> {
        if shape.is_constant() {
            return Ok(Vec::new());
        }
        let params = encoder.parameters();
        let log_complex = shape.log_complex_slots();
        let gain = (params.slots() >> log_complex) as f64;
        let stages = shape.coeffs_to_slots_stages();
        let reduction = eval_mod_scale(params) / (params.prime(0) as f64 * gain);
        let mut matrices = match shape.values {
            Values::Complex => coeffs_to_slots(encoder, log_complex, stages as u32),
            _ => coeffs_to_real_slots(encoder, log_complex, stages as u32),
        };
        let each = matrices.len() as f64;
        let basis = params.ring().full_basis();
        let mut limb = params.coeffs_to_slots_limbs().start + stages;
        let encode = |matrix: &mut Diagonals| {
            limb -= 1;
            matrix.scale((0.5 / range).powf(1.0 / each));
            let scale = params.prime(limb) as f64 * reduction.powf(1.0 / each);
            LinearTransform::new(encoder, matrix, Scale(scale), basis)
        };
        matrices.iter_mut().map(encode).collect()
    }
}

/// The scale of t': near the primes of EvalMod, so that squarings keep it.
pub(crate) fn eval_mod_scale(params: &Parameters) -> f64 {
    params.prime(params.eval_mod_limbs().end - 1) as f64
}
