//! Cost tables: what operations take on a machine, by level.

use crate::{Level, PlanError, bootstrap_input_levels};
use serde::{Deserialize, Serialize};

/// The largest size of a bootstrap that a table may name: the slots of the largest ring.
const MAX_LOG_SLOTS: u32 = 17;

/// How many times a [`LevelCost`] holds.
pub const LEVEL_COSTS: usize = 13;

/// Milliseconds of single operations at one level (of their inputs).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelCost {
    /// A rotation of its own.
    pub rotate_ms: f64,
    /// Every further rotation of the same value.
    pub hoisted_rotate_ms: f64,
    /// Product of two values, relinearized and rescaled.
    pub product_rescale_ms: f64,
    /// Product of two values added to a sum that is relinearized and rescaled as a whole.
    pub tensor_ms: f64,
    /// Product with an encoded plaintext, not rescaled.
    pub plain_product_ms: f64,
    /// A multiple of a value by an integer, added to another value.
    pub multiple_ms: f64,
    /// A rescale alone.
    pub rescale_ms: f64,
    /// Sum of two values.
    pub add_ms: f64,
    /// Transform of one plaintext, kept as integers, to the limbs at hand; 0 where plaintexts are kept transformed.
    pub encode_ms: f64,
    /// What every linear transform takes, however many rotations it has: its operand's decomposition, the last division and the rescale.
    pub transform_ms: f64,
    /// Every baby step of a linear transform: a rotation of the decomposed operand, not divided (double hoisting).
    pub baby_ms: f64,
    /// Every giant step of a linear transform: a division, a decomposition and a key product of its own.
    pub giant_ms: f64,
    /// Every diagonal of a linear transform: its plaintext's transform to the raised limbs and the product with a baby step.
    pub diagonal_ms: f64,
}

impl LevelCost {
    /// All times, in the order of the fields.
    pub fn times(&self) -> [f64; LEVEL_COSTS] {
        [
            self.rotate_ms,
            self.hoisted_rotate_ms,
            self.product_rescale_ms,
            self.tensor_ms,
            self.plain_product_ms,
            self.multiple_ms,
            self.rescale_ms,
            self.add_ms,
            self.encode_ms,
            self.transform_ms,
            self.baby_ms,
            self.giant_ms,
            self.diagonal_ms,
        ]
    }

    /// From all times, in the order of the fields.
    pub fn from_times(times: [f64; LEVEL_COSTS]) -> Self {
        let [
            rotate_ms,
            hoisted_rotate_ms,
            product_rescale_ms,
            tensor_ms,
            plain_product_ms,
            multiple_ms,
            rescale_ms,
            add_ms,
            encode_ms,
            transform_ms,
            baby_ms,
            giant_ms,
            diagonal_ms,
        ] = times;
        LevelCost {
            rotate_ms,
            hoisted_rotate_ms,
            product_rescale_ms,
            tensor_ms,
            plain_product_ms,
            multiple_ms,
            rescale_ms,
            add_ms,
            encode_ms,
            transform_ms,
            baby_ms,
            giant_ms,
            diagonal_ms,
        }
    }

    /// Relinearization and rescale of a sum of products.
    pub fn relinearize_rescale_ms(&self) -> f64 {
        (self.product_rescale_ms - self.tensor_ms).max(self.rescale_ms)
    }
}

/// Bootstraps of one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BootstrapCost {
    /// Logarithm of the size in slots.
    pub log_slots: u32,
    /// Levels that the input must have.
    pub slots_to_coeffs_levels: u32,
    /// Milliseconds by target level.
    pub target_ms: Vec<f64>,
    /// Milliseconds by target level of two real values refreshed as one complex value, taking them apart included; where it is not
    /// known, no two values share a bootstrap of this size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair_ms: Option<Vec<f64>>,
}

/// What the planner knows about a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostTable {
    /// By level, from 0 to the highest.
    pub levels: Vec<LevelCost>,
    /// By size, ascending.
    pub bootstraps: Vec<BootstrapCost>,
    /// From the slots of a plaintext to its integers, per plaintext where many are made at once: what a weight takes that is not kept
    /// encoded, before its transform.
    pub embed_ms: f64,
}

impl CostTable {
    /// A fixed table for `slots` slots, for tests and for comparing layouts without a measurement: milliseconds in the
    /// proportions of one core at the size of 2^15 slots.
    pub fn reference(slots: usize, max_level: Level) -> Self {
        let scale = slots as f64 / (1 << 15) as f64;
        let level = |level: u32| {
            let limbs = f64::from(level + 1);
            let key_switch = scale * (20.0 + 2.0 * limbs * (1.0 + limbs / 5.0));
            LevelCost {
                rotate_ms: key_switch,
                hoisted_rotate_ms: 0.6 * key_switch,
                product_rescale_ms: 1.2 * key_switch,
                tensor_ms: 0.25 * scale * limbs,
                plain_product_ms: 0.1 * scale * limbs,
                multiple_ms: 0.1 * scale * limbs,
                rescale_ms: 0.4 * scale * limbs,
                add_ms: 0.05 * scale * limbs,
                encode_ms: 0.2 * scale * limbs,
                transform_ms: key_switch,
                baby_ms: 0.4 * key_switch,
                giant_ms: 0.9 * key_switch,
                diagonal_ms: scale * (1.0 + 0.35 * limbs),
            }
        };
        let bootstrap = |log_slots: u32| {
            let stages = log_slots.div_ceil(5);
            let halves = if 1usize << log_slots == slots {
                2.0
            } else {
                1.0
            };
            let times = |halves: f64| {
                (0..=max_level.0)
                    .map(|target| {
                        scale
                            * (400.0 * halves + 150.0 * f64::from(stages))
                            * (1.0 + 0.06 * f64::from(target))
                    })
                    .collect()
            };
            BootstrapCost {
                log_slots,
                slots_to_coeffs_levels: bootstrap_input_levels(log_slots),
                target_ms: times(halves),
                pair_ms: Some(times(2.0 * halves)),
            }
        };
        CostTable {
            levels: (0..=max_level.0).map(level).collect(),
            bootstraps: (0..=slots.trailing_zeros()).map(bootstrap).collect(),
            embed_ms: 1.5 * scale,
        }
    }

    /// The highest level.
    pub fn max_level(&self) -> Level {
        Level(self.levels.len().saturating_sub(1) as u32)
    }

    /// Checks that there are levels, that sizes ascend, that every size has a time for every level, and that times are finite
    /// and not negative. Call it on every table that comes from a file.
    pub fn check(&self) -> Result<(), PlanError> {
        let error = |what: String, expected: &str| {
            Err(PlanError::Costs {
                what,
                expected: expected.to_owned(),
            })
        };
        if self.levels.is_empty() {
            return error("no levels".to_owned(), "at least level 0");
        }
        if !self
            .bootstraps
            .is_sorted_by(|a, b| a.log_slots < b.log_slots)
        {
            return error("bootstraps out of order".to_owned(), "ascending sizes");
        }
        if let Some(cost) = self.bootstraps.last()
            && cost.log_slots > MAX_LOG_SLOTS
        {
            return error(
                format!("bootstraps of 2^{} slots", cost.log_slots),
                &format!("at most 2^{MAX_LOG_SLOTS}"),
            );
        }
        let times = (self.levels.iter().flat_map(LevelCost::times)).chain([self.embed_ms]);
        let targets = self.bootstraps.iter().flat_map(|cost| {
            let pairs = cost.pair_ms.iter().flatten();
            cost.target_ms.iter().chain(pairs)
        });
        // Written so that a NaN is refused as well.
        if let Some(ms) = times
            .chain(targets.copied())
            .find(|ms| !(*ms >= 0.0 && ms.is_finite()))
        {
            return error(format!("a time of {ms} ms"), "finite times, not negative");
        }
        let columns = self.bootstraps.iter().flat_map(|cost| {
            std::iter::once(&cost.target_ms)
                .chain(&cost.pair_ms)
                .map(|column| (cost.log_slots, column.len()))
        });
        for (log_slots, targets) in columns {
            if targets != self.levels.len() {
                return error(
                    format!("{targets} targets for 2^{log_slots} slots"),
                    "a time for every level",
                );
            }
        }
        Ok(())
    }

    /// The costs at a level; those of the highest where there are none.
    pub fn level(&self, level: Level) -> &LevelCost {
        &self.levels[level.index().min(self.levels.len() - 1)]
    }

    /// The smallest size of bootstrap that serves a period.
    pub fn bootstrap(&self, period: usize) -> Option<&BootstrapCost> {
        self.bootstraps
            .iter()
            .find(|cost| 1usize << cost.log_slots >= period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_no_planner_can_take_are_refused() {
        let table = CostTable::reference(1 << 10, Level(4));
        table.check().unwrap();
        type Spoil = fn(&mut CostTable);
        let spoils: [Spoil; 8] = [
            |t| t.levels.clear(),
            |t| t.levels[2].add_ms = f64::NAN,
            |t| t.levels[0].encode_ms = -1.0,
            |t| t.embed_ms = f64::NAN,
            |t| t.bootstraps[3].target_ms[1] = f64::INFINITY,
            |t| t.bootstraps[3].target_ms.truncate(2),
            |t| t.bootstraps.swap(0, 1),
            |t| t.bootstraps[10].log_slots = 64,
        ];
        for (i, spoil) in spoils.into_iter().enumerate() {
            let mut bad = table.clone();
            spoil(&mut bad);
            assert!(
                matches!(bad.check(), Err(PlanError::Costs { .. })),
                "case {i}"
            );
        }
    }
}
