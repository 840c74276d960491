//! The planner: what plans predict, as files, and why there is none.

mod common;

use common::block::{Model, SMALL};
use common::{MAX_LEVEL, exact};
use std::collections::HashMap;
use std::sync::Arc;
use taciturn_approx::interpolate;
use taciturn_graph::*;

/// The time of a plan is what counting a run of it gives.
#[test]
fn plans_predict_what_counting_measures() {
    let model = Model::new(SMALL);
    let graph = model.full();
    let table = CostTable::reference(graph.slots(), MAX_LEVEL);
    let plan = plan(&graph, &table, &WhenNothingIsLeft).unwrap();
    let mut counter = Counter::new(graph.slots(), &table);
    let inputs: HashMap<_, _> = graph
        .inputs()
        .map(|(name, _)| (name.to_owned(), plan.node(name).unwrap().level()))
        .collect();
    let mut seen = 0;
    let outputs = run(&graph, &plan, &mut counter, inputs, &mut |step| {
        assert_eq!((step.index, step.total), (seen, graph.nodes().len()));
        assert_eq!(*step.value, plan.node(step.name).unwrap().level());
        seen += 1;
    })
    .unwrap();
    assert_eq!(seen, graph.nodes().len());
    for (name, level) in outputs {
        let expected = name
            .rsplit_once('.')
            .and_then(|(family, _)| plan.caches.get(family))
            .copied();
        assert_eq!(level, expected.unwrap_or_default(), "{name}");
    }
    assert!(
        (counter.milliseconds() * 1e3 - plan.microseconds as f64).abs()
            < graph.nodes().len() as f64
    );
    assert_eq!(counter.counts().bootstraps, plan.bootstraps);
    assert!(
        counter
            .rotations()
            .iter()
            .all(|(steps, level)| plan.rotations[steps] >= *level)
    );
    assert_eq!(counter.relinearization(), plan.relinearization);
}

/// One plan serves all positions: it knows their nodes, levels and rotations.
#[test]
fn one_plan_serves_all_positions() {
    let model = Model::new(SMALL);
    let table = CostTable::reference(SMALL.slots, MAX_LEVEL);
    let plan = plan(&model.full(), &table, &WhenNothingIsLeft)
        .unwrap()
        .cover(&model.graph(0))
        .unwrap();
    for position in [0, 1, 30, 31, 32, 100] {
        assert_eq!(plan.clone().cover(&model.graph(position)).unwrap(), plan);
    }
    let mut other = Graph::new(SMALL.slots).unwrap();
    let x = other.input("x", Layout::periodic(4)).unwrap();
    other.square("unknown", x).unwrap();
    assert!(matches!(plan.cover(&other), Err(PlanError::Missing { .. })));
}

#[test]
fn plans_are_files_with_a_hash() {
    let graph = Model::new(SMALL).full();
    let table = CostTable::reference(graph.slots(), MAX_LEVEL);
    let plan = plan(&graph, &table, &WhenNothingIsLeft).unwrap();
    let json = plan.to_json();
    assert_eq!(Plan::from_json(&json).unwrap(), plan);
    let changed = json.replacen("\"bootstraps\": ", "\"bootstraps\": 1", 1);
    assert!(matches!(
        Plan::from_json(&changed),
        Err(PlanError::Hash { .. })
    ));
    assert!(matches!(Plan::from_json("{}"), Err(PlanError::Parse(_))));
}

#[test]
fn impossible_plans_and_runs_say_why() {
    let graph = Model::new(SMALL).full();
    let table = CostTable::reference(graph.slots(), Level(4));
    assert!(matches!(
        plan(&graph, &table, &Optimal::default()),
        Err(PlanError::TooDeep { .. })
    ));
    let mut broken = CostTable::reference(graph.slots(), MAX_LEVEL);
    broken.bootstraps[0].target_ms.pop();
    assert!(matches!(
        plan(&graph, &broken, &WhenNothingIsLeft),
        Err(PlanError::Costs { .. })
    ));

    let mut graph = Graph::new(64).unwrap();
    let x = graph.input("x", Layout::periodic(4)).unwrap();
    let y = graph.square("y", x).unwrap();
    graph.output("y", y);
    let plan = Plan::unlimited(&graph).unwrap();
    let mut machine = exact(64);
    let missing = run(&graph, &plan, &mut machine, HashMap::new(), &mut |_| ());
    assert!(matches!(missing, Err(RunError::MissingInput { .. })));
    let low = machine.encrypt(&[1.0], Level(0));
    let low = run(
        &graph,
        &plan,
        &mut machine,
        HashMap::from([("x".to_owned(), low)]),
        &mut |_| (),
    );
    assert!(matches!(low, Err(RunError::Level { .. })));
}

/// A value outside an interval is an error of the run, never a result.
#[test]
fn leaving_an_interval_is_an_error() {
    let mut graph = Graph::new(64).unwrap();
    let x = graph.input("x", Layout::periodic(4)).unwrap();
    let polynomial = interpolate(f64::exp, -1.0, 1.0, 7).unwrap();
    let function = Function::plain(FunctionKind::Exp);
    let y = graph
        .polynomial(
            "y",
            x,
            &Arc::new(NonLinear {
                function,
                polynomial,
            }),
        )
        .unwrap();
    graph.output("y", y);
    let inputs = HashMap::from([("x".to_owned(), vec![0.0, 0.5, -1.0, 1.5])]);
    let error = Logical::simulated(NoiseLevels::NONE, 0)
        .run(&graph, None, &inputs)
        .unwrap_err();
    assert!(
        matches!(&error, LogicalError::LeftInterval(left) if left.site == "y" && left.record.greatest == 1.5)
    );
    assert!(Logical::clear().run(&graph, None, &inputs).is_ok());
    let plan = Plan::unlimited(&graph).unwrap();
    let mut simulator = exact(64);
    common::run_slots(&graph, &plan, &mut simulator, &inputs);
    assert!(simulator.check().is_err());
    let infinite = HashMap::from([("x".to_owned(), vec![0.0, f64::NAN, 0.0, 0.0])]);
    let error = Logical::clear().run(&graph, None, &infinite).unwrap_err();
    assert!(matches!(error, LogicalError::NotFinite { .. }));
}
