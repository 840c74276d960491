//! Layouts: where a value's logical entries sit in its slots.

use crate::{Plain, PlainId, Vector};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What the slots between the valid lanes of a spaced value hold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Rest {
    /// Other sums; must not be used, and must be thought of before a polynomial or a bootstrap.
    Garbage,
    /// This value.
    Constant(f64),
}

/// The slots of every run that hold the run's entry.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Lanes {
    /// Every slot of the run.
    All,
    /// One lane of the run.
    One {
        /// Position within the run.
        lane: usize,
        /// What the other lanes hold.
        rest: Rest,
    },
}

/// Entry `i` of `values` sits in slots `i * run ..` of a run of `run` slots; the whole repeats with period `values * run`.
///
/// `values` and `run` are powers of two. Periodic(d) is `d` values in runs of one slot, repeated(d) is `d` values in runs of
/// `slots / d`, spaced(d) is repeated(d) with a single valid lane. Scores of attention are periodic with period G*H*t, a
/// softmax denominator is spaced with period H*t, a cache is periodic with all slots distinct.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// Number of logical entries.
    pub values: usize,
    /// Slots per entry.
    pub run: usize,
    /// Which of these hold it.
    pub lanes: Lanes,
}

impl Layout {
    /// Slot `q` holds entry `q mod values`.
    pub fn periodic(values: usize) -> Self {
        Layout {
            values,
            run: 1,
            lanes: Lanes::All,
        }
    }

    /// Every entry fills its run.
    pub fn repeated(values: usize, run: usize) -> Self {
        Layout {
            values,
            run,
            lanes: Lanes::All,
        }
    }

    /// Every entry sits at one lane of its run; periodic where a run has one slot only.
    pub fn spaced(values: usize, run: usize, lane: usize, rest: Rest) -> Self {
        if run == 1 {
            return Layout::periodic(values);
        }
        Layout {
            values,
            run,
            lanes: Lanes::One { lane, rest },
        }
    }

    /// Distinct slots: the value repeats with this period, and can be bootstrapped at this size.
    pub fn period(&self) -> usize {
        self.values * self.run
    }

    /// Whether every slot holds its logical entry.
    pub fn is_full(&self) -> bool {
        self.lanes == Lanes::All
    }

    /// What the slots outside the logical entries hold; `None` where there are no such slots.
    pub fn rest(&self) -> Option<Rest> {
        match self.lanes {
            Lanes::All => None,
            Lanes::One { rest, .. } => Some(rest),
        }
    }

    /// The same layout with another rest (unchanged where there is none).
    pub fn with_rest(self, rest: Rest) -> Self {
        match self.lanes {
            Lanes::All => self,
            Lanes::One { lane, .. } => Layout {
                lanes: Lanes::One { lane, rest },
                ..self
            },
        }
    }

    /// Whether logical entries are valid in exactly the same slots.
    pub fn same_slots(&self, other: &Layout) -> bool {
        self.values == other.values && self.run == other.run && self.lane() == other.lane()
    }

    /// The valid lane, `None` where all are.
    pub fn lane(&self) -> Option<usize> {
        match self.lanes {
            Lanes::All => None,
            Lanes::One { lane, .. } => Some(lane),
        }
    }

    /// Writes one period of slots: `entry(i)` in the slots of entry `i`, `elsewhere` in the others.
    pub fn fill(&self, out: &mut [f64], elsewhere: f64, entry: impl Fn(usize) -> f64) {
        for (i, run) in out.chunks_mut(self.run).enumerate() {
            match self.lanes {
                Lanes::All => run.fill(entry(i)),
                Lanes::One { lane, .. } => {
                    run.fill(elsewhere);
                    run[lane] = entry(i);
                }
            }
        }
    }

    /// The slots of a logical vector, for all `slots` slots; `elsewhere` outside its entries.
    pub fn expand(&self, entries: &[f64], elsewhere: f64, slots: usize) -> Vec<f64> {
        let mut period = vec![0.0; self.period()];
        self.fill(&mut period, elsewhere, |i| entries[i]);
        period.iter().copied().cycle().take(slots).collect()
    }

    /// The logical entries found in slots.
    pub fn compact(&self, slots: &[f64]) -> Vec<f64> {
        let lane = self.lane().unwrap_or(0);
        (0..self.values)
            .map(|i| slots[i * self.run + lane])
            .collect()
    }

    /// The plaintext that holds `vector` in the slots of the logical entries and `elsewhere` in the others.
    pub fn plain(&self, vector: &Vector, elsewhere: f64) -> Plain {
        let layout = match vector {
            // A uniform vector repeats with every run.
            Vector::Uniform(_) => Layout { values: 1, ..*self },
            Vector::Dense(_) => *self,
        };
        if layout.is_full() && layout.values == 1 {
            return Plain::constant(vector.at(0));
        }
        let id = PlainId::of((
            "layout",
            layout.values,
            layout.run,
            layout.lane(),
            vector,
            elsewhere.to_bits(),
        ));
        let vector = vector.clone();
        Plain::new(id, layout.period(), move |out| {
            layout.fill(out, elsewhere, |i| vector.at(i))
        })
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lanes {
            Lanes::All if self.run == 1 => write!(f, "periodic({})", self.values),
            Lanes::All => write!(f, "repeated({} x {})", self.values, self.run),
            Lanes::One { lane, rest } => {
                write!(f, "spaced({} x {} at lane {lane}, ", self.values, self.run)?;
                match rest {
                    Rest::Garbage => write!(f, "garbage elsewhere)"),
                    Rest::Constant(value) => write!(f, "{value} elsewhere)"),
                }
            }
        }
    }
}
