//! Where entries of queries, keys and values go when heads and channels are padded to powers of two.

use std::ops::Range;

use taciturn_graph::{Entries, Heads, Matrix};

use crate::config::ModelConfig;
use crate::error::ModelError;
use crate::folded::FoldedMatrix;

/// A row or column of zeros.
const PADDING: u32 = u32::MAX;

/// Places of a model's heads and channels in a machine's slots.
pub(super) struct Places {
    heads: Heads,
    /// True query heads per K/V head.
    queries: usize,
    /// True channels per head.
    channels: usize,
    /// Whether channels are paired with those half a head away.
    paired: bool,
}

impl Places {
    /// Heads, queries and channels padded separately; as many groups of lanes as hold the context.
    pub(super) fn new(
        config: &ModelConfig,
        slots: usize,
        context: usize,
    ) -> Result<Self, ModelError> {
        let heads = config.kv_heads.next_power_of_two();
        let queries = config.queries_per_head().next_power_of_two();
        let channels = config.head_width.next_power_of_two();
        let lanes = (slots / (heads * channels)).max(1);
        let groups = context.div_ceil(lanes).next_power_of_two();
        Ok(Self {
            heads: Heads::grouped(slots, heads, queries, channels, groups)?,
            queries: config.queries_per_head(),
            channels: config.head_width,
            paired: config.rope.is_some(),
        })
    }

    pub(super) fn heads(&self) -> Heads {
        self.heads
    }

    /// Channels of the second half begin at the middle of the padded ones where a rotation by half of all has to pair them.
    fn channel(&self, channel: usize) -> usize {
        match self.paired && channel >= self.channels / 2 {
            true => self.heads.channels() / 2 + channel - self.channels / 2,
            false => channel,
        }
    }

    /// K/V head, its query and the channel's place of an entry of all queries, head after head.
    fn query_parts(&self, entry: usize) -> (usize, usize, usize) {
        let (head, channel) = (entry / self.channels, entry % self.channels);
        let (head, query) = (head / self.queries, head % self.queries);
        (head, query, self.channel(channel))
    }

    /// Place of an entry of all queries.
    pub(super) fn query(&self, entry: usize) -> usize {
        let (head, query, channel) = self.query_parts(entry);
        self.heads.query_column(head, query, channel)
    }

    /// Place of an entry of what attention gives.
    pub(super) fn output(&self, entry: usize) -> usize {
        let (head, query, channel) = self.query_parts(entry);
        self.heads.output_row(head, query, channel)
    }

    /// Place of an entry of a key or value.
    pub(super) fn key(&self, entry: usize) -> usize {
        let (head, channel) = (entry / self.channels, entry % self.channels);
        self.heads.column(head, self.channel(channel))
    }

    /// A key or value with its entries at their places.
    pub(super) fn spread_keys(&self, key: &[f64]) -> Vec<f64> {
        spread(key, self.heads.width(), |entry| self.key(entry))
    }

    /// One vector per query of a K/V head, padded ones included, of the keys' shape.
    pub(super) fn spread_shifts(&self, shift: &[f64]) -> Vec<Vec<f64>> {
        let mut shifts = vec![vec![0.0; self.heads.width()]; self.heads.queries()];
        for (entry, &value) in shift.iter().enumerate() {
            let (head, query, channel) = self.query_parts(entry);
            shifts[query][self.heads.column(head, channel)] = value;
        }
        shifts
    }
}

/// A matrix with rows and columns moved and zeros between and after them.
pub(super) fn padded(
    name: &str,
    weight: &FoldedMatrix,
    (rows, columns): (usize, usize),
    row: impl Fn(usize) -> usize,
    column: impl Fn(usize) -> usize,
) -> Matrix {
    let entries = Padded {
        weight: weight.clone(),
        rows: inverse(weight.rows(), rows, row),
        columns: inverse(weight.cols(), columns, column),
    };
    Matrix::new(name, rows, columns, entries)
}

/// A matrix seen through the places of its rows and columns.
struct Padded {
    weight: FoldedMatrix,
    /// For every padded row which true one it is.
    rows: Vec<u32>,
    columns: Vec<u32>,
}

impl Entries for Padded {
    fn at(&self, row: usize, column: usize) -> f64 {
        match (self.rows[row], self.columns[column]) {
            (PADDING, _) | (_, PADDING) => 0.0,
            (row, column) => self.weight.at(row as usize, column as usize),
        }
    }

    fn read(&self, rows: Range<usize>, columns: Range<usize>, out: &mut [f64]) {
        let (rows, columns) = (&self.rows[rows], &self.columns[columns]);
        self.weight.gather(rows, columns, PADDING, out);
    }

    fn release(&self) {
        self.weight.release();
    }

    fn apply(&self, x: &[f64]) -> Option<Vec<f64>> {
        let mut true_x = vec![0.0; self.weight.rows()];
        for (&x, &row) in x.iter().zip(&self.rows) {
            if row != PADDING {
                true_x[row as usize] = x;
            }
        }
        let y = self.weight.affine(&true_x, &vec![0.0; self.weight.cols()]);
        let columns = self.columns.iter();
        let place = |&column: &u32| match column {
            PADDING => 0.0,
            column => y[column as usize],
        };
        Some(columns.map(place).collect())
    }
}

/// For each of `padded` places which of `count` entries goes there.
fn inverse(count: usize, padded: usize, to: impl Fn(usize) -> usize) -> Vec<u32> {
    let mut from = vec![PADDING; padded];
    (0..count).for_each(|i| from[to(i)] = i as u32);
    from
}

/// A vector with entries moved and zeros between and after them.
pub(super) fn spread(values: &[f64], length: usize, to: impl Fn(usize) -> usize) -> Vec<f64> {
    let mut out = vec![0.0; length];
    for (i, &value) in values.iter().enumerate() {
        out[to(i)] = value;
    }
    out
}
