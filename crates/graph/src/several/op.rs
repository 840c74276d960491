//! Operations between tokens that are side by side.

use crate::{Heads, Layout};
use std::sync::Arc;

/// An operation between the tokens of a graph of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeveralOp {
    /// All slots of a value that fills them, turned to the left by so many slots (to the right where negative), fewer than there are tokens.
    Shift {
        /// Slots.
        by: i64,
    },
    /// A value shifted by `by` and by `by - T` -> its tokens turned: token `j` of the result is token `(j + by) mod T`. One level.
    Turn {
        /// From 1 to below the number of tokens.
        by: usize,
    },
    /// Member `number % groups` of a value cache, shifted by 0, by 1 to T - 1 and by 1 - T to -1 -> number `number` of the value caches that weights
    /// of all pairs meet. One level.
    Stagger {
        /// Of all pairs.
        pairs: Heads,
        /// Groups of the cache.
        groups: usize,
        /// Which one.
        number: usize,
    },
    /// As [`Op::Scores`](crate::Op::Scores), of pairs of tokens; two levels.
    Scores(PairScores),
}

/// Scores between the tokens of a pass and those in the key caches, where both are side by side.
///
/// Number `s * G + g` of the groups of `pairs` has the keys of group `g` of the `G` cached groups, turned by `s` tokens: there token `j`
/// meets the cached token `g * t + l * T + (j + s) mod T` at lane `l`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairScores {
    /// Of all pairs: as many groups as there are cached ones, for every turn.
    pub pairs: Heads,
    /// Groups of the cache (G).
    pub groups: usize,
    /// The numbers whose keys are inputs, in their order; for each as many inputs as there are queries.
    pub numbers: Arc<[usize]>,
    /// Position of every token of the pass; it meets no token after it.
    pub positions: Arc<[usize]>,
}

impl PairScores {
    /// Position of the cached token that token `j` meets in a number of the groups, at a lane.
    pub fn met(&self, number: usize, lane: usize, j: usize) -> usize {
        let tokens = self.positions.len();
        let (turn, group) = (number / self.groups, number % self.groups);
        (group * self.pairs.lanes() + lane) * tokens + (j + turn) % tokens
    }

    /// Whether token `j` meets it.
    pub fn meets(&self, number: usize, lane: usize, j: usize) -> bool {
        self.met(number, lane, j) <= self.positions[j]
    }

    /// Whether every token meets all of a number's keys.
    pub(super) fn meets_all(&self, number: usize) -> bool {
        (0..self.pairs.lanes())
            .all(|lane| (0..self.positions.len()).all(|j| self.meets(number, lane, j)))
    }
}

impl SeveralOp {
    /// Levels from the inputs to the output.
    pub fn depth(&self) -> u32 {
        match self {
            SeveralOp::Shift { .. } => 0,
            SeveralOp::Turn { .. } | SeveralOp::Stagger { .. } => 1,
            SeveralOp::Scores(_) => 2,
        }
    }

    /// The operation's name in messages.
    pub fn kind(&self) -> &'static str {
        match self {
            SeveralOp::Shift { .. } => "shift of tokens",
            SeveralOp::Turn { .. } => "turn of tokens",
            SeveralOp::Stagger { .. } => "staggered values",
            SeveralOp::Scores(_) => "scores of pairs",
        }
    }

    /// What its cost depends on, layouts apart.
    pub(crate) fn sizes(&self) -> Vec<usize> {
        let heads = |heads: &Heads| {
            [
                heads.heads(),
                heads.queries(),
                heads.channels(),
                heads.groups(),
            ]
        };
        match self {
            SeveralOp::Shift { by } => vec![usize::from(*by > 0), by.unsigned_abs() as usize],
            SeveralOp::Turn { by } => vec![*by],
            SeveralOp::Stagger {
                pairs,
                groups,
                number,
            } => [&heads(pairs)[..], &[*groups, *number]].concat(),
            SeveralOp::Scores(scores) => {
                [&heads(&scores.pairs)[..], &[scores.groups], &scores.numbers].concat()
            }
        }
    }

    /// The numbers of inputs that it takes, the layout of each, and the result's.
    pub(crate) fn layouts(&self, tokens: usize, slots: usize) -> (Vec<Layout>, Layout) {
        let full = Layout::periodic(slots);
        match self {
            SeveralOp::Shift { .. } => (vec![full], full),
            SeveralOp::Turn { .. } => (vec![full; 2], full),
            SeveralOp::Stagger { .. } => (vec![full; 2 * tokens - 1], full),
            SeveralOp::Scores(scores) => {
                let pairs = &scores.pairs;
                let mut inputs = vec![pairs.repeated(); pairs.queries()];
                inputs.resize(pairs.queries() * (1 + scores.numbers.len()), full);
                (inputs, pairs.scores())
            }
        }
    }

    /// What is wrong with it in a graph of so many tokens on so many slots for each.
    pub(crate) fn fault(&self, tokens: usize, slots: usize) -> Option<&'static str> {
        let covers = |heads: &Heads, groups: usize| {
            groups * tokens == heads.groups() && heads.width() * heads.lanes() == slots
        };
        let (right, expected) = match self {
            SeveralOp::Shift { by } => (
                (by.unsigned_abs() as usize) < tokens,
                "fewer slots than there are tokens",
            ),
            SeveralOp::Turn { by } => (
                (1..tokens).contains(by),
                "a turn by fewer tokens than there are",
            ),
            SeveralOp::Stagger {
                pairs,
                groups,
                number,
            } => (
                covers(pairs, *groups) && *number < pairs.groups(),
                "one of the numbers of heads for all slots and turns",
            ),
            SeveralOp::Scores(scores) => (
                covers(&scores.pairs, scores.groups)
                    && scores.positions.len() == tokens
                    && !scores.numbers.is_empty()
                    && scores.numbers.iter().all(|n| *n < scores.pairs.groups()),
                "heads for all slots and turns, their numbers, and a position for every token",
            ),
        };
        (!right).then_some(expected)
    }
}
