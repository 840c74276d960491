//! Approximations by name: as a row of the catalogue, or exactly, with the numbers that they are made from.

use std::fmt;

use crate::catalogue::{
    COMPOSITE, CONSTANT_GOLDSCHMIDT, GOLDSCHMIDT, MINIMAX, NEWTON, SQUARINGS, TAYLOR,
};
use crate::{
    ApproxError, Approximation, Composite, Exp, GoldschmidtInverse, GoldschmidtInverseSqrt,
    Inverse, InverseSqrt, Target,
};

/// Most steps that a name can ask for.
const MAX_STEPS: u32 = 40;
/// Most squarings, after which nothing of an exponential is left.
const MAX_SQUARINGS: u32 = 20;
/// Largest degree of a composite's polynomials: the fit of larger ones takes minutes.
const MAX_COMPOSITE: usize = 63;

/// An approximation with the name of its row in the catalogue. It is shown with the numbers that it is made from: `minimax-newton/31+1` has a start
/// of degree 31 and one step, `composite/15x31` an inner and an outer polynomial. [`parse`](Self::parse) reads both.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// As [`Row::name`](crate::Row::name).
    pub name: &'static str,
    /// What it names.
    pub approximation: Approximation,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        let (start, steps) = match (&self.approximation, self.name) {
            (Approximation::Inverse(g), NEWTON) => (&g.start, g.newton),
            (Approximation::InverseSqrt(g), NEWTON | TAYLOR) => (&g.start, g.newton),
            (Approximation::GoldschmidtInverse(g), _) => (&g.start, g.iterations),
            (Approximation::GoldschmidtInverseSqrt(g), _) => (&g.start, g.iterations),
            (Approximation::Exp(g), SQUARINGS) => (&g.poly, g.squarings),
            (Approximation::Activation { poly, .. }, MINIMAX) => (poly, 0),
            (Approximation::Composite(g), _) => {
                return write!(f, "/{}x{}", g.inner.degree(), g.outer.degree());
            }
            _ => return Ok(()),
        };
        write!(f, "/{}", start.degree())?;
        match steps {
            0 => Ok(()),
            _ => write!(f, "+{steps}"),
        }
    }
}

impl Named {
    /// The approximation that a text names on an interval: a row's alone stands for what [`Target::choose`] takes for `bits`; one with numbers for
    /// exactly that, whatever it reaches.
    pub fn parse(
        target: Target,
        text: &str,
        (low, high): (f64, f64),
        bits: f64,
    ) -> Result<Self, ApproxError> {
        use Approximation as A;
        let Some((name, numbers)) = text.split_once('/') else {
            return target.choose(text, (low, high), bits);
        };
        let unknown = || target.unknown(text);
        let row = (target.rows().iter().find(|row| row.name == name)).ok_or_else(unknown)?;
        let number = |text: &str| text.parse::<usize>().map_err(|_| unknown());
        let approximation = match numbers.split_once('x') {
            Some((inner, outer)) => {
                let degrees = (number(inner)?, number(outer)?);
                let (Target::Activation(gate), COMPOSITE, true) =
                    (target, name, degrees.0 > 0 && degrees.1 > 0)
                else {
                    return Err(unknown());
                };
                if let Some(got) = [degrees.0, degrees.1]
                    .into_iter()
                    .find(|d| *d > MAX_COMPOSITE)
                {
                    return Err(ApproxError::Degree {
                        limit: MAX_COMPOSITE,
                        got,
                    });
                }
                A::Composite(Composite::of_degrees(gate, (low, high), degrees)?)
            }
            None => {
                let (degree, steps) = numbers.split_once('+').unwrap_or((numbers, "0"));
                let (degree, steps) = (number(degree)?, number(steps)?);
                let steps = u32::try_from(steps)
                    .ok()
                    .filter(|steps| *steps <= MAX_STEPS);
                let steps = steps.ok_or_else(unknown)?;
                match (target, name, degree, steps) {
                    (Target::Inverse, NEWTON, 1.., _) => {
                        A::Inverse(Inverse::fit(low, high, degree, steps)?)
                    }
                    (Target::Inverse, GOLDSCHMIDT, 1.., _) => {
                        A::GoldschmidtInverse(GoldschmidtInverse::fit(low, high, degree, steps)?)
                    }
                    (Target::Inverse, CONSTANT_GOLDSCHMIDT, 0, 1..) => {
                        A::GoldschmidtInverse(GoldschmidtInverse::from_constant(low, high, steps)?)
                    }
                    (Target::InverseSqrt, NEWTON, 1.., _) => {
                        A::InverseSqrt(InverseSqrt::fit(low, high, degree, steps)?)
                    }
                    (Target::InverseSqrt, GOLDSCHMIDT, 1.., _) => A::GoldschmidtInverseSqrt(
                        GoldschmidtInverseSqrt::fit(low, high, degree, steps)?,
                    ),
                    (Target::InverseSqrt, CONSTANT_GOLDSCHMIDT, 0, 1..) => {
                        A::GoldschmidtInverseSqrt(GoldschmidtInverseSqrt::from_constant(
                            low, high, steps,
                        )?)
                    }
                    (Target::InverseSqrt, TAYLOR, 3, _) => {
                        A::InverseSqrt(InverseSqrt::taylor(low, high, steps)?)
                    }
                    (Target::Exp, SQUARINGS, 1.., ..=MAX_SQUARINGS) => {
                        A::Exp(Exp::fit(low, high, degree, steps, bits)?)
                    }
                    (Target::Activation(gate), MINIMAX, 1.., 0) => A::Activation {
                        gate,
                        poly: gate.fit(low, high, degree)?,
                    },
                    _ => return Err(unknown()),
                }
            }
        };
        Ok(Named {
            name: row.name,
            approximation,
        })
    }
}
