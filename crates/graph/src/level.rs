//! Levels: how many rescalings a value can still take.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Number of rescalings a value can still take; at level 0 only the base limb is left.
///
/// A value at a level always has that level's canonical scale, so values at equal levels can be added.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Level(pub u32);

impl Level {
    /// The level after `depth` rescalings, `None` where there are not that many left.
    pub fn after(self, depth: u32) -> Option<Level> {
        self.0.checked_sub(depth).map(Level)
    }

    /// The level from which `depth` rescalings lead to this one.
    pub fn before(self, depth: u32) -> Level {
        Level(self.0 + depth)
    }

    /// As an index into a table by level.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
