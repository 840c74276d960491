//! What comes from outside, checked before anything is computed with it: the plan, the client's keys and its ciphertexts.

use taciturn_ckks::{Ciphertext, Encoder, EvaluationKeys, Parameters};
use taciturn_graph::{Graph, Level, Plan, key_request};
use taciturn_models::StepModel;
use taciturn_ring::Form;

use crate::ServerError;

/// A plan asks for nothing that the parameters do not have, and fits the graph.
pub(crate) fn plan(plan: &Plan, params: &Parameters, graph: &Graph) -> Result<(), ServerError> {
    let bad = |what: String, expected: String, got: String| {
        Err(ServerError::Plan {
            what,
            expected,
            got,
        })
    };
    let slots = params.slots();
    if plan.slots != slots {
        return bad(
            "its number of slots".into(),
            format!("{slots}, as {} has", params.name()),
            plan.slots.to_string(),
        );
    }
    let max = Level(params.max_level().0 as u32);
    if let Some((what, got)) = levels(plan).find(|(_, level)| *level > max) {
        return bad(
            what,
            format!("a level of at most {max}, as {} has", params.name()),
            format!("level {got}"),
        );
    }
    let sizes = plan.bootstrap_sizes();
    if let Some(size) = (sizes.keys()).find(|size| !size.is_power_of_two() || **size > slots) {
        return bad(
            "the size of a bootstrap".into(),
            format!("a power of two of at most {slots} slots"),
            size.to_string(),
        );
    }
    plan.check(graph, max)
        .map_err(|error| ServerError::Run(error.into()))
}

/// Every level in a plan, with what it is the level of.
fn levels(plan: &Plan) -> impl Iterator<Item = (String, Level)> + '_ {
    let nodes = plan.nodes.iter().flat_map(|(name, node)| {
        let refreshed = node.bootstrap.as_ref().map(|bootstrap| bootstrap.target);
        [Some(node.level_in), Some(node.level_out), refreshed]
            .into_iter()
            .flatten()
            .map(move |level| (name.clone(), level))
    });
    let caches = plan
        .caches
        .iter()
        .map(|(name, level)| (name.clone(), *level));
    let rotations =
        (plan.rotations.iter()).map(|(steps, level)| (format!("the rotation by {steps}"), *level));
    let products = (plan.relinearization.iter()).map(|level| ("relinearization".into(), *level));
    let conjugations = (plan.conjugation.iter()).map(|level| ("conjugation".into(), *level));
    (nodes.chain(caches).chain(rotations))
        .chain(products)
        .chain(conjugations)
}

/// Every key that the plan needs is there, on the limbs where it is used.
pub(crate) fn keys(
    keys: &EvaluationKeys,
    plan: &Plan,
    params: &Parameters,
) -> Result<(), ServerError> {
    let request = key_request(&Encoder::new(params), plan)?;
    let mut missing = request
        .iter()
        .filter_map(|(id, limbs)| keys.get(id, limbs).err());
    match missing.next() {
        None => Ok(()),
        Some(first) => Err(ServerError::Keys {
            needed: request.len(),
            missing: 1 + missing.count(),
            first,
        }),
    }
}

/// A client's input is a ciphertext of these parameters at the plan's level or above: two polynomials in evaluation form on one level's
/// limbs, at its canonical scale, every residue below its prime.
pub(crate) fn input(
    input: &Ciphertext,
    plan: &Plan,
    params: &Parameters,
) -> Result<(), ServerError> {
    let least = match plan.node(StepModel::input_name()) {
        Ok(node) => node.level(),
        Err(error) => return Err(ServerError::Run(error.into())),
    };
    let bad = |expected: String, got: String| {
        Err(ServerError::Input {
            expected,
            got,
            params: params.name().to_owned(),
            level: least,
        })
    };
    let [c0, c1] = input.polys.as_slice() else {
        return bad("two polynomials".into(), input.polys.len().to_string());
    };
    let n = params.ring().n();
    if let Some(poly) = [c0, c1].into_iter().find(|poly| poly.n() != n) {
        return bad(format!("ring degree {n}"), poly.n().to_string());
    }
    if [c0, c1]
        .into_iter()
        .any(|poly| poly.form() != Form::Evaluation)
    {
        return bad("evaluation form".into(), "coefficient form".into());
    }
    if c0.basis() != c1.basis() {
        return bad(
            "both polynomials on the same limbs".into(),
            format!("limbs {} and {}", c0.basis(), c1.basis()),
        );
    }
    let level = match params.level_of(c0.basis()) {
        Some(level) if level.0 >= least.index() => level,
        _ => {
            return bad(
                format!("the limbs of level {least} or above"),
                format!("limbs {}", c0.basis()),
            );
        }
    };
    if !input.scale.matches(params.scale(level)) {
        return bad(
            format!("scale {}", params.scale(level)),
            input.scale.to_string(),
        );
    }
    if ![c0, c1]
        .into_iter()
        .all(|poly| params.ring().is_canonical(poly))
    {
        return bad("every residue below its prime".into(), "larger ones".into());
    }
    Ok(())
}
