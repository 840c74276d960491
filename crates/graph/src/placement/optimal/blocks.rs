//! Blocks of a model that are alike, so that one solution serves them all.

use super::variants::Search;
use crate::Problem;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// A run of nodes with the same beginning of their names ("layer3").
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub nodes: Range<usize>,
    /// The sites inside, by number.
    pub sites: Range<usize>,
    /// Equal in blocks that differ in their place only; `None` where no other block is like this one.
    pub kind: Option<usize>,
}

/// All that a search sees of a node, in numbers relative to the block's begin.
#[derive(PartialEq, Eq, Hash)]
struct Signature {
    depth: u32,
    inputs: Vec<isize>,
    /// Nodes of one shape share their costs.
    cost: usize,
    value: isize,
    floor: u32,
    size: Option<usize>,
    partners: Vec<isize>,
}

/// The blocks of a search's first graph, in order.
pub(super) fn blocks(search: &Search<'_, '_>) -> Vec<Block> {
    let problem = search.problem(0);
    let nodes = problem.graph().nodes();
    let beginning = |node: usize| {
        nodes[node]
            .name
            .split('.')
            .next()
            .unwrap_or(&nodes[node].name)
    };
    let mut kinds: HashMap<Vec<Vec<Signature>>, Vec<usize>> = HashMap::new();
    let mut blocks: Vec<Block> = Vec::new();
    for node in 0..nodes.len() {
        match blocks.last_mut() {
            Some(block) if beginning(block.nodes.start) == beginning(node) => {
                block.nodes.end = node + 1;
            }
            _ => blocks.push(Block {
                nodes: node..node + 1,
                sites: 0..0,
                kind: None,
            }),
        }
    }
    for block in &mut blocks {
        block.sites = search.sites_of(&block.nodes);
    }
    for (number, block) in blocks.iter().enumerate() {
        // Of what comes before, the signature knows the last value only.
        let first = block.nodes.start.saturating_sub(1);
        let mut inputs = block.nodes.clone().flat_map(|node| problem.inputs(node));
        if inputs.any(|&input| input < first) {
            continue;
        }
        // With other places of sites nodes of the first graph differ too.
        let signatures = (0..search.variants()).map(|variant| {
            let (problem, values) = (search.problem(variant), search.values(variant));
            signature(problem, values, &search.moved(&block.nodes, variant))
        });
        kinds.entry(signatures.collect()).or_default().push(number);
    }
    for (kind, alike) in kinds.into_values().enumerate() {
        if alike.len() > 1 {
            alike
                .into_iter()
                .for_each(|number| blocks[number].kind = Some(kind));
        }
    }
    blocks
}

fn signature(problem: &Problem<'_>, value_of: &[usize], nodes: &Range<usize>) -> Vec<Signature> {
    let relative = |node: usize| node as isize - nodes.start as isize;
    // The value that enters the block counts too: it may be refreshed together with one inside.
    let first = nodes.start.saturating_sub(1);
    (first..nodes.end)
        .map(|node| {
            let inside = nodes.contains(&node);
            Signature {
                depth: if inside { problem.depth(node) } else { 0 },
                inputs: (problem.inputs(node).iter())
                    .filter(|_| inside)
                    .map(|&input| relative(input))
                    .collect(),
                cost: if inside {
                    Arc::as_ptr(problem.costs(node)) as usize
                } else {
                    0
                },
                value: relative(value_of[node]),
                floor: problem.floor(node),
                size: problem.bootstrap_size(node, None),
                partners: (first..node)
                    .filter(|&partner| problem.can_pair(node, partner))
                    .map(relative)
                    .collect(),
            }
        })
        .collect()
}
