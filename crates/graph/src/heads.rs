//! The geometry of attention in slots.

use crate::{GraphError, Layout, Rest};

/// Slot `(c * heads + h) * lanes + j` holds channel `c` of K/V head `h` at lane `j`; token `= group * lanes + j`.
///
/// With grouped-query attention `queries` query heads share a K/V head; caches hold K/V heads only. A query arrives with its entries in
/// runs of `lanes / queries` slots, those of one K/V head side by side. Each of the `queries` meets the keys on its own, and the
/// `groups * queries` parts of the scores share one ciphertext: part `g * queries + r` sits at the channels congruent to it.
///
/// Heads and channels are padded to powers of two separately, so `lanes = slots / (heads * channels)` may differ from the
/// residual stream's `slots / width`. Up to `groups * lanes` tokens are kept; keys have one ciphertext per group in use, values
/// always `groups` ciphertexts, number `s` with the token of group `(c / queries + s) mod groups` at channel `c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Heads {
    heads: usize,
    queries: usize,
    channels: usize,
    lanes: usize,
    groups: usize,
}

impl Heads {
    /// [`grouped`](Self::grouped) where every query head has keys and values of its own.
    pub fn new(
        slots: usize,
        heads: usize,
        channels: usize,
        groups: usize,
    ) -> Result<Self, GraphError> {
        Heads::grouped(slots, heads, 1, channels, groups)
    }

    /// `queries` query heads for each of `heads` K/V heads. Checks that all numbers are powers of two, that query heads and channels fit the
    /// slots and `groups * queries <= channels` (beyond that a second score ciphertext would be needed).
    pub fn grouped(
        slots: usize,
        heads: usize,
        queries: usize,
        channels: usize,
        groups: usize,
    ) -> Result<Self, GraphError> {
        let powers = [slots, heads, queries, channels, groups]
            .into_iter()
            .all(usize::is_power_of_two);
        let product = |factors: [usize; 3]| {
            let [a, b, c] = factors;
            a.checked_mul(b)?.checked_mul(c)
        };
        let fits = product([heads, queries, channels]).is_some_and(|width| width <= slots);
        let parts = product([groups, queries, 1]).is_some_and(|parts| parts <= channels);
        if !powers || !fits || !parts {
            return Err(GraphError::Heads {
                slots,
                heads,
                queries,
                channels,
                groups,
            });
        }
        Ok(Heads {
            heads,
            queries,
            channels,
            lanes: slots / (heads * channels),
            groups,
        })
    }

    /// K/V heads, padded (H).
    pub fn heads(&self) -> usize {
        self.heads
    }

    /// Query heads per K/V head, padded (R).
    pub fn queries(&self) -> usize {
        self.queries
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

    /// Entries of k or v: `heads * channels`.
    pub fn width(&self) -> usize {
        self.heads * self.channels
    }

    /// Entries of all queries: `heads * queries * channels`.
    pub fn query_width(&self) -> usize {
        self.width() * self.queries
    }

    /// Parts of the scores: one per group and query.
    pub fn parts(&self) -> usize {
        self.groups * self.queries
    }

    /// Tokens that fit: `groups * lanes`.
    pub fn capacity(&self) -> usize {
        self.groups * self.lanes
    }

    /// Entry of k or v of a K/V head and channel.
    pub fn column(&self, head: usize, channel: usize) -> usize {
        channel * self.heads + head
    }

    /// Entry of the queries of a K/V head, its query and a channel.
    pub fn query_column(&self, head: usize, query: usize, channel: usize) -> usize {
        self.column(head, channel) * self.queries + query
    }

    /// Entry of what attention gives for a K/V head, its query and a channel: value `(query - channel) mod R` of the R values that
    /// attention computes holds it, so that these are interleaved in another order than the queries.
    pub fn output_row(&self, head: usize, query: usize, channel: usize) -> usize {
        let turn = (query + self.queries - channel % self.queries) % self.queries;
        self.query_column(head, turn, channel)
    }

    /// Entry of the scores of a K/V head, its query and a token: their layout is periodic with R*G*H*t entries.
    pub fn score(&self, head: usize, query: usize, token: usize) -> usize {
        let (group, lane) = (token / self.lanes, token % self.lanes);
        ((group * self.queries + query) * self.heads + head) * self.lanes + lane
    }

    /// The group whose token the value cache of a number holds at a channel.
    pub fn value_group(&self, channel: usize, number: usize) -> usize {
        (channel / self.queries + number) % self.groups
    }

    /// The number of the value cache that holds a group's token at a channel.
    pub fn value_member(&self, channel: usize, group: usize) -> usize {
        (group + self.groups - channel / self.queries % self.groups) % self.groups
    }

    /// Entry of one value per query head: that of a K/V head and its query.
    pub fn per_query(&self, head: usize, query: usize) -> usize {
        query * self.heads + head
    }

    /// Slots from one channel to the next: `heads * lanes`, also from one part of the scores to the next.
    pub fn channel_stride(&self) -> usize {
        self.heads * self.lanes
    }

    /// Layout of k or v at a lane, and of one of the queries.
    pub fn spaced(&self, lane: usize, rest: Rest) -> Layout {
        Layout::spaced(self.width(), self.lanes, lane, rest)
    }

    /// Layout of a query as scores take it.
    pub fn repeated(&self) -> Layout {
        Layout::repeated(self.width(), self.lanes)
    }

    /// Layout of one ciphertext of a cache.
    pub fn cache(&self) -> Layout {
        Layout::periodic(self.width() * self.lanes)
    }

    /// Layout of scores and their exponentials.
    pub fn scores(&self) -> Layout {
        Layout::periodic(self.parts() * self.channel_stride())
    }

    /// Layout of one value per query head at lane 0.
    pub fn per_head(&self, rest: Rest) -> Layout {
        Layout::spaced(self.heads * self.queries, self.lanes, 0, rest)
    }
}
