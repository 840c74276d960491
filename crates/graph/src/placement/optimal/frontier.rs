//! The states between two nodes.

use super::ahead::Ahead;
use super::demand::Demand;
use crate::{Choice, Problem, Refreshed};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// One way to do all nodes taken so far.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// In the order of the frontier's live values.
    pub demands: Vec<Demand>,
    pub cost: f64,
    /// The last decision on the way here.
    pub trace: Option<usize>,
    /// The state at the end of the block from which it came.
    pub origin: usize,
}

/// A decision and the one before it on the same way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decision {
    pub what: Decided,
    pub before: Option<usize>,
}

/// What is decided.
#[derive(Clone, Copy, Debug)]
pub(super) enum Decided {
    /// The refresh of a node's result.
    Refresh { node: usize, refreshed: Refreshed },
    /// Which variant of a site is computed.
    Variant { site: usize, variant: usize },
}

/// All ways that may still be part of the best one.
pub(super) struct Frontier<'p, 'g> {
    problem: &'p Problem<'g>,
    limit: usize,
    /// Values that nodes taken so far use, ascending; a family of caches is one value, named by its first member.
    pub live: Vec<usize>,
    pub states: Vec<State>,
    pub decisions: Vec<Decision>,
    ahead: Ahead,
    /// The values that nodes stand for: their own, or their family's.
    value_of: Vec<usize>,
    /// Last members of families of which other nodes use a member before that: their level is not settled by then.
    unsettled: Vec<usize>,
}

impl<'p, 'g> Frontier<'p, 'g> {
    /// The single state after the last node.
    pub fn new(problem: &'p Problem<'g>, limit: usize) -> Self {
        let (value_of, unsettled) = families(problem);
        Frontier {
            problem,
            limit,
            live: Vec::new(),
            states: vec![State {
                demands: Vec::new(),
                cost: 0.0,
                trace: None,
                origin: 0,
            }],
            decisions: Vec::new(),
            ahead: Ahead::new(problem),
            value_of,
            unsettled,
        }
    }

    /// The values that nodes stand for: their own, or their family's.
    pub fn values(&self) -> &[usize] {
        &self.value_of
    }

    /// All that is decided on the cheapest way, once all nodes are taken; `None` where no way reaches the first node.
    pub fn decided(&self) -> Option<Vec<Decided>> {
        let best = (self.states.iter()).min_by(|a, b| a.cost.total_cmp(&b.cost))?;
        let mut decided = Vec::new();
        let mut at = best.trace;
        while let Some(Decision { what, before }) = at.map(|index| self.decisions[index]) {
            decided.push(what);
            at = before;
        }
        Some(decided)
    }

    /// The cheapest choice of refreshes.
    pub fn best(&self) -> Option<Choice> {
        let mut choice = Choice::none(self.problem);
        for decided in self.decided()? {
            if let Decided::Refresh { node, refreshed } = decided {
                choice.0[node] = Some(refreshed);
            }
        }
        // The first value of a pair is taken last and does not know its partner's number.
        for node in 0..choice.0.len() {
            if let Some(partner) = choice.0[node].and_then(|refreshed| refreshed.partner)
                && let Some(refreshed) = &mut choice.0[partner]
            {
                refreshed.partner = Some(node);
            }
        }
        Some(choice)
    }

    /// Takes the node before those taken so far.
    pub fn take(&mut self, node: usize) {
        let value = self.value_of[node];
        self.make_live(value);
        if self.unsettled.contains(&node) {
            self.fix(value);
        }
        let inputs = self.problem.inputs(node);
        let mut done = Vec::new();
        for state in std::mem::take(&mut self.states) {
            self.finish(node, state, &mut done);
        }
        let (states, levels): (Vec<State>, Vec<u32>) = done.into_iter().unzip();
        self.states = states;
        if value == node {
            // It is the last live value: every other one begins before it.
            self.live.pop();
        }
        let values: Vec<usize> = inputs.iter().map(|&input| self.value_of[input]).collect();
        values.iter().for_each(|&value| self.make_live(value));
        let places: Vec<(usize, usize)> = inputs
            .iter()
            .zip(values)
            .map(|(&input, value)| (input, self.place(value)))
            .collect();
        let mut by_level: BTreeMap<u32, Vec<State>> = BTreeMap::new();
        for (state, level_in) in std::mem::take(&mut self.states).into_iter().zip(levels) {
            by_level.entry(level_in).or_default().push(state);
        }
        let mut demanded = Vec::new();
        for (level_in, mut states) in by_level {
            for &(input, place) in &places {
                states = self.demand(input, place, level_in, states);
                // A node with many inputs would make two states of each for every one of them.
                if states.len() > self.limit {
                    states = self.cheapest(node, states);
                    states.truncate(self.limit);
                }
            }
            demanded.append(&mut states);
        }
        self.states = self.pruned(node, demanded);
    }

    fn place(&self, value: usize) -> usize {
        self.live
            .binary_search(&value)
            .expect("values that are demanded are live")
    }

    /// Makes a value live if it is not yet, without any demand but a family's least level.
    fn make_live(&mut self, value: usize) {
        if let Err(place) = self.live.binary_search(&value) {
            self.live.insert(place, value);
            let demand = Demand {
                computed: self.problem.floor(value),
                ..Demand::default()
            };
            for state in &mut self.states {
                state.demands.insert(place, demand);
            }
        }
    }

    /// Gives a family with uses still to come its level: any from what is demanded so far.
    fn fix(&mut self, family: usize) {
        let place = self.place(family);
        for state in std::mem::take(&mut self.states) {
            for level in state.demands[place].computed..=self.problem.max_level().0 {
                let mut fixed = state.clone();
                let demand = &mut fixed.demands[place];
                fixed.cost += demand.raise_computed(level, self.problem);
                demand.fixed = true;
                self.states.push(fixed);
            }
        }
    }

    /// Decides on the refresh of a value that all users have been taken of; pushes what comes out, the value removed, with the level of
    /// the node's inputs. Families stay live up to their first member.
    fn finish(&mut self, node: usize, mut state: State, done: &mut Vec<(State, u32)>) {
        let problem = self.problem;
        let value = self.value_of[node];
        if value != node {
            let level = state.demands[self.place(value)].computed;
            return self.compute(node, level, state, done);
        }
        let mut demand = state.demands.pop().expect("the node is live");
        if demand.refreshed == 0 {
            if demand.paired {
                state.trace = Some(self.decide(node, demand.computed, None, state.trace));
            }
            self.compute(node, demand.computed, state, done);
            return;
        }
        for place in 0..state.demands.len() {
            let partner = self.live[place];
            let other = state.demands[place];
            if other.refreshed == 0 || !problem.can_pair(node, partner) {
                continue;
            }
            let mut state = state.clone();
            let (mut demand, target) = (demand, demand.refreshed.max(other.refreshed));
            let Some(size) = problem.bootstrap_size(node, Some(partner)) else {
                continue;
            };
            let other = &mut state.demands[place];
            for value in [&mut demand, &mut *other] {
                state.cost += value.raise_computed(problem.bootstrap_needs(size), problem);
                state.cost += value.raise_refreshed(target, problem);
            }
            if target <= demand.computed.max(other.computed) {
                continue;
            }
            (other.refreshed, other.refreshed_users, other.paired) = (0, 0, true);
            state.cost += problem.bootstrap_ms(size, true, target);
            let level = demand.computed;
            state.trace = Some(self.decide(node, level, Some(partner), state.trace));
            self.compute(node, level, state, done);
        }
        let Some(size) = problem.bootstrap_size(node, None) else {
            return;
        };
        state.cost += demand.raise_computed(problem.bootstrap_needs(size), problem);
        if demand.refreshed > demand.computed {
            state.cost += problem.bootstrap_ms(size, false, demand.refreshed);
            let level = demand.computed;
            state.trace = Some(self.decide(node, level, None, state.trace));
            self.compute(node, level, state, done);
        }
    }

    fn decide(
        &mut self,
        node: usize,
        keep: u32,
        partner: Option<usize>,
        before: Option<usize>,
    ) -> usize {
        let refreshed = Refreshed { keep, partner };
        self.decisions.push(Decision {
            what: Decided::Refresh { node, refreshed },
            before,
        });
        self.decisions.len() - 1
    }

    /// Pays for the node's operation at the level of its result.
    fn compute(&self, node: usize, level: u32, mut state: State, done: &mut Vec<(State, u32)>) {
        let level_in = level + self.problem.depth(node);
        if level_in <= self.problem.max_level().0 {
            state.cost += self.problem.compute_ms(node, level_in);
            done.push((state, level_in));
        }
    }

    /// Demands an input at a level, as computed and as refreshed.
    fn demand(&self, input: usize, place: usize, level: u32, states: Vec<State>) -> Vec<State> {
        let mut demanded = Vec::with_capacity(states.len());
        for mut state in states {
            let Demand {
                computed, paired, ..
            } = state.demands[place];
            let needs = self.problem.refresh_needs(input).filter(|_| !paired);
            // At or below the level at which it is computed anyway, nobody needs the refresh.
            if needs.is_some_and(|needs| level > needs.max(computed)) {
                let mut state = state.clone();
                state.cost += state.demands[place].use_refreshed(level, self.problem);
                demanded.push(state);
            }
            let demand = &mut state.demands[place];
            if let Some(drops) = demand.use_computed(level, self.problem)
                && (demand.refreshed == 0 || demand.refreshed > demand.computed)
            {
                state.cost += drops;
                demanded.push(state);
            }
        }
        demanded
    }

    /// The cheapest state of each with the same demands, by what a whole way through it costs at least.
    fn cheapest(&self, node: usize, states: Vec<State>) -> Vec<State> {
        let mut cheapest: FxHashMap<Vec<Demand>, (f64, Option<usize>, usize)> =
            FxHashMap::default();
        for state in states {
            let found = (state.cost, state.trace, state.origin);
            let known = cheapest.entry(state.demands).or_insert(found);
            if found.0 < known.0 {
                *known = found;
            }
        }
        let mut states: Vec<(f64, State)> = cheapest
            .into_iter()
            .map(|(demands, (cost, trace, origin))| {
                let whole = cost + self.ahead.least(node, &self.live, &demands);
                let state = State {
                    demands,
                    cost,
                    trace,
                    origin,
                };
                (whole, state)
            })
            .collect();
        // Equals in a fixed order, so that a problem always gets the same plan.
        states.sort_by(|(a, state_a), (b, state_b)| {
            a.total_cmp(b)
                .then_with(|| state_a.demands.cmp(&state_b.demands))
        });
        states.into_iter().map(|(_, state)| state).collect()
    }

    /// Leaves out states that others beat, and beyond the limit those that seem the most expensive. Up to the limit, what is left depends on
    /// the nodes taken so far only, as solving a block for another requires.
    pub fn pruned(&self, node: usize, states: Vec<State>) -> Vec<State> {
        let mut kept: Vec<State> = Vec::new();
        for state in self.cheapest(node, states) {
            if kept.len() == self.limit {
                break;
            }
            if !kept.iter().any(|better| self.beats(better, &state)) {
                kept.push(state);
            }
        }
        kept
    }

    /// Whether every way on from `worse` is open to `better` too, and no cheaper.
    fn beats(&self, better: &State, worse: &State) -> bool {
        let mut cost = better.cost;
        for (a, b) in better.demands.iter().zip(&worse.demands) {
            match a.excess(b, self.problem) {
                Some(excess) => cost += excess,
                None => return false,
            }
            if cost > worse.cost {
                return false;
            }
        }
        true
    }
}

/// The values that nodes stand for, and the last members of families that are not settled by then.
fn families(problem: &Problem<'_>) -> (Vec<usize>, Vec<usize>) {
    let mut members = vec![Vec::new(); problem.families()];
    for &(node, family) in problem.members() {
        members[family].push(node);
    }
    let value_of = (0..problem.len())
        .map(|node| {
            problem
                .family(node)
                .map_or(node, |family| members[family][0])
        })
        .collect();
    let mut unsettled: Vec<usize> = (0..problem.len())
        .flat_map(|node| problem.inputs(node).iter().map(move |&input| (node, input)))
        .filter_map(|(node, input)| {
            let family = problem.family(input)?;
            let last = *members[family].last()?;
            (problem.family(node) != Some(family) && node < last).then_some(last)
        })
        .collect();
    unsettled.dedup();
    (value_of, unsettled)
}
