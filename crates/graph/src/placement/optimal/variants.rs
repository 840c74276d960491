//! One search over graphs that differ in the approximations of their sites.
//!
//! Between sites all graphs have the same nodes, so that a state there says the same for each of them. Taken backwards, the states at the end of a site
//! go through its nodes in every graph, and what comes out at its begin is compared as states always are: the choice of an approximation is one more
//! decision on the way, and the search stays exact.

use super::demand::Demand;
use super::frontier::{Decided, Decision, Frontier, State};
use crate::Problem;
use std::ops::Range;

/// The nodes of a site, in every graph.
struct Site {
    nodes: Vec<Range<usize>>,
    /// Graphs in which these cost what they cost in no graph before.
    variants: Vec<usize>,
}

/// The states of several graphs; they are kept in the numbers of the first.
pub(super) struct Search<'p, 'g> {
    problems: &'p [Problem<'g>],
    frontiers: Vec<Frontier<'p, 'g>>,
    sites: Vec<Site>,
}

impl<'p, 'g> Search<'p, 'g> {
    pub fn new(problems: &'p [Problem<'g>], limit: usize) -> Self {
        let frontiers = problems
            .iter()
            .map(|problem| Frontier::new(problem, limit))
            .collect();
        let count = match problems {
            // With one graph there is nothing to choose.
            [_] => 0,
            _ => problems[0].graph().sites().len(),
        };
        let sites = (0..count).map(|site| {
            let range = |problem: &Problem<'_>| problem.graph().sites()[site].1.clone();
            let nodes: Vec<Range<usize>> = problems.iter().map(range).collect();
            let same = |a: usize, b: usize| same(problems, &nodes, a, b);
            let variants = (0..problems.len())
                .filter(|&variant| !(0..variant).any(|before| same(before, variant)))
                .collect();
            Site { nodes, variants }
        });
        Search {
            problems,
            frontiers,
            sites: sites.collect(),
        }
    }

    /// The states, in the numbers of the first graph.
    pub fn main(&mut self) -> &mut Frontier<'p, 'g> {
        &mut self.frontiers[0]
    }

    /// How many graphs there are.
    pub fn variants(&self) -> usize {
        self.problems.len()
    }

    /// The problem of a graph.
    pub fn problem(&self, variant: usize) -> &'p Problem<'g> {
        &self.problems[variant]
    }

    /// The values that a graph's nodes stand for.
    pub fn values(&self, variant: usize) -> &[usize] {
        self.frontiers[variant].values()
    }

    /// The sites inside a run of nodes.
    pub fn sites_of(&self, nodes: &Range<usize>) -> Range<usize> {
        let before = |end: usize| self.sites.partition_point(|site| site.nodes[0].end <= end);
        before(nodes.start)..before(nodes.end)
    }

    /// A run of nodes, whole sites only, in another graph.
    pub fn moved(&self, nodes: &Range<usize>, variant: usize) -> Range<usize> {
        let place = |place: usize| {
            let sites = self.sites.iter().map(|site| &site.nodes);
            sites
                .take_while(|nodes| nodes[0].end <= place)
                .fold(place, |place, nodes| {
                    place + nodes[variant].len() - nodes[0].len()
                })
        };
        place(nodes.start)..place(nodes.end)
    }

    /// Takes a run of nodes of the first graph, its sites in every graph.
    pub fn take(&mut self, nodes: Range<usize>) {
        let mut end = nodes.end;
        for site in self.sites_of(&nodes).rev() {
            let Range { start, end: last } = self.sites[site].nodes[0].clone();
            (last..end)
                .rev()
                .for_each(|node| self.frontiers[0].take(node));
            self.take_site(site);
            end = start;
        }
        (nodes.start..end)
            .rev()
            .for_each(|node| self.frontiers[0].take(node));
    }

    fn take_site(&mut self, number: usize) {
        let site = &self.sites[number];
        let main = &mut self.frontiers[0];
        let begin = site.nodes[0].start;
        let (live, states) = (
            std::mem::take(&mut main.live),
            std::mem::take(&mut main.states),
        );
        let mut decisions = std::mem::take(&mut main.decisions);
        let mut ways: Vec<(Vec<usize>, Vec<State>)> = Vec::new();
        for &variant in &site.variants {
            let to = |value: usize| renumbered(self.problems, site, (0, variant), value);
            let frontier = &mut self.frontiers[variant];
            frontier.live = live.iter().map(|&value| to(value)).collect();
            frontier.states = states.clone();
            frontier.decisions = decisions;
            let nodes = site.nodes[variant].clone();
            nodes.rev().for_each(|node| frontier.take(node));
            decisions = std::mem::take(&mut frontier.decisions);
            let mut states = std::mem::take(&mut frontier.states);
            for state in &mut states {
                let what = Decided::Variant {
                    site: number,
                    variant,
                };
                let before = state.trace;
                decisions.push(Decision { what, before });
                state.trace = Some(decisions.len() - 1);
            }
            let from = |value: usize| renumbered(self.problems, site, (variant, 0), value);
            let live = std::mem::take(&mut frontier.live);
            ways.push((live.into_iter().map(from).collect(), states));
        }
        let mut live: Vec<usize> = ways.iter().flat_map(|(live, _)| live).copied().collect();
        live.sort_unstable();
        live.dedup();
        let problem = &self.problems[0];
        let mut merged = Vec::new();
        for (own, states) in ways {
            merged.extend(
                states
                    .into_iter()
                    .map(|state| widened(state, &own, &live, problem)),
            );
        }
        let main = &mut self.frontiers[0];
        (main.live, main.decisions) = (live, decisions);
        main.states = main.pruned(begin, merged);
    }

    /// The best variant of every site, once all nodes are taken; `None` where no way reaches the first node.
    pub fn chosen(&mut self) -> Option<Vec<usize>> {
        let mut chosen = vec![0; self.sites.len()];
        for decided in self.frontiers[0].decided()? {
            if let Decided::Variant { site, variant } = decided {
                chosen[site] = variant;
            }
        }
        Some(chosen)
    }
}

/// A value's number in another graph: a site's result is its last node; all others that cross have their names.
fn renumbered(
    problems: &[Problem<'_>],
    site: &Site,
    (from, to): (usize, usize),
    value: usize,
) -> usize {
    if from == to {
        return value;
    }
    if value + 1 == site.nodes[from].end {
        return site.nodes[to].end - 1;
    }
    if value < site.nodes[from].start.min(site.nodes[to].start)
        && problems[from].graph().nodes()[value].name == problems[to].graph().nodes()[value].name
    {
        return value;
    }
    let name = &problems[from].graph().nodes()[value].name;
    let found = problems[to].graph().find(name);
    found
        .or_else(|| result(problems, (from, to), value))
        .map_or(value, |found| found.index())
}

/// The result of an earlier site, which may have another name.
fn result(
    problems: &[Problem<'_>],
    (from, to): (usize, usize),
    value: usize,
) -> Option<crate::NodeId> {
    let sites = problems[from].graph().sites().iter();
    let (number, _) = sites
        .enumerate()
        .find(|(_, (_, nodes))| nodes.end == value + 1)?;
    Some(crate::NodeId(
        problems[to].graph().sites()[number].1.end - 1,
    ))
}

/// A state with the demands of more live values, of which nothing is demanded.
fn widened(state: State, own: &[usize], live: &[usize], problem: &Problem<'_>) -> State {
    let mut demands = state.demands.into_iter();
    let mut own = own.iter().peekable();
    let widened = live.iter().map(|value| {
        let known = own.next_if_eq(&value).and_then(|_| demands.next());
        known.unwrap_or(Demand {
            computed: problem.floor(*value),
            ..Demand::default()
        })
    });
    State {
        demands: widened.collect(),
        ..state
    }
}

/// Whether a site costs the same in two graphs.
fn same(problems: &[Problem<'_>], nodes: &[Range<usize>], a: usize, b: usize) -> bool {
    let facts = |variant: usize| {
        let (problem, begin) = (&problems[variant], nodes[variant].start as isize);
        nodes[variant].clone().map(move |node| {
            let inputs = problem.inputs(node).iter();
            let inputs: Vec<isize> = inputs.map(|&input| input as isize - begin).collect();
            (
                problem.depth(node),
                inputs,
                std::sync::Arc::as_ptr(problem.costs(node)),
                problem.bootstrap_size(node, None),
            )
        })
    };
    nodes[a].len() == nodes[b].len() && facts(a).eq(facts(b))
}
