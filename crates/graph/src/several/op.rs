//! Operations between tokens that are side by side.

use super::pairs::SUMMED;
use crate::{Heads, Layout, Rest};
use std::sync::Arc;

/// An operation between the tokens of a graph of several.
#[derive(Clone, Debug)]
pub enum SeveralOp {
    /// All members of a value cache -> the values of one of its groups at every channel. One level.
    Group {
        /// Of the cache.
        heads: Heads,
        /// Which one.
        group: usize,
    },
    /// Queries and key caches -> scores between pairs of tokens; three levels.
    Scores(PairScores),
    /// Exponentials of pairs of tokens and the values of groups -> sums of weighted values, spaced at lane 0, garbage elsewhere; two levels.
    Weighted(PairValues),
}

/// Scores between the tokens of a pass and those in the key caches, where both are side by side: those that one ciphertext has room for.
///
/// All pairs are numbered: number `g * T + s` has the keys of group `g`, turned by `s` tokens: there token `j` meets the cached token
/// `g * t * T + l * T + (j + s) mod T` at lane `l`. Turned groups are to the scores what groups are to those of one token.
#[derive(Clone, Debug)]
pub struct PairScores {
    /// Of this ciphertext: its numbers are its groups.
    pub pairs: Heads,
    /// Number of the first.
    pub first: usize,
    /// Key caches that are given: those of the groups in use that its numbers turn, from that of the first number on.
    pub groups: usize,
    /// Position of every token of the pass; it meets no token after it.
    pub positions: Arc<[usize]>,
    /// What is added to the keys for each of a head's queries; empty for nothing.
    pub shifts: Arc<[Vec<f64>]>,
}

/// Sums of values weighted by exponentials of pairs, which lie in several ciphertexts as those of [`PairScores`] do.
#[derive(Clone, Copy, Debug)]
pub struct PairValues {
    /// Of one ciphertext of exponentials.
    pub pairs: Heads,
    /// Ciphertexts of exponentials.
    pub parts: usize,
    /// Groups of values: those in use.
    pub groups: usize,
}

impl PairScores {
    /// Tokens side by side.
    pub fn tokens(&self) -> usize {
        self.positions.len()
    }

    /// The groups of the given key caches.
    pub(super) fn given(&self) -> std::ops::Range<usize> {
        let first = self.first / self.tokens();
        first..first + self.groups
    }

    /// The group and the turn of one of the numbers here.
    pub(super) fn turned(&self, number: usize) -> (usize, usize) {
        let number = self.first + number;
        (number / self.tokens(), number % self.tokens())
    }

    /// Position of the cached token that token `j` meets in one of the numbers here, at a lane.
    pub fn met(&self, number: usize, lane: usize, j: usize) -> usize {
        let (group, turn) = self.turned(number);
        let tokens = self.tokens();
        (group * self.pairs.lanes() + lane) * tokens + (j + turn) % tokens
    }

    /// Whether token `j` meets it.
    pub fn meets(&self, number: usize, lane: usize, j: usize) -> bool {
        self.met(number, lane, j) <= self.positions[j]
    }
}

impl PairValues {
    /// The group and the turn of a number of one of the ciphertexts, if the group is in use.
    pub(super) fn turned(
        &self,
        part: usize,
        number: usize,
        tokens: usize,
    ) -> Option<(usize, usize)> {
        let number = part * self.pairs.groups() + number;
        (number / tokens < self.groups).then_some((number / tokens, number % tokens))
    }
}

impl SeveralOp {
    /// Levels from the inputs to the output.
    pub fn depth(&self) -> u32 {
        match self {
            SeveralOp::Group { .. } => 1,
            SeveralOp::Scores(_) => 3,
            SeveralOp::Weighted(_) => 2,
        }
    }

    /// The operation's name in messages.
    pub fn kind(&self) -> &'static str {
        match self {
            SeveralOp::Group { .. } => "values of a group",
            SeveralOp::Scores(_) => "scores of pairs",
            SeveralOp::Weighted(_) => "weighted values of pairs",
        }
    }

    /// How many values it works in at most, at the level of its inputs, for `tokens` tokens.
    pub fn working_values(&self, tokens: usize) -> usize {
        let shifted = 2 * tokens - 1;
        match self {
            SeveralOp::Group { .. } => 0,
            // Sums of its parts, and what the keys of one group are multiplied with.
            SeveralOp::Scores(scores) => shifted + 2 * scores.pairs.parts(),
            SeveralOp::Weighted(values) => {
                let numbers = values.pairs.groups();
                numbers.div_ceil(tokens).min(values.groups) * shifted + 2 * SUMMED
            }
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
            SeveralOp::Group {
                heads: cached,
                group,
            } => [&heads(cached)[..], &[*group]].concat(),
            SeveralOp::Scores(scores) => {
                let shifted = usize::from(!scores.shifts.is_empty());
                let of = [scores.tokens(), scores.first, scores.groups, shifted];
                [&heads(&scores.pairs)[..], &of].concat()
            }
            SeveralOp::Weighted(values) => {
                [&heads(&values.pairs)[..], &[values.parts, values.groups]].concat()
            }
        }
    }

    /// The layout of each input, and the result's.
    pub(crate) fn layouts(&self, slots: usize) -> (Vec<Layout>, Layout) {
        let full = Layout::periodic(slots);
        match self {
            SeveralOp::Group { heads, .. } => (vec![full; heads.groups()], full),
            SeveralOp::Scores(scores) => {
                let pairs = &scores.pairs;
                let mut inputs = vec![pairs.repeated(); pairs.queries()];
                inputs.resize(pairs.queries() + scores.groups, full);
                (inputs, pairs.scores())
            }
            SeveralOp::Weighted(values) => {
                let mut inputs = vec![values.pairs.scores(); values.parts];
                inputs.resize(values.parts + values.groups, full);
                (inputs, values.pairs.spaced(0, Rest::Garbage))
            }
        }
    }

    /// What is wrong with it in a graph of so many tokens on so many slots for each.
    pub(crate) fn fault(&self, tokens: usize, slots: usize) -> Option<&'static str> {
        let covers = |heads: &Heads| heads.width() * heads.lanes() == slots;
        let (right, expected) = match self {
            SeveralOp::Group { heads, group } => (
                covers(heads) && *group < heads.groups(),
                "one of the groups of heads for all slots",
            ),
            SeveralOp::Scores(scores) => {
                let (pairs, shifts) = (&scores.pairs, &scores.shifts);
                let last = (scores.first + pairs.groups()).div_ceil(tokens);
                let shifted = shifts.len() == pairs.queries()
                    && shifts.iter().all(|shift| shift.len() == pairs.width());
                (
                    covers(pairs)
                        && scores.tokens() == tokens
                        && scores.first.is_multiple_of(pairs.groups())
                        && scores.groups > 0
                        && scores.given().end <= last
                        && (shifts.is_empty() || shifted),
                    "heads for all slots, a position for every token, key caches of the groups that are turned, and a shift for every query \
                     or none",
                )
            }
            SeveralOp::Weighted(values) => {
                let numbers = values.groups * tokens;
                (
                    covers(&values.pairs)
                        && values.parts > 0
                        && numbers.div_ceil(values.pairs.groups()) == values.parts,
                    "heads for all slots, and as many ciphertexts of exponentials as the groups of values take",
                )
            }
        };
        (!right).then_some(expected)
    }
}
