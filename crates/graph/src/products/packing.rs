//! Slots of the entries of a vector.

/// Where entry `i` of a vector of `width` entries sits; `width` divides the number of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Slot `i`.
    Leading,
    /// Every slot `q` with `q mod width = i`.
    Periodic,
    /// The first slot of run `i`, of `slots / width` slots each.
    Spaced,
    /// Spread over the `slots / width` blocks of `width` slots: block `i / s`, slot `i mod s`, for `s` entries in each block.
    Blocks,
}

impl Packing {
    /// A slot of entry `i`.
    pub fn slot(self, i: usize, width: usize, slots: usize) -> usize {
        match self {
            Packing::Leading | Packing::Periodic => i,
            Packing::Spaced => i * (slots / width),
            Packing::Blocks => {
                let each = (width * width / slots).max(1);
                i / each * width + i % each
            }
        }
    }

    /// All slots for these entries, zero where there is none.
    pub fn expand(self, entries: &[f64], slots: usize) -> Vec<f64> {
        let width = entries.len();
        if self == Packing::Periodic {
            return entries.iter().copied().cycle().take(slots).collect();
        }
        let mut out = vec![0.0; slots];
        for (i, entry) in entries.iter().enumerate() {
            out[self.slot(i, width, slots)] = *entry;
        }
        out
    }

    /// The entries in these slots.
    pub fn compact(self, slots: &[f64], width: usize) -> Vec<f64> {
        (0..width)
            .map(|i| slots[self.slot(i, width, slots.len())])
            .collect()
    }
}
