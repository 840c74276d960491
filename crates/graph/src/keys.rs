//! Which keys a plan needs.

use std::collections::HashMap;

use taciturn_circuits::{BootstrapShape, Bootstrapper, MESSAGE_RATIO_BITS};
use taciturn_ckks::{CkksError, Encoder, Evaluator, GadgetName, KeyId, KeyRequest};

use crate::{Level, Plan};

/// Lists the keys of one plan after another; what it takes to know those of a bootstrap's size is done once.
pub struct KeyPlanner<'e> {
    encoder: &'e Encoder,
    bootstrappers: HashMap<u32, Bootstrapper>,
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
        let params = self.encoder.parameters();
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
        for (slots, target) in plan.bootstrap_sizes() {
            let log_slots = slots.ilog2();
            if !self.bootstrappers.contains_key(&log_slots) {
                // Keys depend on the size and the target only.
                let shape = BootstrapShape {
                    log_slots,
                    bound: 1.0,
                    complex: false,
                    message_ratio_bits: MESSAGE_RATIO_BITS,
                };
                let made = Bootstrapper::new(self.encoder, shape)?;
                self.bootstrappers.insert(log_slots, made);
            }
            if let Some(bootstrapper) = self.bootstrappers.get(&log_slots) {
                bootstrapper.request_keys(engine_level(target), &mut request);
            }
        }
        Ok(request)
    }
}

/// Every key that a step under this plan needs.
pub fn key_request(encoder: &Encoder, plan: &Plan) -> Result<KeyRequest, CkksError> {
    KeyPlanner::new(encoder).request(plan)
}
