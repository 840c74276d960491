//! The geometry of attention in slots.

use crate::{GraphError, Layout, Rest};

/// Slot `(c * heads + h) * lanes + j` holds channel `c` of head `h` at lane `j`; token `= group * lanes + j`.
///
/// Heads and channels are padded to powers of two separately, so `lanes = slots / (heads * channels)` may differ from the
/// residual stream's `slots / width`. Up to `groups * lanes` tokens are kept; keys have one ciphertext per group in use,
/// values always `groups` ciphertexts, number `s` with the token of group `(c + s) mod groups` at channel `c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Heads {
    heads: usize,
    channels: usize,
    lanes: usize,
    groups: usize,
}

impl Heads {
    /// Checks that all four numbers are powers of two, that heads and channels fit the slots and `groups <= channels`
    /// (beyond that a second score ciphertext would be needed).
    pub fn new(
        slots: usize,
        heads: usize,
        channels: usize,
        groups: usize,
    ) -> Result<Self, GraphError> {
        let powers = [slots, heads, channels, groups]
            .into_iter()
            .all(usize::is_power_of_two);
        let fits = heads
            .checked_mul(channels)
            .is_some_and(|width| width <= slots);
        if !powers || !fits || groups > channels {
            return Err(GraphError::Heads {
                slots,
                heads,
                channels,
                groups,
            });
        }
        Ok(Heads {
            heads,
            channels,
            lanes: slots / (heads * channels),
            groups,
        })
    }

    /// Heads, padded (H).
    pub fn heads(&self) -> usize {
        self.heads
    }

    /// Channels per head, padded (C).
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Lanes: tokens per group (t).
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// Groups of tokens (G).
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Entries of q, k or v: `heads * channels`.
    pub fn width(&self) -> usize {
        self.heads * self.channels
    }

    /// Tokens that fit: `groups * lanes`.
    pub fn capacity(&self) -> usize {
        self.groups * self.lanes
    }

    /// Where the product's column of old index `head * channels + channel` goes.
    pub fn column(&self, head: usize, channel: usize) -> usize {
        channel * self.heads + head
    }

    /// Entry of the scores of a head and token: their layout is periodic with G*H*t entries.
    pub fn score(&self, head: usize, token: usize) -> usize {
        let (group, lane) = (token / self.lanes, token % self.lanes);
        (group * self.heads + head) * self.lanes + lane
    }

    /// Slots from one channel to the next: `heads * lanes`, also from one group of scores to the next.
    pub fn channel_stride(&self) -> usize {
        self.heads * self.lanes
    }

    /// Layout of q, k or v at a lane.
    pub fn spaced(&self, lane: usize, rest: Rest) -> Layout {
        Layout::spaced(self.width(), self.lanes, lane, rest)
    }

    /// Layout of the query as scores take it.
    pub fn repeated(&self) -> Layout {
        Layout::repeated(self.width(), self.lanes)
    }

    /// Layout of one ciphertext of a cache.
    pub fn cache(&self) -> Layout {
        Layout::periodic(self.width() * self.lanes)
    }

    /// Layout of scores and their exponentials.
    pub fn scores(&self) -> Layout {
        Layout::periodic(self.groups * self.channel_stride())
    }

    /// Layout of one value per head at lane 0.
    pub fn per_head(&self, rest: Rest) -> Layout {
        Layout::spaced(self.heads, self.lanes, 0, rest)
    }
}
