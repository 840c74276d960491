//! Choices: what is refreshed, and the levels and the time that follow from it.

use crate::Problem;

/// The refresh of one node's result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// The result is computed at this level at least, although its refresh may take less: users at or below it take the
    /// result as it was before the refresh.
    pub keep: u32,
    /// The node whose result shares the bootstrap, as the other half of a complex value. It names this one in turn.
    pub partner: Option<usize>,
}

/// The refreshes of a graph's results, one entry per node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice(pub Vec<Option<Refreshed>>);

impl Choice {
    /// Nothing is refreshed.
    pub fn none(problem: &Problem<'_>) -> Self {
        Choice(vec![None; problem.len()])
    }

    /// Refreshes a node's result, alone.
    pub fn refresh(&mut self, node: usize) {
        self.0[node] = Some(Refreshed::default());
    }
}

/// The levels that follow from a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    /// Level of every node's result before a refresh.
    pub computed: Vec<u32>,
    /// Level at which users above that take it, after the refresh; equal to `computed` where there is none.
    pub handed: Vec<u32>,
}

impl Levels {
    /// Level at which a user that works at `level_in` finds the result of a node.
    pub fn found(&self, node: usize, level_in: u32) -> u32 {
        if level_in <= self.computed[node] {
            self.computed[node]
        } else {
            self.handed[node]
        }
    }
}

impl Problem<'_> {
    /// All levels, from the last node backwards. A value is handed on at the highest level that a user needs, and computed at
    /// that level too unless it is refreshed: then at the level that its refresh takes, or where the choice keeps it. They may
    /// exceed the highest level there is.
    pub fn levels(&self, choice: &Choice) -> Levels {
        self.levels_within(choice, u32::MAX)
            .expect("no level is higher than the highest number")
    }

    /// As [`levels`](Problem::levels); `None` as soon as a level is higher than `limit`.
    fn levels_within(&self, choice: &Choice, limit: u32) -> Option<Levels> {
        let mut floors = self.floors().to_vec();
        loop {
            let (levels, reached) = self.levels_above(choice, limit, &floors)?;
            // One level per family of caches: go again where a member is higher than another.
            let level = |&(i, family): &(usize, usize)| levels.computed[i] == reached[family];
            if self.members().iter().all(level) {
                return Some(levels);
            }
            floors = reached;
        }
    }

    /// One pass with a lower bound for the level of every family of caches, and the levels that these reach.
    fn levels_above(
        &self,
        choice: &Choice,
        limit: u32,
        floors: &[u32],
    ) -> Option<(Levels, Vec<u32>)> {
        let mut levels = Levels {
            computed: vec![0; self.len()],
            handed: vec![0; self.len()],
        };
        let mut reached = floors.to_vec();
        // What users demand so far of results that are not kept that high.
        let mut computed_for: Vec<u32> = (0..self.len())
            .map(|i| self.kept(choice, i).unwrap_or(0))
            .collect();
        for i in (0..self.len()).rev() {
            if let Some(family) = self.family(i) {
                computed_for[i] = computed_for[i].max(floors[family]);
                reached[family] = reached[family].max(computed_for[i]);
            }
            levels.computed[i] = computed_for[i];
            levels.handed[i] = levels.handed[i].max(computed_for[i]);
            if let Some(partner) = choice.0[i].and_then(|refreshed| refreshed.partner)
                && partner > i
            {
                // Both come out of their bootstrap at one level.
                let target = levels.handed[i].max(levels.handed[partner]);
                (levels.handed[i], levels.handed[partner]) = (target, target);
            }
            let level_in = levels.computed[i] + self.depth(i);
            if level_in.max(levels.handed[i]) > limit {
                return None;
            }
            for &input in self.inputs(i) {
                match self.kept(choice, input) {
                    Some(kept) if level_in > kept => {
                        levels.handed[input] = levels.handed[input].max(level_in);
                    }
                    _ => computed_for[input] = computed_for[input].max(level_in),
                }
            }
        }
        Some((levels, reached))
    }

    /// Level at which a refreshed result is kept for users that need no more; `None` where it is not refreshed.
    fn kept(&self, choice: &Choice, node: usize) -> Option<u32> {
        let refreshed = choice.0[node]?;
        let size = self.bootstrap_size(node, refreshed.partner)?;
        Some(refreshed.keep.max(self.bootstrap_needs(size)))
    }

    /// Predicted milliseconds; infinite where a level would be too high, or where a pair's first value is used refreshed before its
    /// second is there.
    pub fn cost(&self, choice: &Choice) -> f64 {
        let Some(levels) = self.levels_within(choice, self.max_level().0) else {
            return f64::INFINITY;
        };
        if !self.in_order(choice, &levels) {
            return f64::INFINITY;
        }
        (0..self.len())
            .map(|i| self.node_ms(i, choice.0[i], &levels))
            .sum()
    }

    /// Whether no value is used refreshed before the pair's other value is computed.
    fn in_order(&self, choice: &Choice, levels: &Levels) -> bool {
        (0..self.len()).all(|user| {
            let level_in = levels.computed[user] + self.depth(user);
            self.inputs(user).iter().all(|&input| {
                let partner = choice.0[input].and_then(|refreshed| refreshed.partner);
                level_in <= levels.computed[input] || partner.is_none_or(|partner| partner < user)
            })
        })
    }

    /// Predicted milliseconds of one node with its drops and its refresh; a shared bootstrap counts at its second node.
    pub(crate) fn node_ms(&self, i: usize, refreshed: Option<Refreshed>, levels: &Levels) -> f64 {
        let level_in = levels.computed[i] + self.depth(i);
        let drops = self
            .inputs(i)
            .iter()
            .filter(|&&input| levels.found(input, level_in) > level_in)
            .count();
        let refresh = refreshed.map_or(0.0, |Refreshed { partner, .. }| {
            match self.bootstrap_size(i, partner) {
                Some(size) if partner.is_none_or(|partner| partner < i) => {
                    self.bootstrap_ms(size, partner.is_some(), levels.handed[i])
                }
                _ => 0.0,
            }
        });
        self.compute_ms(i, level_in) + drops as f64 * self.drop_ms(level_in) + refresh
    }
}
