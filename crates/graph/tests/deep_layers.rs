//! Layers that are deeper than there are levels.

use taciturn_graph::*;

/// An iteration that takes its argument in every step is deeper than there are levels, and the graph ends in several results.
#[test]
fn cachemir_cuts_what_is_too_deep_and_ends_in_several_results() {
    for steps in [1, 4, 9] {
        let mut graph = Graph::new(64).unwrap();
        let x = graph.input("x", Layout::periodic(4)).unwrap();
        let x = graph.square("begin", x).unwrap();
        let mut y = graph.square("guess", x).unwrap();
        for step in 0..steps {
            let product = graph.mul(format!("step{step}.product"), x, y).unwrap();
            y = graph.mul(format!("step{step}.result"), product, y).unwrap();
        }
        for end in ["first", "second"] {
            let result = graph.mul(end, y, x).unwrap();
            graph.output(end, result);
        }
        let names: Vec<String> = (graph.nodes().iter()).map(|n| n.name.clone()).collect();
        graph.set_bounds(names.iter().map(|name| (name.as_str(), 1.0)));
        let table = CostTable::reference(64, Level(7));
        let problem = Problem::new(&graph, &table).unwrap();
        let choice = Cachemir.place(&problem);
        let cost = problem.cost(&choice);
        let best = problem.cost(&Optimal::default().place(&problem));
        assert!(
            cost.is_finite() && best <= cost + 1e-6,
            "{steps}: {best} and {cost}"
        );
        problem.plan(&choice).unwrap();
    }
}
