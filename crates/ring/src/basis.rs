//! Sets of limbs.

use std::fmt;
use std::ops::Range;

/// A set of limbs, as a bit mask over the indices of the ring's moduli (at most 64).
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Basis(u64);

impl Basis {
    /// No limbs.
    pub const EMPTY: Self = Self(0);

    /// The set `{i}`. Contract: `i < 64`.
    pub const fn single(i: usize) -> Self {
        assert!(i < 64, "a basis holds limbs 0 to 63");
        Self(1 << i)
    }

    /// The limbs of an index range. Contract: its end is at most 64.
    pub const fn range(range: Range<usize>) -> Self {
        assert!(range.end <= 64, "a basis holds limbs 0 to 63");
        if range.start >= range.end {
            return Self::EMPTY;
        }
        Self((u64::MAX >> (64 - (range.end - range.start))) << range.start)
    }

    /// The set whose members are the set bits of `mask`.
    pub const fn from_mask(mask: u64) -> Self {
        Self(mask)
    }

    /// Bit `i` is set when limb `i` is a member.
    pub const fn mask(self) -> u64 {
        self.0
    }

    /// Whether limb `i` is a member.
    #[inline]
    pub const fn contains(self, i: usize) -> bool {
        i < 64 && self.0 >> i & 1 == 1
    }

    /// This set and limb `i`.
    pub const fn with(self, i: usize) -> Self {
        self.union(Self::single(i))
    }

    /// This set but limb `i`.
    pub const fn without(self, i: usize) -> Self {
        self.difference(Self::single(i))
    }

    /// Limbs in either set.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Limbs in both sets.
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Limbs of this set that are not in `other`.
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether every limb is also in `of`.
    pub const fn is_subset(self, of: Self) -> bool {
        self.0 & !of.0 == 0
    }

    /// The number of limbs.
    #[inline]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there are no limbs.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The limbs in ascending order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = usize> + Clone {
        (0..64).filter(move |&i| self.contains(i))
    }

    /// The largest limb index.
    pub const fn highest(self) -> Option<usize> {
        if self.0 == 0 {
            None
        } else {
            Some(63 - self.0.leading_zeros() as usize)
        }
    }

    /// The smallest limb index.
    pub const fn lowest(self) -> Option<usize> {
        if self.0 == 0 {
            None
        } else {
            Some(self.0.trailing_zeros() as usize)
        }
    }

    /// The position of limb `i` among the members: the number of members below it.
    #[inline]
    pub const fn rank(self, i: usize) -> usize {
        if i >= 64 {
            self.len()
        } else {
            (self.0 & !(u64::MAX << i)).count_ones() as usize
        }
    }
}

impl FromIterator<usize> for Basis {
    fn from_iter<T: IntoIterator<Item = usize>>(limbs: T) -> Self {
        limbs.into_iter().fold(Self::EMPTY, Self::with)
    }
}

/// The indices as ranges, both ends included: `0-4, 17-24`.
impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        let mut separator = "";
        for first in self.iter() {
            if first > 0 && self.contains(first - 1) {
                continue;
            }
            let last = (first..64).take_while(|&i| self.contains(i)).last();
            match last {
                Some(last) if last > first => write!(f, "{separator}{first}-{last}")?,
                _ => write!(f, "{separator}{first}")?,
            }
            separator = ", ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_algebra() {
        let a: Basis = [1, 5, 63].into_iter().collect();
        let b = Basis::range(0..6);
        assert_eq!(a.iter().collect::<Vec<_>>(), [1, 5, 63]);
        assert_eq!((a.len(), a.highest(), a.lowest()), (3, Some(63), Some(1)));
        assert_eq!((a.rank(1), a.rank(5), a.rank(63), a.rank(6)), (0, 1, 2, 2));
        assert_eq!(a.intersection(b), Basis::single(1).with(5));
        assert_eq!(a.difference(b), Basis::single(63));
        assert_eq!(a.union(b).len(), 7);
        assert!(a.without(63).is_subset(b) && !a.is_subset(b));
        assert_eq!(Basis::range(0..64).len(), 64);
        assert_eq!(
            (Basis::range(3..3), Basis::EMPTY.highest()),
            (Basis::EMPTY, None)
        );
        assert!(!a.contains(64) && a.contains(63));
    }

    #[test]
    fn shown_as_ranges() {
        let limbs = Basis::range(0..5).union(Basis::range(17..25)).with(63);
        assert_eq!(limbs.to_string(), "0-4, 17-24, 63");
        assert_eq!(Basis::single(0).to_string(), "0");
        assert_eq!(Basis::range(0..64).to_string(), "0-63");
        assert_eq!(Basis::EMPTY.to_string(), "none");
    }
}
