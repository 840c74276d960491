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

type Diagonal = Arc<dyn Fn(usize, &mut [f64]) + Send + Sync>;

/// The linear map `a -> sum_m rot(a, m * stride) * P_m` for `m < count`, its plaintexts computed on demand.
#[derive(Clone)]
pub struct Diagonals {
    id: PlainId,
    stride: usize,
    count: usize,
    period: usize,
    fill: Diagonal,
}

impl Diagonals {
    /// `fill(m, out)` writes one period of `P_m` into a slice of zeros.
    pub fn new(
        id: PlainId,
        stride: usize,
        count: usize,
        period: usize,
        fill: impl Fn(usize, &mut [f64]) + Send + Sync + 'static,
    ) -> Self {
        Diagonals {
            id,
            stride,
            count,
            period,
            fill: Arc::new(fill),
        }
    }

    /// Names the content of all plaintexts together.
    pub fn id(&self) -> PlainId {
        self.id
    }

    /// All offsets are multiples of this many slots.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Number of plaintexts, a power of two.
    pub fn count(&self) -> usize {
        self.count
    }

    /// `P_m`.
    pub fn plain(&self, m: usize) -> Plain {
        let fill = self.fill.clone();
        Plain::new(
            PlainId::of(("diagonal", self.id, m)),
            self.period,
            move |out| fill(m, out),
        )
    }

    /// Number of baby steps `n1`: offset `m = g * n1 + b` with `b < n1`, and `count / n1` giant steps.
    ///
    /// The larger half goes to the baby steps because these are hoisted.
    pub fn baby_steps(&self) -> usize {
        1 << self.count.trailing_zeros().div_ceil(2)
    }

    /// Rotations of the input, `b * stride` for the baby steps `b >= 1`.
    pub fn baby_rotations(&self) -> Vec<i64> {
        (1..self.baby_steps())
            .map(|b| (b * self.stride) as i64)
            .collect()
    }

    /// Rotations of the inner sums, `g * n1 * stride` for the giant steps `g >= 1`.
    pub fn giant_rotations(&self) -> Vec<i64> {
        let n1 = self.baby_steps();
        (1..self.count / n1)
            .map(|g| (g * n1 * self.stride) as i64)
            .collect()
    }

    /// The plaintext of baby step `b` and giant step `g`: `P_m` rotated to the right by `g * n1 * stride`.
    pub fn baby_giant_plain(&self, b: usize, g: usize) -> Plain {
        let n1 = self.baby_steps();
        self.plain(g * n1 + b)
            .rotated(-((g * n1 * self.stride) as i64))
    }
}

impl fmt::Debug for Diagonals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Diagonals")
            .field("id", &self.id)
            .field("stride", &self.stride)
            .field("count", &self.count)
            .field("period", &self.period)
            .finish()
    }
}
