//! A model's step as a graph of semantic operations, with its interpreters and its planner.
//!
//! A [`Graph`] says what a step computes on values with a [`Layout`]. Its operations ([`Op`]) have a logical meaning on
//! compact vectors, exact or with polynomials, and a lowering to what a slot [`Machine`] offers.
//!
//! Builds on `taciturn-approx` for polynomials. Nothing here knows a model's file format or makes keys.

mod error;
mod function;
mod graph;
mod heads;
mod infer;
mod layout;
mod level;
mod machine;
mod op;
mod plain;
mod weights;

pub use error::{GraphError, PlanError, RunError};
pub use function::{Function, FunctionKind, NonLinear};
pub use graph::{Graph, Node, NodeId};
pub use heads::Heads;
pub use layout::{Lanes, Layout, Rest};
pub use level::Level;
pub use machine::{Machine, is_unit_interval, polynomial_depth};
pub use op::{Op, Source};
pub use plain::{Diagonals, Plain, PlainId};
pub use weights::{Matrix, Vector};
