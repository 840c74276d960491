//! What was seen where a value must stay in an interval.

use std::collections::BTreeMap;
use std::fmt;
use thiserror::Error;

/// How far beyond an interval counts as noise on its edge, relative to its half width. Chebyshev polynomials, and with them the error of
/// a fit, grow outside as `cosh(degree * sqrt(2 * this))`: 2.2 times for degree 127, 8.4 times for 255, the largest that a chooser takes.
pub const EDGE_SLACK: f64 = 1.0 / (1 << 14) as f64;

/// Name of the site where a node's result is refreshed.
pub fn refresh_site(node: &str) -> String {
    format!("{node} (refresh)")
}

/// The extremes seen at one polynomial or bootstrap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Site {
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Least value seen.
    pub least: f64,
    /// Greatest value seen.
    pub greatest: f64,
}

impl Site {
    /// Whether every value was inside, noise on the edge apart.
    pub fn held(&self) -> bool {
        let slack = EDGE_SLACK * (self.high - self.low) / 2.0;
        self.least >= self.low - slack && self.greatest <= self.high + slack
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "[{:.6}, {:.6}] outside [{}, {}]",
            self.least, self.greatest, self.low, self.high
        )
    }
}

/// The extremes at all sites of a run, by the names of their nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sites(BTreeMap<String, Site>);

/// Values left their intervals; the results of the run mean nothing.
#[derive(Clone, Debug, Error, PartialEq)]
#[error(
    "{site} saw {record} (and {others} more sites left theirs); calibrate wider intervals or bounds"
)]
pub struct LeftInterval {
    /// The first such site.
    pub site: String,
    /// What was seen there.
    pub record: Site,
    /// How many other sites there are.
    pub others: usize,
}

impl Sites {
    /// Notes values at a site. A value that is not a number widens the record to infinity.
    pub fn note(&mut self, name: &str, low: f64, high: f64, values: &[f64]) {
        let fresh = Site {
            low,
            high,
            least: f64::INFINITY,
            greatest: f64::NEG_INFINITY,
        };
        let site = self.0.entry(name.to_owned()).or_insert(fresh);
        for &value in values {
            if value.is_nan() {
                (site.least, site.greatest) = (f64::NEG_INFINITY, f64::INFINITY);
            }
            site.least = site.least.min(value);
            site.greatest = site.greatest.max(value);
        }
    }

    /// All sites by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Site)> {
        self.0.iter().map(|(name, site)| (name.as_str(), site))
    }

    /// An error where a value left its interval.
    pub fn check(&self) -> Result<(), LeftInterval> {
        let mut left = self.0.iter().filter(|(_, site)| !site.held());
        match left.next() {
            None => Ok(()),
            Some((site, record)) => Err(LeftInterval {
                site: site.clone(),
                record: *record,
                others: left.count(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taciturn_approx::{Chebyshev, DEGREES};

    #[test]
    fn the_error_on_the_edge_is_below_nine_times_that_inside() {
        let growth = |degree: usize| {
            let mut coefficients = vec![0.0; degree + 1];
            coefficients[degree] = 1.0;
            let polynomial = Chebyshev {
                low: -1.0,
                high: 1.0,
                coefficients,
            };
            polynomial.evaluate(1.0 + EDGE_SLACK)
        };
        assert!(growth(127) < 2.2, "{}", growth(127));
        let largest = growth(DEGREES[DEGREES.len() - 1]);
        assert!(largest < 8.4, "{largest}");
    }
}
