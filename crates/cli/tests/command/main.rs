//! The `taciturn` command, through the real binary.

mod approximations;
mod bad_input;
mod bounds;
mod generate;
mod harness;
mod plans;
mod reports;
mod server_dependencies;
