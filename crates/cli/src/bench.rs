//! `taciturn bench`: what this machine does, measured.

pub mod bootstrap;
pub mod kernels;
pub mod primitives;
pub mod product;
pub mod timing;
