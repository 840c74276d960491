//! Plaintext operands: slot vectors that are computed only when a machine encodes them.

use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Names the content of a [`Plain`]: equal ids mean equal slots, so an encoding may be kept and shared.
///
/// 128 bits of a hash that is stable within one build, not across builds: do not store it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlainId(u128);

impl PlainId {
    /// The id of whatever `content` describes completely.
    pub fn of(content: impl Hash) -> Self {
        let half = |domain: u8| {
            let mut hasher = DefaultHasher::new();
            domain.hash(&mut hasher);
            content.hash(&mut hasher);
            u128::from(hasher.finish())
        };
        PlainId(half(0) << 64 | half(1))
    }
}

type Fill = Arc<dyn Fn(&mut [f64]) + Send + Sync>;

/// A real slot vector of a given period, computed on demand.
#[derive(Clone)]
pub struct Plain {
    id: PlainId,
    period: usize,
    fill: Fill,
}

impl Plain {
    /// A vector whose slot `q` is entry `q mod period` of what `fill` writes into a slice of `period` zeros.
    pub fn new(
        id: PlainId,
        period: usize,
        fill: impl Fn(&mut [f64]) + Send + Sync + 'static,
    ) -> Self {
        Plain {
            id,
            period,
            fill: Arc::new(fill),
        }
    }

    /// The same value in every slot.
    pub fn constant(value: f64) -> Self {
        Plain::new(PlainId::of(("constant", value.to_bits())), 1, move |out| {
            out[0] = value
        })
    }

    /// Names the content.
    pub fn id(&self) -> PlainId {
        self.id
    }

    /// The period in slots, a power of two; small for sparse vectors.
    pub fn period(&self) -> usize {
        self.period
    }

    /// One period of slots.
    pub fn values(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.period];
        (self.fill)(&mut out);
        out
    }

    /// The vector rotated to the left by `steps` slots (to the right where negative).
    pub fn rotated(&self, steps: i64) -> Plain {
        let left = steps.rem_euclid(self.period as i64) as usize;
        if left == 0 {
            return self.clone();
        }
        let fill = self.fill.clone();
        Plain::new(
            PlainId::of(("rotated", self.id, left)),
            self.period,
            move |out| {
                fill(out);
                out.rotate_left(left);
            },
        )
    }
}

impl fmt::Debug for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plain")
            .field("id", &self.id)
            .field("period", &self.period)
            .finish()
    }
}
