//! The slot-exact simulated machine: garbage, padding, unused tokens and noise in every slot.

use crate::machine::polynomial_depth;
use crate::noise::{Noise, NoiseLevels};
use crate::sites::{LeftInterval, Sites};
use crate::{Diagonals, Level, Machine, Plain};
use std::collections::BTreeMap;
use taciturn_approx::Chebyshev;
use thiserror::Error;

/// What breaks the rules of the machine.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SimulationError {
    /// Too few levels.
    #[error("{operation} takes {needed} levels, the value has {got}; bootstrap earlier")]
    Exhausted {
        /// The operation.
        operation: &'static str,
        /// Levels that it takes.
        needed: u32,
        /// Levels that there are.
        got: Level,
    },
    /// Operands at unequal levels.
    #[error("{operation}: operands at levels {a} and {b}; drop one to the other's level")]
    Levels {
        /// The operation.
        operation: &'static str,
        /// Of the first.
        a: Level,
        /// Of the second.
        b: Level,
    },
    /// A value became infinite or not a number.
    #[error("{node}: a slot is not finite; check the intervals before it")]
    NotFinite {
        /// The node at work.
        node: String,
    },
}

/// A vector of slots at a level.
#[derive(Clone, Debug, PartialEq)]
pub struct Slots {
    level: Level,
    slots: Vec<f64>,
}

impl Slots {
    /// The slots.
    pub fn as_slice(&self) -> &[f64] {
        &self.slots
    }

    /// The largest magnitude of any slot.
    pub fn magnitude(&self) -> f64 {
        self.slots.iter().fold(0.0, |max, slot| slot.abs().max(max))
    }
}

/// Computes on slots in the clear, under a ciphertext's rules.
#[derive(Clone, Debug)]
pub struct SlotSimulator {
    slots: usize,
    noise: Noise,
    sites: Sites,
    node: String,
    magnitudes: BTreeMap<String, f64>,
}

impl SlotSimulator {
    /// A machine of `slots` slots with noise from a seed.
    pub fn new(slots: usize, noise: NoiseLevels, seed: u64) -> Self {
        let noise = Noise::new(noise, seed);
        SlotSimulator {
            slots,
            noise,
            sites: Sites::default(),
            node: String::new(),
            magnitudes: BTreeMap::new(),
        }
    }

    /// A fresh value; `period` holds one period of its slots.
    pub fn encrypt(&mut self, period: &[f64], level: Level) -> Slots {
        let mut slots: Vec<f64> = period.iter().copied().cycle().take(self.slots).collect();
        self.noise.add(&mut slots, self.noise.levels.operation);
        Slots { level, slots }
    }

    /// The extremes at every polynomial and bootstrap so far.
    pub fn sites(&self) -> &Sites {
        &self.sites
    }

    /// The largest slot of anything computed within a node so far, garbage included: what bounds are set from.
    pub fn magnitudes(&self) -> &BTreeMap<String, f64> {
        &self.magnitudes
    }

    /// An error where a value left its interval or bound.
    pub fn check(&self) -> Result<(), LeftInterval> {
        self.sites.check()
    }

    fn take(operation: &'static str, level: Level, depth: u32) -> Result<Level, SimulationError> {
        level.after(depth).ok_or(SimulationError::Exhausted {
            operation,
            needed: depth,
            got: level,
        })
    }

    fn same(operation: &'static str, a: &Slots, b: &Slots) -> Result<Level, SimulationError> {
        if a.level == b.level {
            return Ok(a.level);
        }
        Err(SimulationError::Levels {
            operation,
            a: a.level,
            b: b.level,
        })
    }

    fn finish(
        &mut self,
        level: Level,
        mut slots: Vec<f64>,
        deviation: f64,
    ) -> Result<Slots, SimulationError> {
        self.noise.add(&mut slots, deviation);
        if slots.iter().any(|slot| !slot.is_finite()) {
            return Err(SimulationError::NotFinite {
                node: self.node.clone(),
            });
        }
        let value = Slots { level, slots };
        match self.magnitudes.get_mut(&self.node) {
            Some(worst) => *worst = worst.max(value.magnitude()),
            None => drop(self.magnitudes.insert(self.node.clone(), value.magnitude())),
        }
        Ok(value)
    }

    fn switch(&mut self, level: Level, slots: Vec<f64>) -> Result<Slots, SimulationError> {
        self.finish(level, slots, self.noise.levels.operation)
    }
}

fn zip(a: &Slots, b: &Slots, f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    a.slots
        .iter()
        .zip(&b.slots)
        .map(|(&a, &b)| f(a, b))
        .collect()
}

fn zip_plain(a: &[f64], plain: &Plain, f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    a.iter()
        .zip(plain.values().iter().cycle())
        .map(|(&a, &b)| f(a, b))
        .collect()
}

fn turned(slots: &[f64], steps: i64) -> Vec<f64> {
    let mut slots = slots.to_vec();
    let left = steps.rem_euclid(slots.len() as i64) as usize;
    slots.rotate_left(left);
    slots
}

impl Machine for SlotSimulator {
    type Value = Slots;
    type Error = SimulationError;

    fn slots(&self) -> usize {
        self.slots
    }

    fn level(&self, a: &Slots) -> Level {
        a.level
    }

    fn enter(&mut self, node: &str) {
        node.clone_into(&mut self.node);
    }

    fn add(&mut self, a: &Slots, b: &Slots) -> Result<Slots, SimulationError> {
        let level = Self::same("add", a, b)?;
        self.finish(level, zip(a, b, |a, b| a + b), 0.0)
    }

    fn sub(&mut self, a: &Slots, b: &Slots) -> Result<Slots, SimulationError> {
        let level = Self::same("sub", a, b)?;
        self.finish(level, zip(a, b, |a, b| a - b), 0.0)
    }

    fn add_plain(&mut self, a: &Slots, plain: &Plain) -> Result<Slots, SimulationError> {
        self.finish(a.level, zip_plain(&a.slots, plain, |a, b| a + b), 0.0)
    }

    fn mul_plain(&mut self, a: &Slots, plain: &Plain) -> Result<Slots, SimulationError> {
        let level = Self::take("plain product", a.level, 1)?;
        self.switch(level, zip_plain(&a.slots, plain, |a, b| a * b))
    }

    fn mul_constant(&mut self, a: &Slots, constant: f64) -> Result<Slots, SimulationError> {
        let level = Self::take("constant product", a.level, 1)?;
        self.switch(level, a.slots.iter().map(|slot| slot * constant).collect())
    }

    fn mul(&mut self, a: &Slots, b: &Slots) -> Result<Slots, SimulationError> {
        let level = Self::take("product", Self::same("product", a, b)?, 1)?;
        self.switch(level, zip(a, b, |a, b| a * b))
    }

    fn rotate(&mut self, a: &Slots, steps: i64) -> Result<Slots, SimulationError> {
        self.switch(a.level, turned(&a.slots, steps))
    }

    fn rotate_many(&mut self, a: &Slots, steps: &[i64]) -> Result<Vec<Slots>, SimulationError> {
        steps.iter().map(|&steps| self.rotate(a, steps)).collect()
    }

    fn linear_transform(
        &mut self,
        a: &Slots,
        diagonals: &Diagonals,
    ) -> Result<Slots, SimulationError> {
        let level = Self::take("linear transform", a.level, 1)?;
        let mut operands = vec![a.clone()];
        if let Some(turn) = diagonals.turn() {
            operands.push(self.rotate(a, turn)?);
        }
        let mut babies = Vec::new();
        for operand in &operands {
            let mut turned = vec![operand.clone()];
            turned.extend(self.rotate_many(operand, &diagonals.baby_rotations())?);
            babies.push(turned);
        }
        // Of a packed map twice the real part of (a + i b) P, which is 2 (a Re P - b Im P).
        let factor = if diagonals.turn().is_some() { 2.0 } else { 1.0 };
        let mut sum = vec![0.0; self.slots];
        for g in 0..diagonals.giant_steps() {
            let mut inner = vec![0.0; self.slots];
            let plains = diagonals.baby_giant_values(0..diagonals.baby_steps(), g);
            for (b, plain) in plains.iter().enumerate() {
                for (slot, inner) in inner.iter_mut().enumerate() {
                    let weight = plain[slot % plain.len()];
                    let parts = [weight.re, -weight.im];
                    *inner += (babies.iter().zip(parts))
                        .map(|(babies, part)| factor * babies[b].slots[slot] * part)
                        .sum::<f64>();
                }
            }
            let inner = turned(&inner, diagonals.giant_rotation(g));
            sum.iter_mut()
                .zip(inner)
                .for_each(|(sum, inner)| *sum += inner);
        }
        self.switch(level, sum)
    }

    fn polynomial(&mut self, a: &Slots, polynomial: &Chebyshev) -> Result<Slots, SimulationError> {
        let level = Self::take("polynomial", a.level, polynomial_depth(polynomial))?;
        self.sites
            .note(&self.node, polynomial.low, polynomial.high, &a.slots);
        self.switch(
            level,
            a.slots
                .iter()
                .map(|&slot| polynomial.evaluate(slot))
                .collect(),
        )
    }

    fn drop_to(&mut self, a: &Slots, level: Level) -> Result<Slots, SimulationError> {
        if level > a.level {
            return Err(SimulationError::Levels {
                operation: "drop",
                a: a.level,
                b: level,
            });
        }
        self.switch(level, a.slots.clone())
    }

    fn bootstrap(
        &mut self,
        a: &Slots,
        distinct: usize,
        bound: f64,
        target: Level,
    ) -> Result<Slots, SimulationError> {
        self.sites.note(
            &format!("{} (bootstrap)", self.node),
            -bound,
            bound,
            &a.slots,
        );
        // A sparse bootstrap averages over the periods: the trace onto the subring.
        let mut period = vec![0.0; distinct];
        a.slots
            .iter()
            .enumerate()
            .for_each(|(i, slot)| period[i % distinct] += slot);
        let share = distinct as f64 / self.slots as f64;
        period.iter_mut().for_each(|slot| *slot *= share);
        let slots = period.iter().copied().cycle().take(self.slots).collect();
        self.finish(target, slots, bound * self.noise.levels.bootstrap)
    }
}
