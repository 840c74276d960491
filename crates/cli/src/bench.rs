//! `taciturn bench`: what this machine does, measured.

pub mod approximation;
pub mod bootstrap;
pub mod device_kernels;
pub mod kernels;
pub mod primitives;
pub mod product;
pub mod roofline;
pub mod timing;
