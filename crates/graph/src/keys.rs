//! Which keys a plan needs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use taciturn_circuits::{BootstrapShape, Bootstrapper, MESSAGE_RATIO_BITS, Values};
use taciturn_ckks::{CkksError, Encoder, Evaluator, GadgetName, KeyId, KeyRequest, Parameters};

use crate::{Level, Plan};

/// Lists the keys of one plan after another; what it takes to know those of a bootstrap's size is done once.
pub struct KeyPlanner<'e> {
    encoder: &'e Encoder,
    bootstrappers: HashMap<(u32, Values), Bootstrapper>,
}

impl<'e> KeyPlanner<'e> {
    /// For the parameters of an encoder.
    pub fn new(encoder: &'e Encoder) -> Self {
        KeyPlanner {
            encoder,
            bootstrappers: HashMap::new(),
        }
    }

    /// Every key that a step under this plan needs.
    pub fn request(&mut self, plan: &Plan) -> Result<KeyRequest, CkksError> {
        let encoder = self.encoder;
        let params = encoder.parameters();
        let mut request = KeyRequest::default();
        let engine_level = |level: Level| taciturn_ckks::Level(level.index());
        let mut add = |galois, level: Level| {
            let gadget = GadgetName::Model;
            request.add(
                KeyId { gadget, galois },
                params.level_basis(engine_level(level)),
            );
        };
        for (&steps, &level) in &plan.rotations {
            add(Evaluator::galois_of_rotation(params, steps), level);
        }
        if let Some(level) = plan.relinearization {
            add(1, level);
        }
        if let Some(level) = plan.conjugation {
            add(Evaluator::galois_of_conjugation(params), level);
        }
        // A value of a pair is refreshed alone where a part of the step lacks the other.
        for (slots, target) in plan.bootstrap_sizes() {
            self.refresh(slots, Values::Real, target, &mut request)?;
        }
        for node in plan.nodes.values() {
            if let Some(bootstrap) = &node.bootstrap
                && bootstrap.partner.is_some()
                && pair_fits(params, bootstrap.slots, bootstrap.target)
            {
                self.refresh(
                    bootstrap.slots,
                    Values::Pair,
                    bootstrap.target,
                    &mut request,
                )?;
            }
        }
        Ok(request)
    }

    /// Adds the keys of a bootstrap. They depend on its size and target only.
    fn refresh(
        &mut self,
        slots: usize,
        values: Values,
        target: Level,
        request: &mut KeyRequest,
    ) -> Result<(), CkksError> {
        let bootstrapper = match self.bootstrappers.entry((slots.ilog2(), values)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => {
                let shape = bootstrap_shape(slots.ilog2(), 1.0, values);
                vacant.insert(Bootstrapper::new(self.encoder, shape)?)
            }
        };
        bootstrapper.request_keys(taciturn_ckks::Level(target.index()), request)
    }
}

/// The shape of a bootstrap of a step.
pub(crate) fn bootstrap_shape(log_slots: u32, bound: f64, values: Values) -> BootstrapShape {
    BootstrapShape {
        log_slots,
        bound,
        values,
        message_ratio_bits: MESSAGE_RATIO_BITS,
    }
}

/// Whether two values can share a bootstrap: taking them apart needs a level, and both half of the slots.
pub(crate) fn pair_fits(params: &Parameters, slots: usize, target: Level) -> bool {
    slots < params.slots() && taciturn_ckks::Level(target.index()) < params.max_level()
}

/// Every key that a step under this plan needs.
pub fn key_request(encoder: &Encoder, plan: &Plan) -> Result<KeyRequest, CkksError> {
    KeyPlanner::new(encoder).request(plan)
}
