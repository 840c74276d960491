//! Linear maps by their diagonals, which are computed only when a machine encodes them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use taciturn_ckks::Complex64;

use crate::PlainId;

type Fill = Arc<dyn Fn(usize, &mut [Vec<f64>]) + Send + Sync>;
type Release = Arc<dyn Fn() + Send + Sync>;

/// A key switch of its own, and one that shares its decomposition, in products with a plaintext: the proportions at the levels where
/// products with weights are placed, measured on two cores of a Zen 4.
const KEY_SWITCH: usize = 7;
const HOISTED: usize = 6;

/// The linear map `a -> sum_m rot(a, m * stride) * D_m` with real diagonals `D_m`, which are computed on demand.
///
/// As it is, every diagonal is a plaintext `P_m`. [Packed](Diagonals::packed), two of them share one: with `c` plaintexts
/// `P_m = (D_m - i D_(m + c)) / 2` the map is `2 Re(sum_m rot(a + i rot(a, c * stride), m * stride) * P_m)`.
#[derive(Clone)]
pub struct Diagonals {
    id: PlainId,
    stride: usize,
    /// Of plaintexts.
    count: usize,
    period: usize,
    packed: bool,
    fill: Fill,
    release: Release,
}

impl Diagonals {
    /// `fill(m, out)` writes one period of `D_m`, for `m < count`, into a slice of zeros.
    pub fn new(
        id: PlainId,
        stride: usize,
        count: usize,
        period: usize,
        fill: impl Fn(usize, &mut [f64]) + Send + Sync + 'static,
    ) -> Self {
        Self::neighbours(id, stride, count, period, move |first, out| {
            for (m, out) in (first..).zip(out) {
                fill(m, out);
            }
        })
    }

    /// The same where neighbours are cheaper to compute together: `fill(first, out)` writes `D_first`, `D_(first + 1)`, ...
    pub fn neighbours(
        id: PlainId,
        stride: usize,
        count: usize,
        period: usize,
        fill: impl Fn(usize, &mut [Vec<f64>]) + Send + Sync + 'static,
    ) -> Self {
        Diagonals {
            id,
            stride,
            count,
            period,
            packed: false,
            fill: Arc::new(fill),
            release: Arc::new(|| ()),
        }
    }

    /// With what [`release`](Diagonals::release) calls.
    pub fn released_by(self, release: impl Fn() + Send + Sync + 'static) -> Self {
        Diagonals {
            release: Arc::new(release),
            ..self
        }
    }

    /// Called when no diagonal is needed for a while.
    pub fn release(&self) {
        (self.release)();
    }

    /// The same map with two diagonals in a plaintext. It needs at least two.
    pub fn packed(self) -> Self {
        if self.packed || self.count < 2 {
            return self;
        }
        Diagonals {
            id: PlainId::of(("packed", self.id)),
            count: self.count / 2,
            packed: true,
            ..self
        }
    }

    /// The cheaper of the two. Packing halves the plaintexts and takes a rotation before and a conjugation after them; what is cheaper
    /// follows from their number alone.
    pub fn cheapest(self) -> Self {
        let packed = self.clone().packed();
        match packed.cost() < self.cost() {
            true => packed,
            false => self,
        }
    }

    /// The same map for each of `tokens` tokens side by side: every entry of a diagonal that many times in a row, steps that many times as long.
    pub fn side_by_side(self, tokens: usize) -> Self {
        let (fill, period) = (self.fill, self.period);
        Diagonals {
            id: PlainId::of(("side by side", self.id, tokens)),
            stride: self.stride * tokens,
            period: period * tokens,
            fill: Arc::new(move |first, out| {
                let mut narrow = vec![vec![0.0; period]; out.len()];
                fill(first, &mut narrow);
                for (out, narrow) in out.iter_mut().zip(narrow) {
                    let runs = out.chunks_mut(tokens).zip(narrow);
                    runs.for_each(|(run, entry)| run.fill(entry));
                }
            }),
            ..self
        }
    }

    /// In products with a plaintext.
    fn cost(&self) -> usize {
        let around = if self.packed { 2 * KEY_SWITCH } else { 0 };
        let (babies, giants) = (self.baby_steps() - 1, self.giant_steps() - 1);
        self.count + HOISTED * babies + KEY_SWITCH * giants + around
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

    /// Bytes of all plaintexts as integer coefficients, two for a slot, where these take 64 bits; half of it where all fit 32.
    pub fn bytes(&self) -> usize {
        self.count * self.period * 2 * size_of::<i64>()
    }

    /// Where the map is packed: the rotation of the operand that becomes its imaginary part.
    pub fn turn(&self) -> Option<i64> {
        self.packed.then_some((self.count * self.stride) as i64)
    }

    /// Number of baby steps `n1`: offset `m = g * n1 + b` with `b < n1`, and `count / n1` giant steps.
    ///
    /// The larger half goes to the baby steps because these are hoisted.
    pub fn baby_steps(&self) -> usize {
        1 << self.count.trailing_zeros().div_ceil(2)
    }

    /// Number of giant steps, the one of no rotation included.
    pub fn giant_steps(&self) -> usize {
        self.count / self.baby_steps()
    }

    /// Rotations of the input, `b * stride` for the baby steps `b >= 1`.
    pub fn baby_rotations(&self) -> Vec<i64> {
        (1..self.baby_steps())
            .map(|b| (b * self.stride) as i64)
            .collect()
    }

    /// Rotations of the inner sums, `g * n1 * stride` for the giant steps `g >= 1`.
    pub fn giant_rotations(&self) -> Vec<i64> {
        (1..self.giant_steps())
            .map(|g| self.giant_rotation(g))
            .collect()
    }

    /// Rotation of the inner sum of giant step `g`.
    pub fn giant_rotation(&self, g: usize) -> i64 {
        (g * self.baby_steps() * self.stride) as i64
    }

    /// The plaintexts of some baby steps and giant step `g`: one period of each, rotated to the right by [`Self::giant_rotation`].
    pub fn baby_giant_values(&self, babies: Range<usize>, g: usize) -> Vec<Vec<Complex64>> {
        let first = g * self.baby_steps() + babies.start;
        let right = self.giant_rotation(g) as usize % self.period;
        let real = self.diagonals(first, babies.len());
        let imaginary = match self.packed {
            true => self.diagonals(first + self.count, babies.len()),
            false => Vec::new(),
        };
        let mut values = Vec::with_capacity(real.len());
        for (m, re) in real.iter().enumerate() {
            let mut value: Vec<Complex64> = match imaginary.get(m) {
                None => re.iter().map(|&re| Complex64::new(re, 0.0)).collect(),
                Some(im) => (re.iter().zip(im))
                    .map(|(&re, &im)| Complex64::new(0.5 * re, -0.5 * im))
                    .collect(),
            };
            value.rotate_right(right);
            values.push(value);
        }
        values
    }

    fn diagonals(&self, first: usize, count: usize) -> Vec<Vec<f64>> {
        let mut values = vec![vec![0.0; self.period]; count];
        (self.fill)(first, &mut values);
        values
    }
}

impl fmt::Debug for Diagonals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Diagonals")
            .field("id", &self.id)
            .field("stride", &self.stride)
            .field("count", &self.count)
            .field("period", &self.period)
            .field("packed", &self.packed)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two diagonals are not worth two key switches, hundreds are.
    #[test]
    fn packing_is_chosen_by_cost() {
        for log in 0..14 {
            let diagonals = Diagonals::new(PlainId::of("d"), 1, 1 << log, 1 << 15, |_, _| ());
            let chosen = diagonals.clone().cheapest();
            assert_eq!(chosen.turn().is_some(), log >= 3, "2^{log} diagonals");
            let (count, turn) = (chosen.count(), chosen.turn());
            if turn.is_some() {
                assert_eq!((2 * count, turn), (1 << log, Some(count as i64)));
                assert_ne!(chosen.id(), diagonals.id());
            }
        }
    }
}
