//! All approximations of a function by name.

use crate::{
    ApproxError, Approximation, Composite, DEGREES, Exp, Gate, Gelu, GeluForm, GoldschmidtInverse,
    GoldschmidtInverseSqrt, Inverse, InverseSqrt, PiecewiseGelu, Sign, Silu,
};

/// Most iterations after a polynomial start.
const ITERATIONS: u32 = 7;
/// Most iterations after a constant.
const ITERATIONS_FROM_CONSTANT: u32 = 40;
/// Newton steps of EncryptedLLM's norm (D.3).
const NEWTON_AFTER_TAYLOR: u32 = 16;
/// Squarings of EncryptedLLM's exponential (D.4).
const SQUARINGS_OF_LIMIT: u32 = 7;

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

/// All approximations of a target on an interval. Those that have a choice are the cheapest that reach `bits`; those that a paper fixes are
/// as it has them, whatever they reach. Signs and maxima have the interval [-1, 1].
pub fn catalogue(target: Target, low: f64, high: f64, bits: f64) -> Vec<Entry> {
    use Approximation as A;
    let entry = |name, source, approximation| Entry {
        name,
        source,
        approximation,
    };
    match target {
        Target::Inverse => vec![
            entry(
                "minimax-newton",
                "own fit",
                Inverse::choose(low, high, bits).map(A::Inverse),
            ),
            entry(
                "minimax-goldschmidt",
                "own fit; Even, Seidel, Ferguson 2005",
                least(
                    target,
                    (low, high, bits),
                    polynomials(
                        |degree| GoldschmidtInverse::fit(low, high, degree, 0),
                        |f, iterations| {
                            A::GoldschmidtInverse(GoldschmidtInverse { iterations, ..f })
                        },
                    ),
                ),
            ),
            entry(
                "constant-goldschmidt",
                "Cachemir, appendix E",
                least(
                    target,
                    (low, high, bits),
                    constants(|iterations| {
                        GoldschmidtInverse::from_constant(low, high, iterations)
                            .map(A::GoldschmidtInverse)
                    }),
                ),
            ),
        ],
        Target::InverseSqrt => vec![
            entry(
                "minimax-newton",
                "own fit",
                InverseSqrt::choose(low, high, bits).map(A::InverseSqrt),
            ),
            entry(
                "minimax-goldschmidt",
                "own fit; Even, Seidel, Ferguson 2005",
                least(
                    target,
                    (low, high, bits),
                    polynomials(
                        |degree| GoldschmidtInverseSqrt::fit(low, high, degree, 0),
                        |f, iterations| {
                            A::GoldschmidtInverseSqrt(GoldschmidtInverseSqrt { iterations, ..f })
                        },
                    ),
                ),
            ),
            entry(
                "constant-goldschmidt",
                "Cachemir, appendix E",
                least(
                    target,
                    (low, high, bits),
                    constants(|iterations| {
                        GoldschmidtInverseSqrt::from_constant(low, high, iterations)
                            .map(A::GoldschmidtInverseSqrt)
                    }),
                ),
            ),
            entry(
                "taylor-newton",
                "EncryptedLLM, D.3",
                InverseSqrt::taylor(low, high, NEWTON_AFTER_TAYLOR).map(A::InverseSqrt),
            ),
        ],
        Target::Exp => vec![
            entry(
                "minimax-squarings",
                "own fit",
                Exp::choose(low, high, bits).map(A::Exp),
            ),
            entry(
                "limit",
                "EncryptedLLM, D.4",
                Exp::limit(low, high, SQUARINGS_OF_LIMIT).map(A::Exp),
            ),
        ],
        Target::Activation(gate) => {
            let gelu = |form| Gelu::choose(form, low, high, bits).map(|f| f.poly);
            let poly = match gate {
                Gate::Logistic => Silu::choose(low, high, bits).map(|f| f.poly),
                Gate::Normal => gelu(GeluForm::Erf),
                Gate::NormalByTanh => gelu(GeluForm::Tanh),
            };
            let mut entries = vec![
                entry(
                    "minimax",
                    "own fit",
                    poly.map(|poly| A::Activation { gate, poly }),
                ),
                entry(
                    "composite",
                    "own fit; form of THOR and Cachemir, appendix E",
                    Composite::choose(gate, low, high, bits).map(A::Composite),
                ),
            ];
            if gate == Gate::NormalByTanh {
                let pieces = PiecewiseGelu::new(high.max(-low)).map(A::Piecewise);
                entries.push(entry("piecewise", "EncryptedLLM, D.2", pieces));
            }
            entries
        }
        Target::Sign => vec![entry(
            "f4-g4",
            "EncryptedLLM, D.1",
            Ok(A::Sign(Sign::TWICE)),
        )],
        Target::Max => vec![entry("f4-g4", "EncryptedLLM, D.1", Ok(A::Max(Sign::TWICE)))],
    }
}

type Candidates<'a> = Box<dyn Iterator<Item = Result<Approximation, ApproxError>> + 'a>;

/// Every degree with every number of iterations; a start is fitted once.
fn polynomials<'a, F: Clone + 'a>(
    fit: impl Fn(usize) -> Result<F, ApproxError> + 'a,
    iterate: impl Fn(F, u32) -> Approximation + Copy + 'a,
) -> Candidates<'a> {
    Box::new(DEGREES.into_iter().flat_map(move |degree| {
        let start = fit(degree);
        (0..=ITERATIONS)
            .map(move |iterations| start.clone().map(|start| iterate(start, iterations)))
    }))
}

fn constants<'a>(make: impl Fn(u32) -> Result<Approximation, ApproxError> + 'a) -> Candidates<'a> {
    Box::new((1..=ITERATIONS_FROM_CONSTANT).map(make))
}

/// The candidate of least depth that reaches the bits; of equal ones the first, which has the lower degree.
fn least(
    target: Target,
    (low, high, bits): (f64, f64, f64),
    candidates: Candidates,
) -> Result<Approximation, ApproxError> {
    let mut chosen: Option<Approximation> = None;
    let mut best = f64::NEG_INFINITY;
    for candidate in candidates {
        let candidate = candidate?;
        if chosen
            .as_ref()
            .is_some_and(|chosen| chosen.depth() <= candidate.depth())
        {
            continue;
        }
        let got = -candidate.worst_error(grid(low, high)).log2();
        if got >= bits {
            chosen = Some(candidate);
        }
        best = best.max(got);
    }
    chosen.ok_or(ApproxError::TooWide {
        function: target.name(),
        low,
        high,
        bits,
        best,
    })
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
