//! What every non-linear function of a step is approximated by.

use taciturn_approx::{Calibration, Chebyshev, Exp, Inverse, InverseSqrt};
use taciturn_graph::{FeedForwardSpec, FunctionKind, NormSpec};

use super::StepModel;
use crate::error::ModelError;
use crate::observe::denominator_name;

/// Points of the grid on which an activation's error is measured.
const GRID: usize = 20_000;

/// A site with its approximation.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteApproximation {
    /// Its name in the calibration table.
    pub site: String,
    /// What is approximated.
    pub function: &'static str,
    /// Lower end of the interval, margin and what earlier errors add included.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Share by which the calibration widened what it saw.
    pub margin: f64,
    /// Degree of the polynomial.
    pub degree: usize,
    /// What follows it, and how often.
    pub steps: Option<(u32, &'static str)>,
    /// Levels.
    pub depth: u32,
    /// Ciphertext products.
    pub products: u32,
    /// Bits of the worst error on a grid, measured as the function's choice does it: relative for inverses, of the largest value for
    /// exponentials, absolute for activations.
    pub bits: f64,
}

impl StepModel {
    /// The approximations of all sites in the order of the graph, with the margins of the table that they were chosen from.
    pub fn approximations(
        &self,
        calibration: &Calibration,
    ) -> Result<Vec<SiteApproximation>, ModelError> {
        let mut all = Vec::new();
        let mut add = |site: String, of: SiteApproximation| -> Result<(), ModelError> {
            let margin = calibration.site(&site)?.margin;
            all.push(SiteApproximation { site, margin, ..of });
            Ok(())
        };
        for (number, layer) in self.layers.iter().enumerate() {
            let name = |part: &str| format!("layer{number}.{part}");
            add(name("norm1.variance"), norm(&layer.norm1))?;
            let attention = &layer.attention;
            let head_norms = [
                ("query_norm.variance", &attention.query_norm),
                ("key_norm.variance", &attention.key_norm),
            ];
            for (part, spec) in head_norms {
                if let Some(spec) = spec {
                    add(name(part), norm(spec))?;
                }
            }
            add(name("exponents"), exponential(&attention.exp))?;
            let divisions = attention.rounds.iter().chain([&attention.inverse]);
            for (round, division) in (0u32..).zip(divisions) {
                add(denominator_name(number, round), inverse(division))?;
            }
            add(name("norm2.variance"), norm(&layer.norm2))?;
            add(name("hidden"), activation(&layer.feed_forward))?;
        }
        add("final.variance".to_owned(), norm(&self.final_norm))?;
        Ok(all)
    }
}

/// All but what only the calibration knows.
fn of(
    function: &'static str,
    polynomial: &Chebyshev,
    (steps, step): (u32, &'static str),
    (depth, products, bits): (u32, u32, f64),
) -> SiteApproximation {
    SiteApproximation {
        site: String::new(),
        function,
        low: polynomial.low,
        high: polynomial.high,
        margin: 0.0,
        degree: polynomial.degree(),
        steps: (steps > 0).then_some((steps, step)),
        depth,
        products,
        bits,
    }
}

fn norm(spec: &NormSpec) -> SiteApproximation {
    let f: &InverseSqrt = &spec.inverse_sqrt;
    let cost = (f.depth(), f.products(), f.worst_error_bits());
    of("1/sqrt(x)", &f.start, (f.newton, "Newton"), cost)
}

fn inverse(f: &Inverse) -> SiteApproximation {
    let cost = (f.depth(), f.products(), f.worst_error_bits());
    of("1/x", &f.start, (f.newton, "Newton"), cost)
}

fn exponential(f: &Exp) -> SiteApproximation {
    let cost = (f.depth(), f.products(), f.worst_error_bits());
    of("exp(x)", &f.poly, (f.squarings, "squared"), cost)
}

fn activation(spec: &FeedForwardSpec) -> SiteApproximation {
    let polynomial = &spec.polynomial;
    let function = match spec.kind {
        FunctionKind::GeluTanh => "GeLU (tanh)",
        FunctionKind::GeluErf => "GeLU (erf)",
        FunctionKind::Silu => "SiLU",
        FunctionKind::InverseSqrt | FunctionKind::Inverse | FunctionKind::Exp => "activation",
    };
    let step = (polynomial.high - polynomial.low) / GRID as f64;
    let error = (0..=GRID)
        .map(|i| polynomial.low + i as f64 * step)
        .map(|x| (polynomial.evaluate(x) - spec.kind.evaluate(x)).abs())
        .fold(0.0, f64::max);
    let cost = (polynomial.depth(), polynomial.products(), -error.log2());
    of(function, polynomial, (0, ""), cost)
}
