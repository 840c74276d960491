//! Pruning keeps what the named outputs need and nothing else.

use std::collections::HashMap;
use taciturn_graph::{Graph, Layout, Logical};

#[test]
fn a_pruned_graph_computes_the_same_outputs_with_fewer_nodes() {
    let mut graph = Graph::new(64).unwrap();
    let x = graph.input("x", Layout::periodic(8)).unwrap();
    let square = graph.square("square", x).unwrap();
    let sum = graph.sum_all("sum", square).unwrap();
    let scaled = graph.mul("scaled", x, sum).unwrap();
    graph.output("cache", square);
    graph.output("witness", x);
    graph.output("rest", scaled);

    let pruned = graph.pruned(|name| name == "cache");
    let names: Vec<_> = pruned
        .nodes()
        .iter()
        .map(|node| node.name.as_str())
        .collect();
    assert_eq!(names, ["x", "square"]);
    assert!(pruned.find("square").is_some() && pruned.find("sum").is_none());

    let inputs = HashMap::from([("x".to_owned(), (0..8).map(f64::from).collect::<Vec<_>>())]);
    let whole = Logical::clear().run(&graph, None, &inputs).unwrap();
    let part = Logical::clear().run(&pruned, None, &inputs).unwrap();
    // An output whose value is there anyway stays.
    assert_eq!(part.len(), 2);
    assert!(part.iter().all(|(name, value)| whole[name] == *value));
}
