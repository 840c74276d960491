//! Cachemir's placement: Orion's graph of levels, pruned, with borders inside modules too.

use super::level_graph::{Rules, shortest_path};
use crate::{Choice, Placement, Problem};

/// Bootstraps wherever a single ciphertext crosses, at the lowest level only; levels are dropped at sources only (Cachemir, section 6:
/// simplified level graph and in-module bootstrapping).
///
/// A Newton iteration, where several values cross, is one layer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cachemir;

impl Placement for Cachemir {
    fn place(&self, problem: &Problem<'_>) -> Choice {
        shortest_path(problem, &Pruned).unwrap_or_else(|| Choice::none(problem))
    }
}

struct Pruned;

impl Rules for Pruned {
    fn border(&self, _node: usize) -> bool {
        true
    }

    /// Cachemir's zero is here the level that the bootstrap takes, as SlotsToCoeffs comes first.
    fn edge(&self, computed: u32, handed: u32, needs: Option<u32>) -> bool {
        handed == computed || (handed > computed && needs == Some(computed))
    }
}
