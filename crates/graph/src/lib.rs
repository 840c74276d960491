//! A model's step as a graph of semantic operations, with its interpreters and its planner.
//!
//! A [`Graph`] says what a step computes on values with a [`Layout`]. Its operations ([`Op`]) have a logical meaning on
//! compact vectors, exact or with polynomials, and a lowering to what a slot [`Machine`] offers.
//!
//! A [`Plan`] says at which level every value sits and where it is refreshed; [`plan`] makes one from a [`CostTable`] with a
//! [`Placement`]. Five interpreters share graph and plan: [`Logical`] clear and simulated, and [`run`] on a
//! [`SlotSimulator`], a [`Counter`] or a machine of ciphertexts.
//!
//! ```
//! use std::collections::HashMap;
//! use taciturn_graph::{CostTable, Graph, Layout, Level, Logical, Matrix, Optimal, plan};
//!
//! let mut graph = Graph::new(64)?;
//! let x = graph.input("x", Layout::periodic(4))?;
//! let double = Matrix::computed("double", 4, 4, |row, column| if row == column { 2.0 } else { 0.0 });
//! let y = graph.product_spaced("layer0.y", x, &double, 0)?;
//! graph.output("y", y);
//!
//! let plan = plan(&graph, &CostTable::reference(64, Level(13)), &Optimal::default())?;
//! assert_eq!(plan.node("x")?.level(), Level(1));
//!
//! let inputs = HashMap::from([("x".to_owned(), vec![1.0, 2.0, 3.0, 4.0])]);
//! let outputs = Logical::clear().run(&graph, None, &inputs)?;
//! assert_eq!(outputs["y"], [2.0, 4.0, 6.0, 8.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Builds on `taciturn-approx` for polynomials and on `taciturn-circuits` for the machine of ciphertexts. Nothing here knows
//! a model's file format or makes keys.

mod approximations;
mod attention;
mod builder;
mod check;
mod choice;
mod cost;
mod counter;
mod cpu;
mod diagonals;
mod error;
mod execute;
mod feed_forward;
mod folded;
mod function;
mod graph;
mod heads;
mod infer;
mod keys;
mod layout;
mod level;
mod logical;
mod lower;
mod machine;
mod noise;
mod norm;
mod op;
mod placement;
mod plain;
mod plan;
mod planning;
mod problem;
mod products;
mod recorder;
mod semantics;
mod several;
mod shape;
mod simulate;
mod sites;
mod weights;

pub use approximations::approximate;
pub use attention::{AttentionSpec, PassSpec, RopeSpec};
pub use choice::{Choice, Levels, Refreshed};
pub use cost::{BootstrapCost, CostTable, LEVEL_COSTS, LevelCost};
pub use counter::{Counter, Counts};
pub use cpu::{CpuMachine, ENCODED_AT_ONCE, KEPT_MASKS, bootstrap_input_levels};
pub use diagonals::Diagonals;
pub use error::{GraphError, PlanError, RunError};
pub use execute::{Named, Step, run, run_in_step};
pub use feed_forward::FeedForwardSpec;
pub use function::{Function, FunctionKind, NonLinear};
pub use graph::{Graph, Node, NodeId, module_of};
pub use heads::Heads;
pub use keys::{KeyPlanner, key_request};
pub use layout::{Lanes, Layout, Rest};
pub use level::Level;
pub use logical::{Logical, LogicalError};
pub use lower::{lower, weight_diagonals};
pub use machine::{Machine, is_unit_interval, polynomial_depth};
pub use noise::NoiseLevels;
pub use norm::NormSpec;
pub use op::{Op, Source};
pub use placement::{Cachemir, Optimal, Orion, Placement, WhenNothingIsLeft, plan, plan_beside};
pub use plain::{Plain, PlainId};
pub use plan::{BootstrapPlan, ModulePlan, NodePlan, PLAN_VERSION, Plan};
pub use problem::Problem;
pub use products::{NEXUS_STEPS, Packing, ProductLayout, nexus_counts};
pub use semantics::Fidelity;
pub use several::{PairScores, PairValues, SeveralOp, SideBySide};
pub use simulate::{SimulationError, SlotSimulator, Slots};
pub use sites::{EDGE_SLACK, LeftInterval, Site, Sites, refresh_site};
pub use weights::{Entries, Matrix, Vector};
