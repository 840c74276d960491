//! What comes from outside is refused before anything is computed with it: plans, keys and ciphertexts, each by what is wrong with it.

use std::sync::Arc;

use taciturn_ckks::{Ciphertext, EvaluationKeys, Parameters, Scale, named};
use taciturn_client::Client;
use taciturn_graph::{CostTable, Level, Plan, WhenNothingIsLeft};
use taciturn_models::random::RandomSpec;
use taciturn_models::{CalibrationOptions, Checkpoint, StepModel, calibrate, measure_bounds};
use taciturn_ring::Basis;
use taciturn_server::{ServerError, Session};

const CONTEXT: usize = 6;

struct Fixture {
    params: Parameters,
    model: Arc<StepModel>,
    plan: Plan,
    client: Client,
}

impl Fixture {
    fn new() -> Self {
        let spec = RandomSpec {
            width: 16,
            heads: 2,
            layers: 1,
            hidden: 32,
            ..RandomSpec::default()
        };
        let folder = tempfile::tempdir().unwrap();
        spec.write(folder.path()).unwrap();
        let checkpoint = Checkpoint::load(folder.path()).unwrap();
        let tokens: Vec<u32> = (0..600).map(|i| i * 97 % spec.vocabulary as u32).collect();
        let options = CalibrationOptions {
            context: CONTEXT,
            ..CalibrationOptions::default()
        };
        let mut calibration = calibrate(&checkpoint, &tokens, &options).unwrap();
        measure_bounds(&checkpoint, &mut calibration, &tokens, 32).unwrap();
        let params = named("insecure-n11").unwrap();
        let model = StepModel::new(&checkpoint, &calibration, params.slots(), CONTEXT).unwrap();
        let highest = Level(params.max_level().0 as u32);
        let costs = CostTable::reference(params.slots(), highest);
        let plan = model.plan(&costs, &WhenNothingIsLeft).unwrap();
        Fixture {
            client: Client::new(&params).unwrap(),
            model: Arc::new(model),
            params,
            plan,
        }
    }

    fn keys(&mut self, plan: &Plan) -> EvaluationKeys {
        self.client.evaluation_keys(plan, |_, _| {}).unwrap()
    }

    fn session(&self, plan: &Plan, keys: EvaluationKeys) -> Result<Session, ServerError> {
        Session::new(
            self.model.clone(),
            plan.clone(),
            &self.params,
            keys,
            None,
            |_, _| {},
        )
    }

    fn input(&mut self, level: Level) -> Ciphertext {
        let embedding = self.model.embed(5, 1).unwrap();
        let seeded = self.client.encrypt(&embedding, level).unwrap();
        seeded.expand(&self.params)
    }

    fn input_level(&self) -> Level {
        self.plan.node(StepModel::input_name()).unwrap().level()
    }
}

#[test]
fn ciphertexts_that_are_none_of_the_session_are_refused_and_change_nothing() {
    let mut f = Fixture::new();
    let (plan, level) = (f.plan.clone(), f.input_level());
    let keys = f.keys(&plan);
    let mut session = f.session(&plan, keys).unwrap();
    let good = f.input(level);
    let other_ring = {
        let params = named("insecure-n12").unwrap();
        let mut client = Client::new(&params).unwrap();
        client.encrypt(&[0.5], level).unwrap().expand(&params)
    };
    type Spoil<'a> = Box<dyn Fn(&mut Ciphertext) + 'a>;
    let params = f.params.clone();
    let (ring, first_prime) = (params.ring(), params.prime(0));
    let spoils: Vec<(&str, Spoil)> = vec![
        ("two polynomials", Box::new(|c| c.polys.truncate(1))),
        ("two polynomials", Box::new(|c| c.polys.clear())),
        (
            "two polynomials",
            Box::new(|c| c.polys.push(c.polys[0].clone())),
        ),
        ("ring degree 2048", Box::new(|c| *c = other_ring.clone())),
        ("evaluation form", Box::new(|c| ring.intt(&mut c.polys[1]))),
        (
            "on the same limbs",
            Box::new(|c| c.polys[1] = ring.restrict(&c.polys[1], Basis::single(0))),
        ),
        (
            "limbs of level",
            Box::new(|c| {
                let gap = Basis::range(1..c.basis().len());
                let polys = c.polys.iter().map(|poly| ring.restrict(poly, gap));
                c.polys = polys.collect();
            }),
        ),
        ("scale 2^", Box::new(|c| c.scale = Scale(c.scale.0 * 1.01))),
        ("scale 2^", Box::new(|c| c.scale = Scale(f64::NAN))),
        (
            "below its prime",
            Box::new(|c| c.polys[0].limb_mut(0)[7] = first_prime),
        ),
        (
            "below its prime",
            Box::new(|c| {
                if let Some(word) = c.polys[1].words_mut().last_mut() {
                    *word = u64::MAX;
                }
            }),
        ),
    ];
    for (expected, spoil) in spoils {
        let mut bad = good.clone();
        spoil(&mut bad);
        match session.absorb(bad, |_, _, _| panic!("something was computed")) {
            Err(error @ ServerError::Input { .. }) => {
                let message = error.to_string();
                assert!(message.contains(expected), "no `{expected}` in: {message}");
            }
            Err(other) => panic!("{expected}: {other}"),
            Ok(_) => panic!("{expected}: accepted"),
        }
    }
    if let Some(low) = level.after(1) {
        let low = f.input(low);
        assert!(matches!(
            session.absorb(low, |_, _, _| panic!("something was computed")),
            Err(ServerError::Input { .. })
        ));
    }
    assert_eq!(session.position(), 1);
    session.absorb(good, |_, _, _| {}).unwrap();
    assert_eq!(session.position(), 2);
}

#[test]
fn keys_that_do_not_cover_the_plan_are_refused() {
    let mut f = Fixture::new();
    let plan = f.plan.clone();
    let counts = |result: Result<Session, ServerError>| match result {
        Err(ServerError::Keys {
            needed, missing, ..
        }) => (needed, missing),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the session began"),
    };
    let (needed, missing) = counts(f.session(&plan, EvaluationKeys::default()));
    assert!(needed > 10 && missing == needed, "{missing} of {needed}");
    // No relinearization key at all, and one that does not reach the levels where it is needed.
    for level in [None, Some(Level(1))] {
        let fewer = Plan {
            relinearization: level,
            ..plan.clone()
        };
        let keys = f.keys(&fewer);
        assert_eq!(counts(f.session(&plan, keys)), (needed, 1));
    }
}

#[test]
fn plans_of_other_parameters_or_models_are_refused() {
    let f = Fixture::new();
    type Spoil = fn(&mut Plan);
    let spoils: [(&str, Spoil); 8] = [
        ("number of slots", |plan| plan.slots *= 2),
        ("relinearization", |plan| {
            plan.relinearization = Some(Level(17));
        }),
        ("the rotation by 3", |plan| {
            plan.rotations.insert(3, Level(u32::MAX));
        }),
        ("embedding", |plan| {
            let node = plan.nodes.get_mut("embedding").unwrap();
            node.level_in = Level(99);
        }),
        ("cache", |plan| {
            let (_, level) = plan.caches.iter_mut().next().unwrap();
            *level = Level(17);
        }),
        ("size of a bootstrap", |plan| bootstrap(plan).slots = 0),
        ("size of a bootstrap", |plan| bootstrap(plan).slots = 2048),
        ("not in the plan", |plan| {
            plan.nodes.remove("final.norm");
            plan.nodes.retain(|name, _| !name.starts_with("final"));
        }),
    ];
    for (expected, spoil) in spoils {
        let mut plan = f.plan.clone();
        spoil(&mut plan);
        match f.session(&plan, EvaluationKeys::default()) {
            Err(error @ (ServerError::Plan { .. } | ServerError::Run(_))) => {
                let message = error.to_string();
                assert!(message.contains(expected), "no `{expected}` in: {message}");
            }
            Err(other) => panic!("{expected}: {other}"),
            Ok(_) => panic!("{expected}: the session began"),
        }
    }
}

/// The first refresh of a plan.
fn bootstrap(plan: &mut Plan) -> &mut taciturn_graph::BootstrapPlan {
    plan.nodes
        .values_mut()
        .find_map(|node| node.bootstrap.as_mut())
        .unwrap()
}
