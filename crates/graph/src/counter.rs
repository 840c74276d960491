//! The counting machine: operations, predicted time, the keys that they need.

mod paterson_stockmeyer;

use self::paterson_stockmeyer::PatersonStockmeyer;
use crate::machine::polynomial_depth;
use crate::simulate::SimulationError;
use crate::{CostTable, Diagonals, Level, Machine, Plain, is_unit_interval};
use std::collections::BTreeMap;
use taciturn_approx::Chebyshev;

/// Special limbs of the gadget that products with weights take at the levels of `n16-128`.
const SPECIAL_LIMBS: usize = 5;

/// How often what was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rotations of their own, and conjugations.
    pub rotations: usize,
    /// Further rotations of the same value.
    pub hoisted_rotations: usize,
    /// Products of two values.
    pub products: usize,
    /// Products with plaintexts and constants.
    pub plain_products: usize,
    /// Plaintexts of weights.
    pub weights: usize,
    /// Rescales, those within products apart.
    pub rescales: usize,
    /// Sums.
    pub additions: usize,
    /// Bootstraps.
    pub bootstraps: usize,
}

/// Counts instead of computing; a value is its level.
#[derive(Clone, Debug)]
pub struct Counter<'t> {
    slots: usize,
    table: &'t CostTable,
    counts: Counts,
    milliseconds: f64,
    rotations: BTreeMap<i64, Level>,
    relinearization: Option<Level>,
    conjugation: Option<Level>,
}

impl<'t> Counter<'t> {
    /// A counter for machines of `slots` slots with the costs of `table`.
    pub fn new(slots: usize, table: &'t CostTable) -> Self {
        Counter {
            slots,
            table,
            counts: Counts::default(),
            milliseconds: 0.0,
            rotations: BTreeMap::new(),
            relinearization: None,
            conjugation: None,
        }
    }

    /// What was counted.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Predicted time of all that was counted.
    pub fn milliseconds(&self) -> f64 {
        self.milliseconds
    }

    /// The rotations that occurred with the highest level of each.
    pub fn rotations(&self) -> &BTreeMap<i64, Level> {
        &self.rotations
    }

    /// The highest level of a product of two values.
    pub fn relinearization(&self) -> Option<Level> {
        self.relinearization
    }

    /// The highest level of a conjugation.
    pub fn conjugation(&self) -> Option<Level> {
        self.conjugation
    }

    fn take(operation: &'static str, level: Level, depth: u32) -> Result<Level, SimulationError> {
        level.after(depth).ok_or(SimulationError::Exhausted {
            operation,
            needed: depth,
            got: level,
        })
    }

    fn same(operation: &'static str, a: Level, b: Level) -> Result<Level, SimulationError> {
        if a == b {
            Ok(a)
        } else {
            Err(SimulationError::Levels { operation, a, b })
        }
    }

    fn note_rotation(&mut self, steps: i64, level: Level) {
        let highest = self.rotations.entry(steps).or_default();
        *highest = level.max(*highest);
    }

    fn count_rotations(&mut self, steps: &[i64], level: Level) {
        let Some(further) = steps.len().checked_sub(1) else {
            return;
        };
        steps
            .iter()
            .for_each(|&steps| self.note_rotation(steps, level));
        self.counts.rotations += 1;
        self.counts.hoisted_rotations += further;
        let cost = self.table.level(level);
        self.milliseconds += cost.rotate_ms + further as f64 * cost.hoisted_rotate_ms;
    }

    fn count_products(&mut self, count: usize, level: Level) {
        self.counts.products += count;
        self.milliseconds += count as f64 * self.table.level(level).product_rescale_ms;
        self.relinearization = self.relinearization.max(Some(level));
    }

    fn count_plain_products(&mut self, count: usize, rescales: usize, level: Level) {
        self.counts.plain_products += count;
        self.counts.rescales += rescales;
        let cost = self.table.level(level);
        self.milliseconds +=
            count as f64 * cost.plain_product_ms + rescales as f64 * cost.rescale_ms;
    }

    /// Plaintexts are kept as integers; every use transforms them to the limbs at hand.
    fn count_encodings(&mut self, count: usize, level: Level) {
        self.milliseconds += count as f64 * self.table.level(level).encode_ms;
    }

    fn count_additions(&mut self, count: usize, level: Level) {
        self.counts.additions += count;
        self.milliseconds += count as f64 * self.table.level(level).add_ms;
    }
}

/// Whether a transform of so many giant steps divides its baby steps by the special limbs before it multiplies them, so that its diagonals need
/// none of these: the rule of the ciphertext machine.
fn divides_first(giants: usize, level: Level) -> bool {
    let limbs = level.index() + 1;
    giants * SPECIAL_LIMBS > 3 * (limbs + SPECIAL_LIMBS)
}

impl Machine for Counter<'_> {
    type Value = Level;
    type Error = SimulationError;

    fn slots(&self) -> usize {
        self.slots
    }

    fn level(&self, a: &Level) -> Level {
        *a
    }

    fn add(&mut self, a: &Level, b: &Level) -> Result<Level, SimulationError> {
        let level = Self::same("add", *a, *b)?;
        self.count_additions(1, level);
        Ok(level)
    }

    fn sub(&mut self, a: &Level, b: &Level) -> Result<Level, SimulationError> {
        self.add(a, b)
    }

    fn add_plain(&mut self, a: &Level, plain: &Plain) -> Result<Level, SimulationError> {
        if plain.period() > 1 {
            self.count_encodings(1, *a);
        }
        self.count_additions(1, *a);
        Ok(*a)
    }

    fn mul_plain(&mut self, a: &Level, _plain: &Plain) -> Result<Level, SimulationError> {
        let level = Self::take("plain product", *a, 1)?;
        self.count_encodings(1, *a);
        self.count_plain_products(1, 1, *a);
        Ok(level)
    }

    fn mul_constant(&mut self, a: &Level, _constant: f64) -> Result<Level, SimulationError> {
        let level = Self::take("constant product", *a, 1)?;
        self.count_plain_products(1, 1, *a);
        Ok(level)
    }

    fn mul(&mut self, a: &Level, b: &Level) -> Result<Level, SimulationError> {
        let from = Self::same("product", *a, *b)?;
        let level = Self::take("product", from, 1)?;
        self.count_products(1, from);
        Ok(level)
    }

    /// The sum is relinearized and rescaled once.
    fn dot(&mut self, pairs: &[(&Level, &Level)]) -> Result<Level, SimulationError> {
        let (first, further) = pairs
            .split_first()
            .expect("a sum of products has at least one");
        let level = self.mul(first.0, first.1)?;
        for (a, b) in further {
            let from = Self::same("sum of products", **a, **b)?;
            Self::same("sum of products", *first.0, from)?;
        }
        self.counts.products += further.len();
        self.counts.additions += further.len();
        self.milliseconds += further.len() as f64 * self.table.level(*first.0).tensor_ms;
        Ok(level)
    }

    fn dot_plain(&mut self, pairs: &[(&Level, Plain)]) -> Result<Level, SimulationError> {
        let from = *pairs[0].0;
        pairs
            .iter()
            .try_for_each(|(a, _)| Self::same("sum of plain products", from, **a).map(drop))?;
        let level = Self::take("sum of plain products", from, 1)?;
        self.count_encodings(pairs.len(), from);
        self.count_plain_products(pairs.len(), 1, from);
        self.count_additions(pairs.len() - 1, from);
        Ok(level)
    }

    fn dot_weights(&mut self, pairs: &[(&Level, Plain)]) -> Result<Level, SimulationError> {
        self.counts.weights += pairs.len();
        self.dot_plain(pairs)
    }

    fn rotate(&mut self, a: &Level, steps: i64) -> Result<Level, SimulationError> {
        self.count_rotations(&[steps], *a);
        Ok(*a)
    }

    fn rotate_many(&mut self, a: &Level, steps: &[i64]) -> Result<Vec<Level>, SimulationError> {
        self.count_rotations(steps, *a);
        Ok(vec![*a; steps.len()])
    }

    fn linear_transform(
        &mut self,
        a: &Level,
        diagonals: &Diagonals,
    ) -> Result<Level, SimulationError> {
        let level = Self::take("linear transform", *a, 1)?;
        if let Some(turn) = diagonals.turn() {
            self.count_rotations(&[turn], *a);
            self.count_additions(2, *a);
            self.conjugation = self.conjugation.max(Some(level));
            self.counts.rotations += 1;
            self.milliseconds += self.table.level(level).rotate_ms;
            self.count_additions(1, level);
        }
        let count = diagonals.count();
        self.counts.weights += count;
        if count == 1 {
            self.count_encodings(1, *a);
            self.count_plain_products(1, 1, *a);
            return Ok(level);
        }
        let (babies, giants) = (diagonals.baby_rotations(), diagonals.giant_rotations());
        for &steps in babies.iter().chain(&giants) {
            self.note_rotation(steps, *a);
        }
        // The first baby step pays for the decomposition.
        self.counts.rotations += 1 + giants.len();
        self.counts.hoisted_rotations += babies.len() - 1;
        self.counts.plain_products += count;
        self.counts.rescales += 1;
        self.counts.additions += count - 1;
        let cost = self.table.level(*a);
        let (baby_ms, diagonal_ms) = match divides_first(giants.len() + 1, *a) {
            true => (
                cost.hoisted_rotate_ms,
                cost.encode_ms + cost.plain_product_ms,
            ),
            false => (cost.baby_ms, cost.diagonal_ms),
        };
        self.milliseconds += cost.transform_ms
            + babies.len() as f64 * baby_ms
            + giants.len() as f64 * cost.giant_ms
            + count as f64 * diagonal_ms;
        Ok(level)
    }

    fn polynomial(&mut self, a: &Level, polynomial: &Chebyshev) -> Result<Level, SimulationError> {
        let result = Self::take("polynomial", *a, polynomial_depth(polynomial))?;
        let depth = polynomial.depth();
        let top = result.before(depth);
        if !is_unit_interval(polynomial) {
            self.count_plain_products(1, 1, *a);
            self.count_additions(1, top);
        }
        PatersonStockmeyer::new(self, top, depth).count(polynomial.degree());
        Ok(result)
    }

    fn drop_to(&mut self, a: &Level, level: Level) -> Result<Level, SimulationError> {
        if level > *a {
            return Err(SimulationError::Levels {
                operation: "drop",
                a: *a,
                b: level,
            });
        }
        if level < *a {
            // A constant product at the level above brings the scale to that of the new level.
            self.count_plain_products(1, 1, level.before(1));
        }
        Ok(level)
    }

    fn bootstrap(
        &mut self,
        _: &Level,
        distinct: usize,
        _bound: f64,
        target: Level,
    ) -> Result<Level, SimulationError> {
        self.counts.bootstraps += 1;
        let cost = self
            .table
            .bootstrap(distinct)
            .and_then(|cost| cost.target_ms.get(target.index()));
        self.milliseconds += cost.copied().unwrap_or_default();
        Ok(target)
    }

    fn bootstrap_pair(
        &mut self,
        _: [&Level; 2],
        distinct: usize,
        _bound: f64,
        target: Level,
    ) -> Result<[Level; 2], SimulationError> {
        self.counts.bootstraps += 1;
        let cost = self
            .table
            .bootstrap(distinct)
            .and_then(|cost| cost.pair_ms.as_ref()?.get(target.index()));
        self.milliseconds += cost.copied().unwrap_or_default();
        Ok([target; 2])
    }
}
