//! Whole blocks with caches over many tokens: clear, logical and slot-exact runs agree.

mod common;

use common::block::{Model, SMALL, Sizes};
use common::{MAX_LEVEL, Random, embedding, full_bounds, keep_caches, run_slots, worst};
use std::collections::HashMap;
use taciturn_graph::*;

const NOISE: NoiseLevels = NoiseLevels {
    operation: 1e-9,
    bootstrap: 1e-7,
};

#[test]
fn gpt2_blocks_agree_token_by_token() {
    interpreters_agree(&Model::new(SMALL), 40);
}

#[test]
fn llama_blocks_agree_token_by_token() {
    interpreters_agree(&Model::gated(SMALL), 12);
}

/// Several queries for each K/V head, in one and in several groups of tokens, with padded heads and queries, shifted keys and head norms.
#[test]
fn grouped_queries_agree_token_by_token() {
    for (queries, groups, tokens) in [(2, 1, 10), (3, 1, 6), (2, 2, 30), (3, 2, 30)] {
        let sizes = Sizes {
            layers: 1,
            heads: 3,
            queries,
            channels: 8,
            groups,
            ..SMALL
        };
        let model = Model::gated(sizes);
        interpreters_agree(&model, tokens);
        if groups == 2 {
            interpreters_agree(&model.with_head_norms(), 6);
        }
    }
}

/// The softmax of rounds of normalise-and-square is the softmax.
#[test]
fn rounds_agree_token_by_token() {
    interpreters_agree(&Model::with_rounds(SMALL, 2, 40), 40);
}

/// Heads and channels padded apart from the width, so that attention has lanes of its own; one group only.
#[test]
fn attention_may_have_lanes_of_its_own() {
    let sizes = Sizes {
        layers: 1,
        width: 15,
        heads: 5,
        channels: 3,
        groups: 1,
        ..SMALL
    };
    assert_ne!(sizes.geometry().width(), sizes.padded());
    interpreters_agree(&Model::new(sizes), 10);
}

fn interpreters_agree(model: &Model, tokens: usize) {
    let sizes = model.sizes;
    let capacity = model.sizes.geometry().capacity();
    let bounds = full_bounds(model, tokens);
    let bounded = |position: usize| {
        let mut graph = model.graph(position);
        graph.set_bounds(bounds.iter().map(|(name, bound)| (name.as_str(), *bound)));
        graph
    };
    let table = CostTable::reference(sizes.slots, MAX_LEVEL);
    let plan = plan(&bounded(capacity - 1), &table, &Optimal::default()).unwrap();
    let plan = plan.cover(&bounded(0)).unwrap();
    let mut clear = Logical::clear();
    let mut logical = Logical::simulated(NOISE, 1);
    let mut simulator = SlotSimulator::new(sizes.slots, NOISE, 2);
    let mut random = Random::new(21);
    let mut entries: [HashMap<String, Vec<f64>>; 3] = Default::default();
    for position in 0..tokens {
        let graph = bounded(position);
        let x = embedding(&mut random, &sizes);
        entries
            .iter_mut()
            .for_each(|entries| drop(entries.insert("embedding".to_owned(), x.clone())));
        let outputs = [
            clear.run(&graph, None, &entries[0]).unwrap(),
            logical.run(&graph, Some(&plan), &entries[1]).unwrap(),
            run_slots(&graph, &plan, &mut simulator, &entries[2]),
        ];
        simulator.check().unwrap();
        entries
            .iter_mut()
            .zip(&outputs)
            .for_each(|(entries, outputs)| keep_caches(entries, outputs));
        let error = worst(&outputs[1]["hidden"], &outputs[2]["hidden"]);
        assert!(error < 1e-4, "noise at {position}: {error}");
        let error = worst(&outputs[0]["hidden"], &outputs[1]["hidden"]);
        assert!(error < 2e-2, "approximation at {position}: {error}");
    }
}
