//! Encoded plaintexts that were used recently, up to a number of bytes.

use std::collections::HashMap;
use std::sync::Arc;

use taciturn_ckks::IntegerPlaintext;

use crate::PlainId;

/// What a plaintext holds, and the bits of its scale.
type Key = (PlainId, u64);

/// Keeps integer plaintexts within a budget. Where a new one does not fit, those that were used longest ago make room: some depend on
/// the token's position and do not come again for long, the others come in every step.
pub(super) struct Recent {
    budget: usize,
    bytes: usize,
    uses: u64,
    /// With the number of the last use.
    kept: HashMap<Key, (u64, Arc<IntegerPlaintext>)>,
}

impl Recent {
    /// Nothing, with room for `budget` bytes.
    pub(super) fn new(budget: usize) -> Self {
        Recent {
            budget,
            bytes: 0,
            uses: 0,
            kept: HashMap::new(),
        }
    }

    /// A plaintext that is kept.
    pub(super) fn get(&mut self, key: Key) -> Option<Arc<IntegerPlaintext>> {
        self.uses += 1;
        let (used, plaintext) = self.kept.get_mut(&key)?;
        *used = self.uses;
        Some(plaintext.clone())
    }

    /// Keeps a plaintext that is not kept yet, unless it alone is larger than the budget.
    pub(super) fn keep(&mut self, key: Key, plaintext: Arc<IntegerPlaintext>) {
        let needed = bytes(&plaintext);
        if needed > self.budget {
            return;
        }
        if self.bytes + needed > self.budget {
            // At least half goes at once, so that this search is rare.
            self.shrink((self.budget - needed).min(self.budget / 2));
        }
        self.bytes += needed;
        self.kept.insert(key, (self.uses, plaintext));
    }

    fn shrink(&mut self, bytes_left: usize) {
        let mut oldest: Vec<(u64, Key)> = (self.kept.iter())
            .map(|(key, (used, _))| (*used, *key))
            .collect();
        oldest.sort_unstable();
        for (_, key) in oldest {
            if self.bytes <= bytes_left {
                break;
            }
            if let Some((_, plaintext)) = self.kept.remove(&key) {
                self.bytes -= bytes(&plaintext);
            }
        }
    }
}

fn bytes(plaintext: &IntegerPlaintext) -> usize {
    plaintext.coefficients.bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use taciturn_ckks::Scale;

    fn plaintext(coefficients: usize) -> Arc<IntegerPlaintext> {
        Arc::new(IntegerPlaintext {
            coefficients: taciturn_ring::IntegerPoly::new(vec![0; coefficients]),
            scale: Scale(1.0),
        })
    }

    #[test]
    fn what_is_used_stays_and_the_budget_holds() {
        let key = |name: u64| (PlainId::of(name), 0);
        let mut recent = Recent::new(4 * 100);
        recent.keep(key(0), plaintext(10));
        for name in 1..1000 {
            assert!(recent.get(key(0)).is_some(), "before {name}");
            assert!(recent.get(key(name)).is_none());
            recent.keep(key(name), plaintext(1 + name as usize % 37));
            assert!(recent.get(key(name)).is_some());
            let held: usize = recent.kept.values().map(|(_, kept)| bytes(kept)).sum();
            assert_eq!(held, recent.bytes);
            assert!(held <= 400, "{held} bytes");
        }
        recent.keep(key(1000), plaintext(101));
        assert!(recent.get(key(1000)).is_none());
    }
}
