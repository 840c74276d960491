//! Circuits on ciphertexts.

mod arithmetic;
mod bootstrap_full;
mod bootstrap_small;
mod fixture;
