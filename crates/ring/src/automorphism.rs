//! The maps `X -> X^g` as index tables.

use crate::tables::{bit_reverse, exponent};

/// Words that move together: one 512-bit register.
pub(crate) const LANES: usize = 8;

/// How `X -> X^g` permutes evaluations, and which `g` it is.
///
/// In slot order, eight aligned evaluations come from eight aligned evaluations, shuffled in one of eight ways that only
/// depend on the source of the first. So the table has one entry per eight words.
pub struct Automorphism {
    galois: u64,
    /// The source index of word `8j`; the low three bits select a shuffle.
    sources: Vec<u32>,
    /// Shuffles by the low bits of the source of lane 0.
    shuffles: [[u64; LANES]; LANES],
}

impl Automorphism {
    /// Contract: `galois` is odd.
    pub(crate) fn new(log_n: u32, galois: u64) -> Self {
        assert!(
            galois % 2 == 1,
            "Galois element {galois}: X -> X^g is an automorphism for odd g only"
        );
        let mask = (2u64 << log_n) - 1;
        let galois = galois & mask;
        let sources = (0..1usize << log_n)
            .step_by(LANES)
            .map(|k| {
                let source = galois.wrapping_mul(exponent(log_n, k)) & mask;
                bit_reverse((source / 2) as usize, log_n) as u32
            })
            .collect();
        // The exponent of lane l exceeds that of lane 0 by N/4·bitrev(l), so its source moves by g·bitrev(l) in the top bits.
        let shuffles = std::array::from_fn(|first| {
            std::array::from_fn(|lane| {
                let top = bit_reverse(first, 3) + (galois as usize % LANES) * bit_reverse(lane, 3);
                bit_reverse(top % LANES, 3) as u64
            })
        });
        Self {
            galois,
            sources,
            shuffles,
        }
    }

    /// The Galois element `g`, below `2N`.
    pub fn galois(&self) -> u64 {
        self.galois
    }

    /// For each aligned group of eight words: the index of the first word of its source, and which source lane each of its
    /// words takes.
    pub fn groups(&self) -> impl Iterator<Item = (usize, &[u64; LANES])> {
        let map = self.whole();
        self.sources.iter().map(move |&source| map.group(source))
    }

    /// The map of the evaluations from index `first` on, a multiple of eight.
    pub(crate) fn from(&self, first: usize) -> MapPart<'_> {
        MapPart {
            sources: &self.sources[first / LANES..],
            shuffles: &self.shuffles,
        }
    }

    /// The whole map.
    pub(crate) fn whole(&self) -> MapPart<'_> {
        self.from(0)
    }
}

/// Where some consecutive evaluations of `a(X^g)` come from in the whole of `a`.
#[derive(Clone, Copy)]
pub(crate) struct MapPart<'a> {
    sources: &'a [u32],
    shuffles: &'a [[u64; LANES]; LANES],
}

impl<'a> MapPart<'a> {
    /// One entry of [`sources`](Self::sources), decoded.
    #[inline(always)]
    pub(crate) fn group(self, source: u32) -> (usize, &'a [u64; LANES]) {
        (
            source as usize & !(LANES - 1),
            &self.shuffles[source as usize % LANES],
        )
    }

    /// For each aligned group of eight words.
    #[inline(always)]
    pub(crate) fn sources(self) -> &'a [u32] {
        self.sources
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_agree_with_exponents() {
        for log_n in 4..=9 {
            let two_n = 2u64 << log_n;
            for galois in [1, 3, 5, 25, two_n - 1, two_n / 2 + 1, 7 * 5 * 3] {
                let table = Automorphism::new(log_n, galois);
                for (j, (start, shuffle)) in table.groups().enumerate() {
                    for lane in 0..LANES {
                        let source = start + shuffle[lane] as usize;
                        assert_eq!(
                            exponent(log_n, source),
                            galois * exponent(log_n, LANES * j + lane) % two_n
                        );
                    }
                }
            }
        }
    }
}
