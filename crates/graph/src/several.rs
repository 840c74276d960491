//! Several tokens side by side: slot `q * T + j` holds what slot `q` of a smaller machine would hold for token `j`.
//!
//! A graph of `T` tokens ([`Graph::side_by_side`](crate::Graph::side_by_side)) is written for a machine of `slots / T` slots. Every operation that
//! treats tokens alike is lowered as for one token, with rotations `T` times as long and every plaintext entry `T` times in a row
//! ([`SideBySide`]). What mixes tokens or treats them differently is here: vectors with an entry for each token, and [`SeveralOp`].

mod logical;
mod lower;
mod machine;
mod op;
mod pairs;

pub(crate) use logical::evaluate;
pub(crate) use lower::lower_several;
pub use machine::SideBySide;
pub use op::{PairScores, PairValues, SeveralOp};

use crate::Vector;

/// The entry of a vector for entry `i` of token `j`: vectors have one entry per logical entry, or one per logical entry and token.
pub(crate) fn entry(vector: &Vector, values: usize, tokens: usize, i: usize, j: usize) -> f64 {
    match vector.entries() {
        1 => vector.at(0),
        n if n == values => vector.at(i),
        _ => vector.at(i * tokens + j),
    }
}

/// Whether a vector can meet a value of `values` logical entries for each of `tokens` tokens.
pub(crate) fn fits(vector: &Vector, values: usize, tokens: usize) -> bool {
    vector.fits(values) || vector.fits(values * tokens)
}
