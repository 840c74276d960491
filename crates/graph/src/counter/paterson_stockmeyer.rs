//! A polynomial's operations, counted as `evaluate_chebyshev` does them: sums of products share their relinearization.

use std::collections::BTreeSet;

use super::Counter;
use crate::Level;

/// Counts one evaluation by Paterson and Stockmeyer's method.
pub(super) struct PatersonStockmeyer<'c, 't> {
    counter: &'c mut Counter<'t>,
    /// Of the argument.
    top: Level,
    depth: u32,
    /// Powers below this are summed directly.
    babies: usize,
    known: BTreeSet<usize>,
}

impl<'c, 't> PatersonStockmeyer<'c, 't> {
    /// For an argument at a level, and a polynomial of this depth.
    pub fn new(counter: &'c mut Counter<'t>, top: Level, depth: u32) -> Self {
        PatersonStockmeyer {
            counter,
            top,
            depth,
            babies: 1 << depth.div_ceil(2),
            known: BTreeSet::from([1]),
        }
    }

    /// Everything for a degree, the last rescale included.
    pub fn count(mut self, degree: usize) {
        let Some(last) = self.depth.checked_sub(1) else {
            return;
        };
        let products = self.combine(degree, last);
        self.end(last, products);
    }

    fn level(&self, depth: u32) -> Level {
        self.top.after(depth).unwrap_or_default()
    }

    /// A sum's way one level down.
    fn end(&mut self, depth: u32, products: bool) {
        let level = self.level(depth);
        let cost = self.counter.table.level(level);
        if products {
            self.counter.milliseconds += cost.relinearize_rescale_ms();
            self.counter.relinearization = self.counter.relinearization.max(Some(level));
        } else {
            self.counter.count_plain_products(0, 1, level);
        }
    }

    fn multiples(&mut self, count: usize, depth: u32) {
        let cost = self.counter.table.level(self.level(depth));
        self.counter.counts.plain_products += count;
        self.counter.counts.additions += count;
        self.counter.milliseconds += count as f64 * cost.multiple_ms;
    }

    /// T_k, with those that it is made from: 2 T_a T_b - T_(a-b).
    fn power(&mut self, k: usize) {
        if !self.known.insert(k) {
            return;
        }
        let a = k.next_power_of_two() / 2;
        let b = k - a;
        self.power(a);
        self.power(b);
        let depth = k.next_power_of_two().ilog2() - 1;
        if a != b {
            self.power(a - b);
            self.multiples(1, depth);
        }
        let level = self.level(depth);
        self.counter.count_products(1, level);
    }

    fn powers(&mut self, degree: usize, depth: u32) {
        (1..=degree).for_each(|k| self.power(k));
        self.multiples(degree, depth);
    }

    /// A polynomial of a degree on the limbs of a depth; whether it ends in products.
    fn combine(&mut self, degree: usize, depth: u32) -> bool {
        let reachable = degree <= 1 || degree.next_power_of_two().ilog2() <= depth;
        if reachable && degree < self.babies {
            self.powers(degree, depth);
            return false;
        }
        let giant = (degree + 1).next_power_of_two() / 2;
        self.power(giant);
        let joined = degree > giant;
        if joined {
            let products = self.combine(degree - giant, depth - 1);
            self.end(depth - 1, products);
            let cost = self.counter.table.level(self.level(depth));
            self.counter.counts.products += 1;
            self.counter.milliseconds += cost.tensor_ms;
        } else {
            self.multiples(1, depth);
        }
        if giant <= self.babies {
            self.powers(giant - 1, depth);
            return joined;
        }
        // Both are summed before what ends them.
        let rest = self.combine(giant - 1, depth);
        self.counter.count_additions(1, self.level(depth));
        joined || rest
    }
}
