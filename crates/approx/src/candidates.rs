//! Approximations that a planner may choose among: exact enough, and none worse than another in levels and in products.

use std::collections::BTreeMap;

use crate::catalogue::{COMPOSITE, CONSTANT_GOLDSCHMIDT, GOLDSCHMIDT, MINIMAX, NEWTON, SQUARINGS};
use crate::{
    ApproxError, Approximation, Composite, Exp, Gate, GoldschmidtInverse, Inverse, InverseSqrt,
    Named, Target,
};

/// Bits beyond which an approximation's error disappears in the noise of a bootstrap, whose worst slot has 15 to 20.
pub const ENOUGH_BITS: f64 = 20.0;
/// Degrees to try: each is the largest of its depth and number of products.
const DEGREES: [usize; 21] = [
    7, 11, 13, 15, 23, 27, 29, 31, 47, 55, 59, 63, 79, 95, 111, 119, 127, 159, 191, 223, 255,
];
/// Most Newton steps or iterations.
const MAX_STEPS: u32 = 4;
/// Most squarings.
const MAX_SQUARINGS: u32 = 6;
/// Most iterations after a constant: more take more levels than the polynomials.
const MAX_FROM_CONSTANT: u32 = 8;
/// Degrees of composites; larger ones take more products than one polynomial.
const COMPOSITES: [(usize, usize); 4] = [(7, 7), (7, 15), (15, 7), (15, 15)];
/// From how many products of one polynomial on a composite may take fewer.
const COMPOSITE_FROM: u32 = 20;

/// All that may be the best choice in place of `current`: with its error or less, up to `enough` bits ([`ENOUGH_BITS`] where nothing else says so), and
/// at least `bits`. The one of least depth comes first. `bits` are also those that exponentials are fitted for.
pub fn candidates(current: &Named, bits: f64, enough: f64) -> Result<Vec<Named>, ApproxError> {
    let least = current.approximation.bits().min(enough).max(bits);
    let (low, high) = current.approximation.interval();
    let of = |name, approximation| Named {
        name,
        approximation,
    };
    let mut all = vec![current.clone()];
    match current.approximation.target() {
        Target::Inverse => {
            let mut starts = Starts::new(|degree| {
                let f = Inverse::fit(low, high, degree, 0)?;
                Ok((f.worst_error_bits(), f))
            });
            for steps in 0..=MAX_STEPS {
                // `y (2 - x y)` squares the error.
                let needed = least / f64::from(1u32 << steps);
                let Some(start) = starts.first(needed)? else {
                    continue;
                };
                let start = start.start.clone();
                all.push(of(
                    NEWTON,
                    Approximation::Inverse(Inverse {
                        start: start.clone(),
                        newton: steps,
                    }),
                ));
                // With fewer iterations it is no shorter than Newton's steps.
                if steps >= 2 {
                    all.push(of(
                        GOLDSCHMIDT,
                        Approximation::GoldschmidtInverse(GoldschmidtInverse {
                            start,
                            iterations: steps,
                        }),
                    ));
                }
            }
            let error = -((high - low) / (high + low)).log2();
            let iterations = (least / error).log2().ceil().max(1.0);
            if iterations <= f64::from(MAX_FROM_CONSTANT) {
                let made = GoldschmidtInverse::from_constant(low, high, iterations as u32)?;
                all.push(of(
                    CONSTANT_GOLDSCHMIDT,
                    Approximation::GoldschmidtInverse(made),
                ));
            }
        }
        Target::InverseSqrt => {
            let mut starts = Starts::new(|degree| {
                let f = InverseSqrt::fit(low, high, degree, 0)?;
                Ok((f.worst_error_bits(), f))
            });
            // `y (3 - x y^2) / 2` takes an error e to (3 + e) e^2 / 2 at most.
            let before = |bits: f64| {
                let after = (-bits).exp2();
                let mut error = (after / 1.5).sqrt();
                for _ in 0..4 {
                    error = (2.0 * after / (3.0 + error)).sqrt();
                }
                -error.log2()
            };
            let mut needed = least;
            for newton in 0..=MAX_STEPS {
                if let Some(start) = starts.first(needed)? {
                    let start = start.start.clone();
                    let made = InverseSqrt { start, newton };
                    all.push(of(NEWTON, Approximation::InverseSqrt(made)));
                }
                needed = before(needed);
            }
        }
        Target::Exp => {
            for squarings in 0..=MAX_SQUARINGS {
                let mut starts = Starts::new(|degree| {
                    let f = Exp::fit(low, high, degree, squarings, bits)?;
                    Ok((f.worst_error_bits(), f))
                });
                if let Some(f) = starts.first(least)? {
                    all.push(of(SQUARINGS, Approximation::Exp(f.clone())));
                }
            }
        }
        Target::Activation(gate) => activations(gate, (low, high), least, &mut all)?,
        Target::Sign | Target::Max => {}
    }
    // What the formulas say of errors after steps holds up to rounding; what counts is measured.
    all.retain(|named| named == current || named.approximation.bits() >= least);
    Ok(undominated(all))
}

fn activations(
    gate: Gate,
    (low, high): (f64, f64),
    least: f64,
    all: &mut Vec<Named>,
) -> Result<(), ApproxError> {
    let mut starts = Starts::new(|degree| {
        let poly = gate.fit(low, high, degree)?;
        let f = Approximation::Activation { gate, poly };
        Ok((f.bits(), f))
    });
    let found = starts.first(least)?.cloned();
    let products = found.as_ref().map_or(u32::MAX, Approximation::products);
    all.extend(found.map(|approximation| Named {
        name: MINIMAX,
        approximation,
    }));
    if products < COMPOSITE_FROM {
        return Ok(());
    }
    for degrees in COMPOSITES {
        let made = Composite::of_degrees(gate, (low, high), degrees)?;
        if made.worst_error_bits() >= least {
            all.push(Named {
                name: COMPOSITE,
                approximation: Approximation::Composite(made),
            });
            break;
        }
    }
    Ok(())
}

/// Without those that another one equals or beats in levels and products; by depth.
fn undominated(mut all: Vec<Named>) -> Vec<Named> {
    let cost = |named: &Named| (named.approximation.depth(), named.approximation.products());
    all.sort_by_key(cost);
    let mut kept: Vec<Named> = Vec::new();
    for named in all {
        let fewer = |known: &Named| cost(known).1 <= cost(&named).1;
        if !kept.iter().any(fewer) {
            kept.push(named);
        }
    }
    kept
}

/// Fits of the degrees, each made once.
struct Starts<A, F> {
    fit: F,
    known: BTreeMap<usize, (f64, A)>,
}

impl<A, F: Fn(usize) -> Result<(f64, A), ApproxError>> Starts<A, F> {
    fn new(fit: F) -> Self {
        Starts {
            fit,
            known: BTreeMap::new(),
        }
    }

    fn at(&mut self, index: usize) -> Result<&(f64, A), ApproxError> {
        let degree = DEGREES[index];
        if !self.known.contains_key(&degree) {
            self.known.insert(degree, (self.fit)(degree)?);
        }
        Ok(&self.known[&degree])
    }

    /// That of the least degree that reaches the bits, if one does: bits grow with the degree.
    fn first(&mut self, bits: f64) -> Result<Option<&A>, ApproxError> {
        let (mut low, mut high) = (0, DEGREES.len());
        while low < high {
            let middle = (low + high) / 2;
            match self.at(middle)?.0 >= bits {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        match low < DEGREES.len() {
            true => Ok(Some(&self.at(low)?.1)),
            false => Ok(None),
        }
    }
}
