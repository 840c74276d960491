//! Products of an encrypted vector with a public square matrix in the layouts of the literature, for comparison.
//!
//! A layout is written once for every [`Machine`]. Each is as its paper states it, in its best form that the statement allows; the
//! models use [`ProductLayout::PeriodicToSpaced`] and [`ProductLayout::SpacedToPeriodic`], through [`crate::lower()`].

mod direct;
mod inner;
mod interleaved;
mod nexus;
mod packed_row;
mod packing;
mod replicated;
mod zero_padded;

use crate::lower::{doubling, fold, product_periodic, product_spaced};
use crate::{Machine, Matrix};

pub use nexus::{NEXUS_STEPS, nexus_counts};
pub use packing::Packing;

/// Where the entries of `x` and `x W` sit, and the operations that lead from one to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProductLayout {
    /// Generalized diagonals on one copy of the vector.
    Direct,
    /// Generalized diagonals, a part of them on each copy of the vector.
    Replicated,
    /// Entries a run of slots apart, copies shifted into the run.
    Interleaved,
    /// Generalized diagonals wrapped around a vector that is padded with zeros.
    ZeroPadded,
    /// As many rows as fit into a plaintext, each summed on its own.
    PackedRow,
    /// The first of two that alternate: no preparation.
    PeriodicToSpaced,
    /// The second of two that alternate: no mask afterwards.
    SpacedToPeriodic,
}

impl ProductLayout {
    /// All, in the order of tables.
    pub const ALL: [ProductLayout; 7] = [
        ProductLayout::Direct,
        ProductLayout::Replicated,
        ProductLayout::Interleaved,
        ProductLayout::ZeroPadded,
        ProductLayout::PackedRow,
        ProductLayout::PeriodicToSpaced,
        ProductLayout::SpacedToPeriodic,
    ];

    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            ProductLayout::Direct => "direct",
            ProductLayout::Replicated => "replicated",
            ProductLayout::Interleaved => "interleaved",
            ProductLayout::ZeroPadded => "zero-padded",
            ProductLayout::PackedRow => "packed-row",
            ProductLayout::PeriodicToSpaced => "periodic-to-spaced",
            ProductLayout::SpacedToPeriodic => "spaced-to-periodic",
        }
    }

    /// Where it comes from.
    pub fn source(self) -> &'static str {
        match self {
            ProductLayout::Direct | ProductLayout::Replicated | ProductLayout::Interleaved => {
                "Cachemir 4.1"
            }
            ProductLayout::ZeroPadded => "BOLT in Cachemir, Table 2",
            ProductLayout::PackedRow => "Gazelle in Orion's kernels, III-A",
            ProductLayout::PeriodicToSpaced | ProductLayout::SpacedToPeriodic => "this repository",
        }
    }

    /// Levels from input to output.
    pub fn depth(self) -> u32 {
        match self {
            ProductLayout::Direct | ProductLayout::PackedRow => 2,
            ProductLayout::Replicated => 3,
            _ => 1,
        }
    }

    /// Whether a product of this width, a power of two, has room in `slots` slots.
    pub fn fits(self, width: usize, slots: usize) -> bool {
        let room = match self {
            ProductLayout::ZeroPadded => slots / 2,
            _ => slots,
        };
        width.is_power_of_two() && (2..=room).contains(&width)
    }

    /// How the input is packed. Slots without an entry are zero.
    pub fn input(self) -> Packing {
        match self {
            ProductLayout::Direct | ProductLayout::ZeroPadded | ProductLayout::PackedRow => {
                Packing::Leading
            }
            ProductLayout::Replicated | ProductLayout::PeriodicToSpaced => Packing::Periodic,
            ProductLayout::Interleaved | ProductLayout::SpacedToPeriodic => Packing::Spaced,
        }
    }

    /// How the output is packed. Slots without an entry hold garbage in the layouts that leave a mask to the next operation:
    /// interleaved, zero-padded, periodic to spaced.
    pub fn output(self) -> Packing {
        match self {
            ProductLayout::Direct | ProductLayout::ZeroPadded => Packing::Leading,
            ProductLayout::Replicated | ProductLayout::SpacedToPeriodic => Packing::Periodic,
            ProductLayout::Interleaved | ProductLayout::PeriodicToSpaced => Packing::Spaced,
            ProductLayout::PackedRow => Packing::Blocks,
        }
    }

    /// `x W` for a square matrix that [`fits`](Self::fits), [`depth`](Self::depth) levels below `x`.
    pub fn apply<M: Machine>(
        self,
        machine: &mut M,
        x: &M::Value,
        matrix: &Matrix,
    ) -> Result<M::Value, M::Error> {
        match self {
            ProductLayout::Direct => direct::apply(machine, x, matrix),
            ProductLayout::Replicated => replicated::apply(machine, x, matrix),
            ProductLayout::Interleaved => interleaved::apply(machine, x, matrix),
            ProductLayout::ZeroPadded => zero_padded::apply(machine, x, matrix),
            ProductLayout::PackedRow => packed_row::apply(machine, x, matrix),
            ProductLayout::PeriodicToSpaced => product_spaced(machine, x, matrix, 0),
            ProductLayout::SpacedToPeriodic => {
                let run = machine.slots() / matrix.rows();
                let repeated = fold(machine, x.clone(), doubling(1, run).map(|step| -step))?;
                product_periodic(machine, &repeated, matrix)
            }
        }
    }
}
