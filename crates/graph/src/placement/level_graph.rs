//! Shortest paths over the levels at the borders of layers: what Orion and Cachemir have in common.
//!
//! A vertex is a value that all paths go through, and a level; an edge costs what lies between two such values at the levels there, and
//! a bootstrap where the level rises. Branches (a residual connection, the projections of attention) are solved first and folded into one
//! edge: they begin and end on the chain, so that their cost follows from the two levels. A part that is neither chain nor branches is
//! one layer without bootstraps inside; one that is too deep is cut where a single value crosses beside the one at its begin (each step of a
//! Newton iteration takes its argument again). Sources: Ebel et al., "Orion: A Fully Homomorphic Encryption Framework for Deep Learning"
//! (ASPLOS 2025); Cachemir, section 6.

use crate::{Choice, Problem};
use std::rc::Rc;

/// Which bootstraps and which edges a search knows.
pub(super) trait Rules {
    /// Whether a result may be refreshed, if it can be.
    fn border(&self, node: usize) -> bool;

    /// Whether a result computed at level `computed` may be handed on at `handed`; above only by a bootstrap, which takes `needs` levels.
    fn edge(&self, computed: u32, handed: u32, needs: Option<u32>) -> bool;
}

/// The refreshes on the shortest path; `None` where there is no path.
///
/// What only feeds caches is off the chain, and its levels follow from those of the operations that take the caches. Where these are
/// higher than what feeds the caches can reach, the search is done again with a lower ceiling for them; the cheapest choice counts.
pub(super) fn shortest_path(problem: &Problem<'_>, rules: &impl Rules) -> Option<Choice> {
    let mut solver = Solver::new(problem, rules);
    let mut best: Option<(f64, Choice)> = None;
    for ceiling in (0..=problem.max_level().0).rev() {
        solver.ceiling = ceiling;
        let Some(choice) = solver.solve() else {
            break;
        };
        let cost = problem.cost(&choice);
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, choice));
        }
    }
    best.map(|(_, choice)| choice)
}

/// One way through a part.
#[derive(Clone, Debug)]
struct Way {
    cost: f64,
    refreshed: Vec<usize>,
}

impl Way {
    const NONE: Way = Way {
        cost: f64::INFINITY,
        refreshed: Vec::new(),
    };

    fn free() -> Self {
        Way {
            cost: 0.0,
            refreshed: Vec::new(),
        }
    }

    /// This one and another.
    fn and(&self, other: &Way) -> Way {
        Way {
            cost: self.cost + other.cost,
            refreshed: [&self.refreshed[..], &other.refreshed].concat(),
        }
    }

    fn replace_if_cheaper(&mut self, cost: f64, way: impl FnOnce() -> Way) {
        if cost < self.cost {
            *self = way();
        }
    }
}

/// The best way through a part by the level at its begin (there is one only where it begins with the graph) and at its end.
struct Ways(Vec<Vec<Way>>);

impl Ways {
    /// Whether there is any way through.
    fn lead(&self) -> bool {
        self.0.iter().flatten().any(|way| way.cost.is_finite())
    }
}

/// The best ways to some levels and on from there, by the level at the end.
fn follow(row: &[Way], edges: &Ways) -> Vec<Way> {
    let mut next = vec![Way::NONE; row.len()];
    for (way, edges) in row.iter().zip(&edges.0) {
        for (best, edge) in next.iter_mut().zip(edges) {
            best.replace_if_cheaper(way.cost + edge.cost, || way.and(edge));
        }
    }
    next
}

struct Solver<'a, R> {
    problem: &'a Problem<'a>,
    rules: &'a R,
    users: Rc<Vec<Vec<usize>>>,
    /// Caches, and nodes that feed nothing else: they are off the chain and their levels follow from it.
    free: Rc<Vec<bool>>,
    /// Number of levels.
    levels: usize,
    /// The highest level at which an operation takes caches.
    ceiling: u32,
    /// Values from the begin of a part around this one, with their levels.
    around: Vec<(usize, u32)>,
}

impl<'a, R: Rules> Solver<'a, R> {
    fn new(problem: &'a Problem<'a>, rules: &'a R) -> Self {
        let mut users = vec![Vec::new(); problem.len()];
        for node in 0..problem.len() {
            for &input in problem.inputs(node) {
                users[input].push(node);
            }
        }
        let mut free = vec![false; problem.len()];
        for node in (0..problem.len()).rev() {
            let feeds_caches =
                !users[node].is_empty() && users[node].iter().all(|&user| free[user]);
            free[node] = problem.family(node).is_some() || feeds_caches;
        }
        Solver {
            problem,
            rules,
            users: Rc::new(users),
            free: Rc::new(free),
            levels: problem.max_level().index() + 1,
            ceiling: problem.max_level().0,
            around: Vec::new(),
        }
    }

    /// For what lies within a part that begins with a value at a level.
    fn within(&self, begin: usize, level: u32) -> Self {
        let mut around = self.around.clone();
        around.push((begin, level));
        Solver {
            problem: self.problem,
            rules: self.rules,
            users: self.users.clone(),
            free: self.free.clone(),
            levels: self.levels,
            ceiling: self.ceiling,
            around,
        }
    }

    fn is_around(&self, node: usize) -> bool {
        self.around.iter().any(|&(value, _)| value == node)
    }

    fn solve(&self) -> Option<Choice> {
        let nodes: Vec<usize> = (0..self.problem.len())
            .filter(|&node| !self.free[node])
            .collect();
        let ends: Vec<usize> = (nodes.iter().copied())
            .filter(|&node| self.users[node].is_empty())
            .collect();
        let whole = match ends[..] {
            [end] => self.chain(None, &nodes, end),
            // Several results end a last layer together.
            _ => Ways(vec![self.through(None, Vec::new(), &nodes, &ends)]),
        };
        let ways = whole.0.into_iter().flatten();
        let best = ways.min_by(|a, b| a.cost.total_cmp(&b.cost))?;
        let mut choice = Choice::none(self.problem);
        best.refreshed
            .into_iter()
            .for_each(|node| choice.refresh(node));
        best.cost.is_finite().then_some(choice)
    }

    /// Milliseconds of a node on the chain; infinite above the ceiling, and above the values around the part that it takes.
    fn compute_ms(&self, node: usize, level_in: u32) -> f64 {
        let inputs = self.problem.inputs(node);
        let takes_caches = (inputs.iter()).any(|&input| self.problem.family(input).is_some());
        let too_high = |&(value, level): &(usize, u32)| level_in > level && inputs.contains(&value);
        if (takes_caches && level_in > self.ceiling) || self.around.iter().any(too_high) {
            return f64::INFINITY;
        }
        self.problem.compute_ms(node, level_in)
    }

    /// Levels at which a part may begin.
    fn begins(&self, begin: Option<usize>) -> usize {
        begin.map_or(1, |_| self.levels)
    }

    /// From a value (or the graph's begin) to the last of `nodes`, which are all between the two.
    fn chain(&self, begin: Option<usize>, nodes: &[usize], end: usize) -> Ways {
        // At its begin a branch may drop to any level.
        let mut ways: Vec<Vec<Way>> = (0..self.begins(begin))
            .map(|from| {
                (0..self.levels)
                    .map(|level| {
                        if begin.is_none() || level <= from {
                            Way::free()
                        } else {
                            Way::NONE
                        }
                    })
                    .collect()
            })
            .collect();
        let mut at = begin;
        let mut rest = nodes;
        while !rest.is_empty() {
            let length = self.next_cut(at, rest);
            let (part, after) = rest.split_at(length);
            let cut = part[length - 1];
            let edges = self.edges(at, &part[..length - 1], cut);
            for row in &mut ways {
                *row = match at {
                    None => edges.0[0].clone(),
                    Some(_) => follow(row, &edges),
                };
            }
            (at, rest) = (Some(cut), after);
        }
        debug_assert_eq!(at, Some(end));
        Ways(ways)
    }

    /// How many of `nodes` lie up to the next value that all paths go through, those from around the part apart.
    fn next_cut(&self, begin: Option<usize>, nodes: &[usize]) -> usize {
        let inside = |node: &&usize| nodes.binary_search(node).is_ok();
        let last_user = |node: usize| self.users[node].iter().filter(inside).max().copied();
        // Inputs of the graph count as used by what comes before.
        let sources = nodes
            .iter()
            .filter(|&&node| self.problem.inputs(node).is_empty());
        let begin = begin.filter(|&begin| !self.is_around(begin));
        let mut reach = sources.max().copied().max(begin.and_then(last_user));
        for (i, &node) in nodes.iter().enumerate() {
            if reach.is_none_or(|reach| reach <= node) {
                return i + 1;
            }
            reach = reach.max(last_user(node));
        }
        nodes.len()
    }

    /// From a value to `cut`, with `between` these two.
    fn edges(&self, begin: Option<usize>, between: &[usize], cut: usize) -> Ways {
        let problem = self.problem;
        let inputs = self.join(begin, between, problem.inputs(cut));
        let needs = problem
            .refresh_needs(cut)
            .filter(|_| self.rules.border(cut));
        let size = problem.bootstrap_size(cut, None);
        let begins_here = problem.inputs(cut).is_empty();
        let row = |inputs: Vec<Way>| {
            let mut row = vec![Way::NONE; self.levels];
            for (level_in, inputs) in inputs.into_iter().enumerate() {
                let Some(computed) = (level_in as u32).checked_sub(problem.depth(cut)) else {
                    continue;
                };
                let cost = inputs.cost + self.compute_ms(cut, level_in as u32);
                for (handed, best) in row.iter_mut().enumerate() {
                    let handed = handed as u32;
                    let rises = handed > computed;
                    if handed != computed
                        && !begins_here
                        && !self.rules.edge(computed, handed, needs)
                    {
                        continue;
                    }
                    if !rises {
                        best.replace_if_cheaper(cost, || Way {
                            cost,
                            ..inputs.clone()
                        });
                    } else if let (Some(size), Some(_)) = (size, needs) {
                        let cost = cost + problem.bootstrap_ms(size, false, handed);
                        best.replace_if_cheaper(cost, || {
                            let mut refreshed = inputs.refreshed.clone();
                            refreshed.push(cut);
                            Way { cost, refreshed }
                        });
                    }
                }
            }
            row
        };
        Ways(inputs.0.into_iter().map(row).collect())
    }

    /// From a value to `ends` together, at one level; each comes by a branch of its own, or several by a part that is a layer.
    fn join(&self, begin: Option<usize>, between: &[usize], ends: &[usize]) -> Ways {
        let branches: Vec<Ways> = self
            .components(between)
            .into_iter()
            .map(|nodes| {
                let inside: Vec<usize> = (ends.iter().copied())
                    .filter(|end| nodes.binary_search(end).is_ok())
                    .collect();
                match inside.split_first() {
                    Some((&end, others)) if others.iter().all(|&other| other == end) => {
                        self.chain(begin, &nodes, end)
                    }
                    _ => {
                        let whole = self.layer(begin, &nodes, &inside);
                        // Only where it is too deep, and not within another: a search through steps takes long.
                        match begin.filter(|_| !whole.lead() && self.around.is_empty()) {
                            Some(begin) => self.stepped(begin, &nodes, &inside),
                            None => whole,
                        }
                    }
                }
            })
            .collect();
        let direct = begin.is_some_and(|begin| ends.contains(&begin));
        let from_to = |from: usize, to: usize| {
            if direct && from < to {
                return Way::NONE;
            }
            (branches.iter()).fold(Way::free(), |way, branch| way.and(&branch.0[from][to]))
        };
        let rows = (0..self.begins(begin))
            .map(|from| (0..self.levels).map(|to| from_to(from, to)).collect());
        Ways(rows.collect())
    }

    /// From a value to `ends` together, through cuts where nothing but one value and the begin crosses.
    fn stepped(&self, begin: usize, nodes: &[usize], ends: &[usize]) -> Ways {
        let row = |from: usize| {
            let inner = self.within(begin, from as u32);
            let row: Vec<Way> = (0..self.levels)
                .map(|level| match level <= from {
                    true => Way::free(),
                    false => Way::NONE,
                })
                .collect();
            inner.through(Some(begin), row, nodes, ends)
        };
        Ways((0..self.levels).map(row).collect())
    }

    /// From a value, reached in the ways of `row` (or the graph's begin), to `ends` together.
    fn through(
        &self,
        mut at: Option<usize>,
        mut row: Vec<Way>,
        nodes: &[usize],
        ends: &[usize],
    ) -> Vec<Way> {
        let mut rest = nodes;
        loop {
            let length = self.next_cut(at, rest);
            let (part, after) = rest.split_at(length);
            // What is wanted at the end must not be left behind.
            let done = after.is_empty() || part.iter().any(|node| ends.contains(node));
            let (next, edges) = match part.split_last() {
                Some((&cut, between)) if !done => (Some(cut), self.edges(at, between, cut)),
                _ => (None, self.join(at, rest, ends)),
            };
            row = match at {
                None => edges.0.into_iter().next().unwrap_or_default(),
                Some(_) => follow(&row, &edges),
            };
            if next.is_none() {
                return row;
            }
            (at, rest) = (next, after);
        }
    }

    /// Nodes that hang together, each group ascending.
    fn components(&self, nodes: &[usize]) -> Vec<Vec<usize>> {
        let mut group: Vec<usize> = (0..nodes.len()).collect();
        for (i, &node) in nodes.iter().enumerate() {
            for input in self.problem.inputs(node) {
                if let Ok(j) = nodes.binary_search(input) {
                    let (from, to) = (group[j], group[i]);
                    group
                        .iter_mut()
                        .filter(|group| **group == from)
                        .for_each(|group| *group = to);
                }
            }
        }
        let mut names = group.clone();
        names.sort_unstable();
        names.dedup();
        let members = |name: usize| {
            (nodes.iter().zip(&group))
                .filter(|(_, group)| **group == name)
                .map(|(&node, _)| node)
                .collect()
        };
        names.into_iter().map(members).collect()
    }

    /// A part without bootstraps inside: its levels follow from that of its ends.
    fn layer(&self, begin: Option<usize>, nodes: &[usize], ends: &[usize]) -> Ways {
        let to = |level: usize| {
            let mut cost = 0.0;
            let mut needed = 0;
            let mut demanded = vec![0; nodes.len()];
            for &end in ends {
                if let Ok(i) = nodes.binary_search(&end) {
                    demanded[i] = level as u32;
                }
            }
            for (i, &node) in nodes.iter().enumerate().rev() {
                let level_in = demanded[i] + self.problem.depth(node);
                if level_in as usize >= self.levels {
                    return (f64::INFINITY, 0);
                }
                cost += self.compute_ms(node, level_in);
                for input in self.problem.inputs(node) {
                    if let Ok(j) = nodes.binary_search(input) {
                        demanded[j] = demanded[j].max(level_in);
                    } else if begin == Some(*input) {
                        needed = needed.max(level_in);
                    }
                }
            }
            (cost, needed)
        };
        let costs: Vec<(f64, u32)> = (0..self.levels).map(to).collect();
        let row = |from: usize| {
            let reach = |&(cost, needed): &(f64, u32)| {
                let cost = if begin.is_none() || needed as usize <= from {
                    cost
                } else {
                    f64::INFINITY
                };
                Way { cost, ..Way::NONE }
            };
            costs.iter().map(reach).collect()
        };
        Ways((0..self.begins(begin)).map(row).collect())
    }
}
