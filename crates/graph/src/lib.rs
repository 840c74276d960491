//! A model's step as a graph of semantic operations, with its interpreters and its planner.
//!
//! A [`Graph`] says what a step computes on values with a [`Layout`]. Its operations ([`Op`]) have a logical meaning on
//! compact vectors, exact or with polynomials, and a lowering to what a slot [`Machine`] offers.
//!
//! Builds on `taciturn-approx` for polynomials. Nothing here knows a model's file format or makes keys.

mod builder;
mod cost;
mod counter;
mod cpu;
mod decoder;
mod error;
mod execute;
mod function;
mod graph;
mod heads;
mod infer;
mod layout;
mod level;
mod logical;
mod lower;
mod machine;
mod noise;
mod op;
mod placement;
mod plain;
mod plan;
mod problem;
mod semantics;
mod simulate;
mod sites;
mod weights;

pub use cost::{BootstrapCost, CostTable, LevelCost};
pub use counter::{Counter, Counts};
pub use cpu::{CpuMachine, bootstrap_input_levels, key_request};
pub use decoder::{AttentionSpec, FeedForwardSpec, NormSpec, RopeSpec};
pub use error::{GraphError, PlanError, RunError};
pub use execute::{Step, run};
pub use function::{Function, FunctionKind, NonLinear};
pub use graph::{Graph, Node, NodeId};
pub use heads::Heads;
pub use layout::{Lanes, Layout, Rest};
pub use level::Level;
pub use logical::{Logical, LogicalError};
pub use lower::lower;
pub use machine::{Machine, is_unit_interval, polynomial_depth};
pub use noise::NoiseLevels;
pub use op::{Op, Source};
pub use placement::{LocalSearch, Placement, WhenNothingIsLeft, plan};
pub use plain::{Diagonals, Plain, PlainId};
pub use plan::{BootstrapPlan, ModulePlan, NodePlan, Plan};
pub use problem::{Levels, Problem};
pub use semantics::Fidelity;
pub use simulate::{SimulationError, SlotSimulator, Slots};
pub use sites::{LeftInterval, Site, Sites};
pub use weights::{Matrix, Vector};
