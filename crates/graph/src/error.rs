//! Errors of graphs and of what is done with them.

use crate::{Layout, Level};
use thiserror::Error;

/// A graph that cannot be built.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum GraphError {
    /// Slots must be a power of two.
    #[error("graph: expected a power of two of slots, got {0}")]
    Slots(usize),
    /// Tokens side by side must be a power of two that the slots have room for.
    #[error(
        "graph: expected a power of two of tokens up to {slots}, the number of slots, got {tokens}"
    )]
    Tokens {
        /// How many were asked for.
        tokens: usize,
        /// Slots of the machine.
        slots: usize,
    },
    /// Two nodes with one name; plans and progress go by names.
    #[error("node {name}: a node of this name exists; give every node its own name")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// A node id of another graph.
    #[error("node {name}: input {input} does not exist; use ids returned by this graph")]
    UnknownInput {
        /// The new node.
        name: String,
        /// The index that was given.
        input: usize,
    },
    /// A wrong number of inputs.
    #[error("node {name}: {kind} takes {expected} inputs, got {got}")]
    Arity {
        /// The new node.
        name: String,
        /// The operation.
        kind: &'static str,
        /// What it takes.
        expected: String,
        /// How many came.
        got: usize,
    },
    /// An input in a layout that the operation cannot take.
    #[error(
        "node {name}: {kind} expects {expected}, got {got}; insert the operation that changes the layout"
    )]
    Layout {
        /// The new node.
        name: String,
        /// The operation.
        kind: &'static str,
        /// The layout that it takes.
        expected: String,
        /// The layout that came.
        got: Layout,
    },
    /// A vector or matrix of the wrong size.
    #[error("node {name}: {kind} expects {expected}, got {got}; pad to powers of two")]
    Shape {
        /// The new node.
        name: String,
        /// The operation.
        kind: &'static str,
        /// The size that it takes.
        expected: String,
        /// The size that came.
        got: String,
    },
    /// An approximation of another function.
    #[error("node {name}: expected an approximation of {expected}, got one of {got}")]
    Function {
        /// Where.
        name: String,
        /// What is approximated there.
        expected: &'static str,
        /// What came.
        got: &'static str,
    },
    /// An impossible attention geometry.
    #[error(
        "attention: expected powers of two with heads * queries * channels <= slots and groups * queries <= channels, \
         got {slots} slots, {heads} K/V heads, {queries} queries for each, {channels} channels, {groups} groups; shorten the context or take more slots"
    )]
    Heads {
        /// Slots.
        slots: usize,
        /// Padded K/V heads.
        heads: usize,
        /// Padded query heads per K/V head.
        queries: usize,
        /// Padded channels per head.
        channels: usize,
        /// Groups of tokens.
        groups: usize,
    },
}

/// A plan that cannot be made.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum PlanError {
    /// Too few levels between the places where a bootstrap may stand.
    #[error(
        "plan: {node} would have to be at level {needed}, the highest is {max}; \
         give bounds to more nodes so that they can be refreshed, or take parameters with more levels"
    )]
    TooDeep {
        /// The first value that is too high.
        node: String,
        /// Its level.
        needed: Level,
        /// The highest level there is.
        max: Level,
    },
    /// The cost table lacks something.
    #[error("plan: cost table has {what}; expected {expected}")]
    Costs {
        /// What is wrong.
        what: String,
        /// What it should be.
        expected: String,
    },
    /// A plan and a graph that do not belong together.
    #[error("plan: {node} is not in the plan; make the plan from a graph of the full context")]
    Missing {
        /// The node that the plan does not know.
        node: String,
    },
    /// A file that is no plan.
    #[error("plan: cannot be read: {0}")]
    Parse(String),
    /// A plan of another format.
    #[error(
        "plan: its format is version {got}, expected {expected}; make the plan again with this program"
    )]
    Version {
        /// What this build reads.
        expected: u32,
        /// In the file.
        got: u32,
    },
    /// A plan that is not for this model or these parameters, or that cannot run.
    #[error(
        "plan: {what}: expected {expected}, got {got}; make the plan again for this model and these parameters"
    )]
    Unfit {
        /// The part of the plan.
        what: String,
        /// What it should say.
        expected: String,
        /// What it says.
        got: String,
    },
    /// A plan that was changed after it was made.
    #[error("plan: hash is {got}, its content has {expected}; make the plan again")]
    Hash {
        /// Of the content.
        expected: String,
        /// In the file.
        got: String,
    },
}

/// A run that failed.
#[derive(Debug, Error)]
pub enum RunError<E: std::error::Error + 'static> {
    /// An input is missing.
    #[error("run: input {name} is missing")]
    MissingInput {
        /// Its name.
        name: String,
    },
    /// An input arrived too low.
    #[error(
        "run: {name} is at level {got}, the plan wants {expected}; encrypt or keep it at that level"
    )]
    Level {
        /// The value.
        name: String,
        /// The level in the plan.
        expected: Level,
        /// The level that it has.
        got: Level,
    },
    /// A value is to be refreshed but nobody said how large it can be.
    #[error("run: {name} is to be bootstrapped but has no bound; calibrate the graph first")]
    Bound {
        /// The value.
        name: String,
    },
    /// The plan does not fit the graph.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The machine failed.
    #[error("run: node {node} failed")]
    Machine {
        /// The node whose operations were running.
        node: String,
        /// What the machine says.
        source: E,
    },
}
