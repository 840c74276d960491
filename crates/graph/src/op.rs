//! Semantic operations.

use crate::machine::polynomial_depth;
use crate::{Heads, Layout, Matrix, NonLinear, SeveralOp, Vector};
use std::sync::Arc;

/// Where an input comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Encrypted for this step by the client, at the level that the plan says.
    Fresh,
    /// Kept from step to step. All members of a family have one fixed level.
    Cache {
        /// The family, as "layer0.cache.key".
        family: Arc<str>,
    },
}

/// A semantic operation on values with a layout. Shapes are checked when a node is added to a graph.
#[derive(Clone, Debug)]
pub enum Op {
    /// A value from outside.
    Input {
        /// Where it comes from.
        source: Source,
        /// Its layout.
        layout: Layout,
    },
    /// `a + b`; the one with fewer logical entries is repeated.
    Add,
    /// `a - b`; the one with fewer logical entries is repeated.
    Sub,
    /// `a * b`; the one with fewer logical entries is repeated.
    Mul,
    /// `a * a`.
    Square,
    /// Adds a vector to the logical entries and a constant to the slots elsewhere.
    AddPlain {
        /// In the logical coordinates of the value.
        vector: Vector,
        /// Added outside the logical entries.
        elsewhere: f64,
    },
    /// Multiplies the logical entries by a vector and everything elsewhere by zero: a mask with a scale.
    MulPlain {
        /// In the logical coordinates of the value.
        vector: Vector,
    },
    /// Sums of the entries with equal index modulo `left`, which many entries are left. Periodic(d) with one left: the sum of all
    /// entries, in every slot.
    SumEntries {
        /// How many; a divisor of the number of entries.
        left: usize,
    },
    /// Entry `i` of the result is entry `i + by`, cyclically.
    Turn {
        /// Less than the number of entries.
        by: usize,
    },
    /// Entries `i * of + which` of a spaced value, as entries of longer runs; the other entries count as garbage between them. No
    /// operation on slots.
    Select {
        /// A power of two.
        of: usize,
        /// Which entry of each `of`.
        which: usize,
    },
    /// Several masked values spaced at lane 0 -> one: entry `i * count + k` is entry `i` of value `k`.
    Interleave,
    /// A non-linear function by its polynomial. Where the interval is not [-1, 1], its map takes one more level.
    Polynomial(Arc<NonLinear>),
    /// Subtracts `counts * f(at)^(2^squarings)`: entries known to have gone through `f` and squarings with the public
    /// argument `at` (unused tokens).
    SubtractImage {
        /// `f`.
        function: Arc<NonLinear>,
        /// Squarings after it.
        squarings: u32,
        /// Its argument.
        at: f64,
        /// How many, per logical entry.
        counts: Vector,
    },
    /// Periodic -> spaced at a lane, garbage elsewhere.
    ProductSpaced {
        /// Rows as the input has entries; at most as many columns as there are slots.
        matrix: Matrix,
        /// The lane where the sums end.
        lane: usize,
    },
    /// Repeated -> periodic.
    ProductPeriodic {
        /// Rows as the input has entries.
        matrix: Matrix,
    },
    /// Spaced with zero elsewhere -> repeated.
    Repeat,
    /// Repeated -> periodic with every slot of a run an entry of its own. No operation on slots.
    Flatten,
    /// Rotary embedding of a spaced value and the same turned by half its entries: `x[i] * cos[i] + turned[i] * sin[i]`, zero elsewhere
    /// (the mask is fused in).
    Rope {
        /// Factors of the entry itself.
        cos: Vector,
        /// Factors of the entry half the width away, with the rotation's sign.
        sin: Vector,
    },
    /// Masked spaced value [+ a cache's member] -> that member of the cache.
    Append {
        /// The cache's family.
        family: Arc<str>,
    },
    /// Repeated queries, then for groups 0, 1, ... the key cache that each of the queries meets -> scores; 0 for groups that are not given.
    Scores(Heads),
    /// Exponentials, in one ciphertext or several -> sum over tokens per head, at lane 0, garbage elsewhere.
    SumTokens(Heads),
    /// Exponentials, all value caches -> sum of weighted values, spaced at lane 0, garbage elsewhere.
    WeightedValues(Heads),
    /// Between tokens that are side by side.
    Several(SeveralOp),
}

impl Op {
    /// Levels from the inputs (all at one level) to the output.
    pub fn depth(&self) -> u32 {
        match self {
            Op::Input { .. }
            | Op::Add
            | Op::Sub
            | Op::AddPlain { .. }
            | Op::SumEntries { .. }
            | Op::Turn { .. }
            | Op::Select { .. }
            | Op::Interleave
            | Op::SubtractImage { .. }
            | Op::Repeat
            | Op::Flatten
            | Op::Append { .. }
            | Op::SumTokens(_) => 0,
            Op::Mul
            | Op::Square
            | Op::MulPlain { .. }
            | Op::ProductSpaced { .. }
            | Op::ProductPeriodic { .. }
            | Op::Rope { .. }
            | Op::WeightedValues(_) => 1,
            Op::Scores(heads) => 1 + u32::from(heads.parts() > 1),
            Op::Several(op) => op.depth(),
            Op::Polynomial(nonlinear) => polynomial_depth(&nonlinear.polynomial),
        }
    }

    /// The operation's name in messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Op::Input { .. } => "input",
            Op::Add => "add",
            Op::Sub => "sub",
            Op::Mul => "mul",
            Op::Square => "square",
            Op::AddPlain { .. } => "add plain",
            Op::MulPlain { .. } => "mul plain",
            Op::SumEntries { .. } => "sum of entries",
            Op::Turn { .. } => "turn",
            Op::Select { .. } => "select",
            Op::Interleave => "interleave",
            Op::Polynomial(_) => "polynomial",
            Op::SubtractImage { .. } => "subtract image",
            Op::ProductSpaced { .. } => "product to spaced",
            Op::ProductPeriodic { .. } => "product to periodic",
            Op::Repeat => "repeat",
            Op::Flatten => "flatten",
            Op::Rope { .. } => "rotary embedding",
            Op::Append { .. } => "append",
            Op::Scores(_) => "scores",
            Op::SumTokens(_) => "sum over tokens",
            Op::WeightedValues(_) => "weighted values",
            Op::Several(op) => op.kind(),
        }
    }

    /// The family of the cache that this node is a member of.
    pub fn cache_family(&self) -> Option<&Arc<str>> {
        match self {
            Op::Input {
                source: Source::Cache { family },
                ..
            }
            | Op::Append { family } => Some(family),
            _ => None,
        }
    }
}
