//! A machine of fewer slots made of one that carries several tokens.

use crate::{Diagonals, Level, Machine, Plain, PlainId};
use taciturn_approx::Chebyshev;

/// A machine of `slots / tokens` slots; slot `q * tokens + j` of the machine below is slot `q` for token `j`.
pub struct SideBySide<'m, M> {
    machine: &'m mut M,
    tokens: usize,
}

impl<'m, M: Machine> SideBySide<'m, M> {
    /// Over a machine whose slots `tokens`, a power of two, divides.
    pub fn new(machine: &'m mut M, tokens: usize) -> Self {
        SideBySide { machine, tokens }
    }

    fn steps(&self, steps: i64) -> i64 {
        steps * self.tokens as i64
    }

    fn plain(&self, plain: &Plain) -> Plain {
        let (tokens, inner) = (self.tokens, plain.clone());
        if plain.period() == 1 {
            return inner;
        }
        let id = PlainId::of(("side by side", plain.id(), tokens));
        Plain::new(id, plain.period() * tokens, move |out| {
            spread(&inner.values(), tokens, out)
        })
    }

    fn plains<'a>(&self, pairs: &[(&'a M::Value, Plain)]) -> Vec<(&'a M::Value, Plain)> {
        let pairs = pairs.iter();
        pairs.map(|(a, plain)| (*a, self.plain(plain))).collect()
    }
}

/// Every value `tokens` times in a row.
fn spread(values: &[f64], tokens: usize, out: &mut [f64]) {
    out.chunks_mut(tokens)
        .zip(values)
        .for_each(|(run, &value)| run.fill(value));
}

impl<M: Machine> Machine for SideBySide<'_, M> {
    type Value = M::Value;
    type Error = M::Error;

    fn slots(&self) -> usize {
        self.machine.slots() / self.tokens
    }

    fn level(&self, a: &M::Value) -> Level {
        self.machine.level(a)
    }

    fn enter(&mut self, node: &str) {
        self.machine.enter(node)
    }

    fn add(&mut self, a: &M::Value, b: &M::Value) -> Result<M::Value, M::Error> {
        self.machine.add(a, b)
    }

    fn sub(&mut self, a: &M::Value, b: &M::Value) -> Result<M::Value, M::Error> {
        self.machine.sub(a, b)
    }

    fn add_plain(&mut self, a: &M::Value, plain: &Plain) -> Result<M::Value, M::Error> {
        let plain = self.plain(plain);
        self.machine.add_plain(a, &plain)
    }

    fn mul_plain(&mut self, a: &M::Value, plain: &Plain) -> Result<M::Value, M::Error> {
        let plain = self.plain(plain);
        self.machine.mul_plain(a, &plain)
    }

    fn mul_constant(&mut self, a: &M::Value, constant: f64) -> Result<M::Value, M::Error> {
        self.machine.mul_constant(a, constant)
    }

    fn mul(&mut self, a: &M::Value, b: &M::Value) -> Result<M::Value, M::Error> {
        self.machine.mul(a, b)
    }

    fn square(&mut self, a: &M::Value) -> Result<M::Value, M::Error> {
        self.machine.square(a)
    }

    fn dot(&mut self, pairs: &[(&M::Value, &M::Value)]) -> Result<M::Value, M::Error> {
        self.machine.dot(pairs)
    }

    fn dot_plain(&mut self, pairs: &[(&M::Value, Plain)]) -> Result<M::Value, M::Error> {
        let pairs = self.plains(pairs);
        self.machine.dot_plain(&pairs)
    }

    fn dot_weights(&mut self, pairs: &[(&M::Value, Plain)]) -> Result<M::Value, M::Error> {
        let pairs = self.plains(pairs);
        self.machine.dot_weights(&pairs)
    }

    fn rotate(&mut self, a: &M::Value, steps: i64) -> Result<M::Value, M::Error> {
        self.machine.rotate(a, self.steps(steps))
    }

    fn rotate_many(&mut self, a: &M::Value, steps: &[i64]) -> Result<Vec<M::Value>, M::Error> {
        let steps: Vec<i64> = steps.iter().map(|&steps| self.steps(steps)).collect();
        self.machine.rotate_many(a, &steps)
    }

    fn linear_transform(
        &mut self,
        a: &M::Value,
        diagonals: &Diagonals,
    ) -> Result<M::Value, M::Error> {
        let wide = diagonals.clone().side_by_side(self.tokens);
        self.machine.linear_transform(a, &wide)
    }

    fn polynomial(&mut self, a: &M::Value, polynomial: &Chebyshev) -> Result<M::Value, M::Error> {
        self.machine.polynomial(a, polynomial)
    }

    fn drop_to(&mut self, a: &M::Value, level: Level) -> Result<M::Value, M::Error> {
        self.machine.drop_to(a, level)
    }

    fn bootstrap(
        &mut self,
        a: &M::Value,
        distinct_slots: usize,
        bound: f64,
        target: Level,
    ) -> Result<M::Value, M::Error> {
        let distinct = distinct_slots * self.tokens;
        self.machine.bootstrap(a, distinct, bound, target)
    }

    fn bootstrap_pair(
        &mut self,
        pair: [&M::Value; 2],
        distinct_slots: usize,
        bound: f64,
        target: Level,
    ) -> Result<[M::Value; 2], M::Error> {
        let distinct = distinct_slots * self.tokens;
        self.machine.bootstrap_pair(pair, distinct, bound, target)
    }
}
