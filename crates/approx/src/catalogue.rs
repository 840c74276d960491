//! All approximations of a function by name.

use crate::{
    ApproxError, Approximation, Composite, DEGREES, Exp, Gate, GoldschmidtInverse,
    GoldschmidtInverseSqrt, Inverse, InverseSqrt, Named, PiecewiseGelu, Sign, interpolate,
};

/// Most iterations after a polynomial start.
const ITERATIONS: u32 = 7;
/// Most iterations after a constant.
const ITERATIONS_FROM_CONSTANT: u32 = 40;
/// Newton steps of EncryptedLLM's norm (D.3).
const NEWTON_AFTER_TAYLOR: u32 = 16;
/// Squarings of EncryptedLLM's exponential (D.4).
const SQUARINGS_OF_LIMIT: u32 = 7;
/// Degree of the GeLU of Orion's kernels (III-D).
const INTERPOLATED_DEGREE: usize = 127;

/// A function that has approximations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// `1/x`.
    Inverse,
    /// `1/sqrt(x)`.
    InverseSqrt,
    /// `exp(x)`.
    Exp,
    /// `x` times a gate.
    Activation(Gate),
    /// The sign, on [-1, 1].
    Sign,
    /// `max(x, 0)`, on [-1, 1].
    Max,
}

impl Target {
    /// As tables call it.
    pub fn name(self) -> &'static str {
        match self {
            Target::Inverse => "1/x",
            Target::InverseSqrt => "1/sqrt(x)",
            Target::Exp => "exp(x)",
            Target::Activation(Gate::Logistic) => "silu(x)",
            Target::Activation(Gate::Normal) => "gelu(x), erf",
            Target::Activation(Gate::NormalByTanh) => "gelu(x), tanh",
            Target::Sign => "sign(x), |x| >= 0.05",
            Target::Max => "max(x, 0)",
        }
    }
}

/// A way of approximating a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Unique for its target.
    pub name: &'static str,
    /// Paper and section.
    pub source: &'static str,
}

pub(crate) const MINIMAX: &str = "minimax";
pub(crate) const NEWTON: &str = "minimax-newton";
pub(crate) const GOLDSCHMIDT: &str = "minimax-goldschmidt";
pub(crate) const CONSTANT_GOLDSCHMIDT: &str = "constant-goldschmidt";
pub(crate) const CONSTANT: &str = "constant";
pub(crate) const TAYLOR: &str = "taylor-newton";
pub(crate) const SQUARINGS: &str = "minimax-squarings";
pub(crate) const LIMIT: &str = "limit";
pub(crate) const COMPOSITE: &str = "composite";
pub(crate) const PIECEWISE: &str = "piecewise";
pub(crate) const INTERPOLATED: &str = "chebyshev-127";
const SIGN: &str = "f4-g4";

const fn row(name: &'static str, source: &'static str) -> Row {
    Row { name, source }
}

const OWN: &str = "own fit";
const GOLDSCHMIDT_SOURCE: &str = "own fit; Even, Seidel, Ferguson 2005";
const CACHEMIR: &str = "Cachemir, appendix E";
const INVERSE: [Row; 4] = [
    row(NEWTON, OWN),
    row(GOLDSCHMIDT, GOLDSCHMIDT_SOURCE),
    row(CONSTANT_GOLDSCHMIDT, CACHEMIR),
    row(CONSTANT, "ConSmax (Liu et al. 2024)"),
];
const INVERSE_SQRT: [Row; 4] = [
    row(NEWTON, OWN),
    row(GOLDSCHMIDT, GOLDSCHMIDT_SOURCE),
    row(CONSTANT_GOLDSCHMIDT, CACHEMIR),
    row(TAYLOR, "EncryptedLLM, D.3"),
];
const EXP: [Row; 2] = [row(SQUARINGS, OWN), row(LIMIT, "EncryptedLLM, D.4")];
const ACTIVATION: [Row; 4] = [
    row(MINIMAX, OWN),
    row(COMPOSITE, "own fit; form of THOR and Cachemir, appendix E"),
    row(INTERPOLATED, "Orion kernels, III-D"),
    row(PIECEWISE, "EncryptedLLM, D.2"),
];
const SIGNS: [Row; 1] = [row(SIGN, "EncryptedLLM, D.1")];

impl Target {
    /// The ways that there are. Only GeLU in its tanh form has pieces.
    pub fn rows(self) -> &'static [Row] {
        match self {
            Target::Inverse => &INVERSE,
            Target::InverseSqrt => &INVERSE_SQRT,
            Target::Exp => &EXP,
            Target::Activation(Gate::NormalByTanh) => &ACTIVATION,
            Target::Activation(_) => &ACTIVATION[..3],
            Target::Sign | Target::Max => &SIGNS,
        }
    }

    /// The approximation of a row on an interval. Where it has a choice it is the cheapest that reaches `bits`; what a paper fixes is as the paper
    /// has it, whatever it reaches. Signs and maxima have the interval [-1, 1].
    pub fn choose(
        self,
        name: &str,
        (low, high): (f64, f64),
        bits: f64,
    ) -> Result<Named, ApproxError> {
        use Approximation as A;
        let request = (low, high, bits);
        let approximation = match (self, name) {
            (Target::Inverse, NEWTON) => Inverse::choose(low, high, bits).map(A::Inverse),
            (Target::Inverse, GOLDSCHMIDT) => least(self, request, |degree| {
                let start = GoldschmidtInverse::fit(low, high, degree, 0)?;
                Ok(move |iterations| {
                    A::GoldschmidtInverse(GoldschmidtInverse {
                        iterations,
                        ..start.clone()
                    })
                })
            }),
            (Target::Inverse, CONSTANT_GOLDSCHMIDT) => first(self, request, |iterations| {
                GoldschmidtInverse::from_constant(low, high, iterations).map(A::GoldschmidtInverse)
            }),
            (Target::Inverse, CONSTANT) => Inverse::constant(low, high).map(A::Inverse),
            (Target::InverseSqrt, NEWTON) => {
                InverseSqrt::choose(low, high, bits).map(A::InverseSqrt)
            }
            (Target::InverseSqrt, GOLDSCHMIDT) => least(self, request, |degree| {
                let start = GoldschmidtInverseSqrt::fit(low, high, degree, 0)?;
                Ok(move |iterations| {
                    A::GoldschmidtInverseSqrt(GoldschmidtInverseSqrt {
                        iterations,
                        ..start.clone()
                    })
                })
            }),
            (Target::InverseSqrt, CONSTANT_GOLDSCHMIDT) => first(self, request, |iterations| {
                GoldschmidtInverseSqrt::from_constant(low, high, iterations)
                    .map(A::GoldschmidtInverseSqrt)
            }),
            (Target::InverseSqrt, TAYLOR) => {
                InverseSqrt::taylor(low, high, NEWTON_AFTER_TAYLOR).map(A::InverseSqrt)
            }
            (Target::Exp, SQUARINGS) => Exp::choose(low, high, bits).map(A::Exp),
            (Target::Exp, LIMIT) => Exp::limit(low, high, SQUARINGS_OF_LIMIT).map(A::Exp),
            (Target::Activation(gate), MINIMAX) => gate
                .choose(low, high, bits)
                .map(|poly| A::Activation { gate, poly }),
            (Target::Activation(gate), COMPOSITE) => {
                Composite::choose(gate, low, high, bits).map(A::Composite)
            }
            (Target::Activation(gate), INTERPOLATED) => {
                interpolate(|x| gate.activation(x), low, high, INTERPOLATED_DEGREE)
                    .map(|poly| A::Activation { gate, poly })
            }
            (Target::Activation(Gate::NormalByTanh), PIECEWISE) => {
                PiecewiseGelu::new(high.max(-low)).map(A::Piecewise)
            }
            (Target::Sign, SIGN) => Ok(A::Sign(Sign::TWICE)),
            (Target::Max, SIGN) => Ok(A::Max(Sign::TWICE)),
            _ => Err(self.unknown(name)),
        }?;
        let row = self.rows().iter().find(|row| row.name == name);
        let name = row.ok_or_else(|| self.unknown(name))?.name;
        Ok(Named {
            name,
            approximation,
        })
    }

    /// That there is no such way.
    pub(crate) fn unknown(self, got: &str) -> ApproxError {
        let names: Vec<&str> = self.rows().iter().map(|row| row.name).collect();
        ApproxError::Unknown {
            function: self.name(),
            expected: names.join(", "),
            got: got.to_owned(),
        }
    }
}

/// An approximation with its name and where it is from.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Unique for its target.
    pub name: &'static str,
    /// Paper and section.
    pub source: &'static str,
    /// Or why there is none on this interval for these bits.
    pub approximation: Result<Approximation, ApproxError>,
}

/// All approximations of a target on an interval, as [`Target::choose`] has them.
pub fn catalogue(target: Target, low: f64, high: f64, bits: f64) -> Vec<Entry> {
    let rows = target.rows().iter();
    rows.map(|row| Entry {
        name: row.name,
        source: row.source,
        approximation: (target.choose(row.name, (low, high), bits))
            .map(|named| named.approximation),
    })
    .collect()
}

/// Of every degree with every number of iterations, that of least depth that reaches the bits; of equal ones the one of the lower degree. A
/// start is fitted once.
fn least<F: Fn(u32) -> Approximation>(
    target: Target,
    request: (f64, f64, f64),
    start: impl Fn(usize) -> Result<F, ApproxError>,
) -> Result<Approximation, ApproxError> {
    let mut search = Search::new(target, request);
    for degree in DEGREES {
        let iterated = start(degree)?;
        (0..=ITERATIONS).for_each(|iterations| search.meet(iterated(iterations)));
    }
    search.end()
}

/// The fewest iterations after a constant that reach the bits.
fn first(
    target: Target,
    request: (f64, f64, f64),
    make: impl Fn(u32) -> Result<Approximation, ApproxError>,
) -> Result<Approximation, ApproxError> {
    let mut search = Search::new(target, request);
    for iterations in 1..=ITERATIONS_FROM_CONSTANT {
        search.meet(make(iterations)?);
        if search.chosen.is_some() {
            break;
        }
    }
    search.end()
}

/// The approximation of least depth so far that reaches the bits.
struct Search {
    target: Target,
    request: (f64, f64, f64),
    chosen: Option<Approximation>,
    best: f64,
}

impl Search {
    fn new(target: Target, request: (f64, f64, f64)) -> Self {
        Search {
            target,
            request,
            chosen: None,
            best: f64::NEG_INFINITY,
        }
    }

    fn meet(&mut self, candidate: Approximation) {
        let known = self.chosen.as_ref();
        if known.is_some_and(|known| known.depth() <= candidate.depth()) {
            return;
        }
        let got = candidate.bits();
        self.best = self.best.max(got);
        if got >= self.request.2 {
            self.chosen = Some(candidate);
        }
    }

    fn end(self) -> Result<Approximation, ApproxError> {
        let (low, high, bits) = self.request;
        self.chosen.ok_or(ApproxError::TooWide {
            function: self.target.name(),
            low,
            high,
            bits,
            best: self.best,
        })
    }
}

/// Points on which errors are measured: half of them equally far apart, half of them denser towards both ends.
pub fn grid(low: f64, high: f64) -> impl Iterator<Item = f64> {
    const HALF: usize = 10_000;
    let at = move |share: f64| (low + (high - low) * share).clamp(low, high);
    (0..=HALF).flat_map(move |k| {
        let t = k as f64 / HALF as f64;
        [at(t), at((1.0 - (t * std::f64::consts::PI).cos()) / 2.0)]
    })
}
