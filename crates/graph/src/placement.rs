//! Placements: which values to refresh.

use crate::{CostTable, Graph, Plan, PlanError, Problem};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;

/// A way to choose the values that are refreshed.
pub trait Placement {
    /// One flag per node. Where no choice works the flags are those that come nearest; making the plan then says why.
    fn place(&self, problem: &Problem<'_>) -> Vec<bool>;
}

/// Makes the plan of a graph (of the full context) with a placement.
pub fn plan(
    graph: &Graph,
    table: &CostTable,
    placement: &impl Placement,
) -> Result<Plan, PlanError> {
    let problem = Problem::new(graph, table)?;
    problem.plan(&placement.place(&problem))
}

/// The baseline: go forward and refresh an operation's inputs when their levels do not suffice any more, where what suffices counts the
/// operations up to the next value that can be refreshed.
#[derive(Clone, Copy, Debug, Default)]
pub struct WhenNothingIsLeft;

impl Placement for WhenNothingIsLeft {
    fn place(&self, problem: &Problem<'_>) -> Vec<bool> {
        let max = problem.max_level().0;
        let ahead = levels_ahead(problem);
        let mut choice = vec![false; problem.len()];
        let mut left = vec![max; problem.len()];
        for node in 0..problem.len() {
            let inputs = problem.inputs(node);
            let needed = problem.depth(node) + ahead[node];
            for &input in inputs {
                if left[input] < needed && problem.refresh_needs(input).is_some() {
                    choice[input] = true;
                    left[input] = max;
                }
            }
            let least = inputs.iter().map(|&input| left[input]).min().unwrap_or(max);
            left[node] = least.saturating_sub(problem.depth(node));
        }
        choice
    }
}

/// Levels that every result must keep so that there is a way on from it: to its own refresh, or to the end or other refreshes.
fn levels_ahead(problem: &Problem<'_>) -> Vec<u32> {
    let mut ahead = vec![0; problem.len()];
    for node in (0..problem.len()).rev() {
        // Its users come later, so what it has now is final.
        if let Some(needs) = problem.refresh_needs(node) {
            ahead[node] = ahead[node].min(needs);
        }
        let needed = problem.depth(node) + ahead[node];
        for &input in problem.inputs(node) {
            ahead[input] = ahead[input].max(needed);
        }
    }
    ahead
}

/// Local search from the baseline and from refreshing everything: first on all layers alike, then on single values,
/// then again from random changes. A move adds or removes a refresh, or changes up to four near each other.
#[derive(Clone, Copy, Debug)]
pub struct LocalSearch {
    /// Seed of the random changes.
    pub seed: u64,
    /// How many times to start again.
    pub restarts: usize,
}

impl Default for LocalSearch {
    fn default() -> Self {
        LocalSearch {
            seed: 1,
            restarts: 2,
        }
    }
}

impl Placement for LocalSearch {
    fn place(&self, problem: &Problem<'_>) -> Vec<bool> {
        let baseline = WhenNothingIsLeft.place(problem);
        let mut everywhere = vec![false; problem.len()];
        problem
            .candidates()
            .into_iter()
            .for_each(|node| everywhere[node] = true);
        let patterns = patterns(problem);
        let singles: Vec<Vec<usize>> = problem
            .candidates()
            .into_iter()
            .map(|node| vec![node])
            .collect();
        let mut search = Search {
            problem,
            best: everywhere.clone(),
            cost: f64::INFINITY,
        };
        for start in [everywhere, baseline] {
            search.descend(start, &patterns, &singles);
        }
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        for _ in 0..self.restarts {
            let mut start = search.best.clone();
            for unit in &patterns {
                if random.next_u64().is_multiple_of(8) {
                    unit.iter().for_each(|&node| start[node] ^= true);
                }
            }
            // Where that is impossible, add refreshes until it is not.
            for unit in &patterns {
                if problem.cost(&start).is_finite() {
                    break;
                }
                unit.iter().for_each(|&node| start[node] = true);
            }
            search.descend(start, &patterns, &singles);
        }
        search.best
    }
}

/// Candidates whose names differ in the layer's number only.
fn patterns(problem: &Problem<'_>) -> Vec<Vec<usize>> {
    let mut patterns: BTreeMap<(usize, String), Vec<usize>> = BTreeMap::new();
    let mut order = BTreeMap::new();
    for node in problem.candidates() {
        let name = &problem.graph().nodes()[node].name;
        let (first, tail) = name.split_once('.').unwrap_or(("", name));
        let pattern = format!(
            "{}.{tail}",
            first.trim_end_matches(|c: char| c.is_ascii_digit())
        );
        let first = *order.entry(pattern.clone()).or_insert(node);
        patterns.entry((first, pattern)).or_default().push(node);
    }
    patterns.into_values().collect()
}

struct Search<'a, 'g> {
    problem: &'a Problem<'g>,
    best: Vec<bool>,
    cost: f64,
}

/// How far apart, in units, a refresh may move in one step.
const REACH: usize = 48;

impl Search<'_, '_> {
    fn descend(&mut self, mut choice: Vec<bool>, patterns: &[Vec<usize>], singles: &[Vec<usize>]) {
        let mut cost = self.problem.cost(&choice);
        loop {
            let before = cost;
            for units in [patterns, singles] {
                while self.improve(&mut choice, &mut cost, units) {}
            }
            if cost >= before {
                break;
            }
        }
        if cost < self.cost || (self.cost.is_infinite() && cost.is_infinite()) {
            (self.best, self.cost) = (choice, cost);
        }
    }

    /// One pass over all moves, taking each that helps; whether any did.
    fn improve(&self, choice: &mut [bool], cost: &mut f64, units: &[Vec<usize>]) -> bool {
        // There are few patterns, so moves of three and four are worth their price on them.
        let wide = units.len() <= 2 * REACH || units.iter().any(|unit| unit.len() > 1);
        let mut improved = false;
        for a in 0..units.len() {
            improved |= self.attempt(choice, cost, units, &[a]);
            for b in near(a, REACH, units) {
                if !is_set(choice, &units[a]) {
                    break;
                }
                if b == a {
                    continue;
                }
                improved |= self.attempt(choice, cost, units, &[a, b]);
                if !wide {
                    continue;
                }
                for c in near(a, REACH, units).filter(|&c| c > b && c != a) {
                    if is_set(choice, &units[a]) {
                        improved |= self.attempt(choice, cost, units, &[a, b, c]);
                    }
                }
                if b > a && is_set(choice, &units[b]) {
                    improved |= self.replace_two(choice, cost, units, a, b);
                }
            }
        }
        improved
    }

    /// Replaces the set units `a` and `b` by any two near them.
    fn replace_two(
        &self,
        choice: &mut [bool],
        cost: &mut f64,
        units: &[Vec<usize>],
        a: usize,
        b: usize,
    ) -> bool {
        for c in near(a, REACH / 4, units) {
            for d in near(b, REACH / 4, units) {
                let replaces = c != d && !is_set(choice, &units[c]) && !is_set(choice, &units[d]);
                if replaces && self.attempt(choice, cost, units, &[a, b, c, d]) {
                    return true;
                }
            }
        }
        false
    }

    /// Flips units; keeps that where it is cheaper.
    fn attempt(
        &self,
        choice: &mut [bool],
        cost: &mut f64,
        units: &[Vec<usize>],
        flips: &[usize],
    ) -> bool {
        let flip = |choice: &mut [bool]| {
            flips
                .iter()
                .for_each(|&unit| units[unit].iter().for_each(|&node| choice[node] ^= true));
        };
        flip(choice);
        let changed = self.problem.cost(choice);
        // Rounding must not make the search go round in circles.
        if changed < *cost * (1.0 - 1e-12) || (cost.is_infinite() && changed.is_finite()) {
            *cost = changed;
            return true;
        }
        flip(choice);
        false
    }
}

/// Units at most `reach` away.
fn near(unit: usize, reach: usize, units: &[Vec<usize>]) -> std::ops::Range<usize> {
    unit.saturating_sub(reach)..(unit + reach + 1).min(units.len())
}

fn is_set(choice: &[bool], unit: &[usize]) -> bool {
    unit.iter().any(|&node| choice[node])
}
