//! `taciturn bench`: what this machine does, measured.

pub mod bootstrap;
pub mod keys;
pub mod primitives;
pub mod timing;
