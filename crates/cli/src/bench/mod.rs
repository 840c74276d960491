//! `taciturn bench`: what this machine does, measured.

pub mod bootstrap;
mod keys;
pub mod timing;
