//! Calibration tables: the interval of every value in a model, measured on sample text and widened by a margin.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Version of the table that this crate writes and accepts.
pub const CALIBRATION_VERSION: u32 = 1;
/// Fewest tokens of a window: the beginning-of-text token and one to predict from.
const MIN_CONTEXT: usize = 2;
/// Most squarings of a softmax; each costs levels, and 2^8 takes any score to where one exponential is enough.
const MAX_SQUARINGS: u32 = 8;

/// A calibration table that cannot be used.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum CalibrationError {
    /// The table has another version.
    #[error(
        "calibration table: expected version {CALIBRATION_VERSION}, got {got}; calibrate the model again"
    )]
    Version {
        /// Version found.
        got: u32,
    },
    /// The table was made for other weights.
    #[error(
        "calibration table: expected one for model {expected}, got one for {got}; calibrate the model again"
    )]
    Model {
        /// Hash of the model at hand.
        expected: String,
        /// Hash in the table.
        got: String,
    },
    /// A site is not in the table.
    #[error(
        "calibration table: expected an entry for `{site}`, got nothing; calibrate the model again"
    )]
    Missing {
        /// Name of the site or constant.
        site: String,
    },
    /// A number of the table itself is out of its range.
    #[error(
        "calibration table: `{field}`: expected {expected}, got {got}; calibrate the model again"
    )]
    Field {
        /// Name of the field.
        field: String,
        /// What it may be.
        expected: String,
        /// What it is.
        got: String,
    },
    /// An entry makes no sense.
    #[error(
        "calibration table: `{site}`: expected finite values with min <= max for each head, got {got}"
    )]
    Entry {
        /// Name of the site or constant.
        site: String,
        /// What is wrong.
        got: String,
    },
}

/// The values at one site: one interval, or one per head.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct SiteRange {
    /// Lower end, margin included; one entry, or one per head.
    pub min: Vec<f64>,
    /// Upper end, margin included.
    pub max: Vec<f64>,
    /// The margin applied. Signed values: each end moved out by this share of the interval's length. Positive values
    /// whose ratio matters (variances, denominators): ends divided and multiplied by `1 + margin`.
    pub margin: f64,
    /// Number of tokens observed.
    pub samples: u64,
    /// Largest absolute value, margin included: what a bootstrap of this value has to carry.
    pub bound: f64,
}

impl SiteRange {
    /// A range from observed ends of a signed value.
    pub fn signed(min: &[f64], max: &[f64], margin: f64, samples: u64) -> Self {
        let slack = |k: usize| margin * (max[k] - min[k]);
        let low: Vec<f64> = (0..min.len()).map(|k| min[k] - slack(k)).collect();
        let high: Vec<f64> = (0..min.len()).map(|k| max[k] + slack(k)).collect();
        Self::from_ends(low, high, margin, samples)
    }

    /// A range from observed ends of a positive value.
    pub fn positive(min: &[f64], max: &[f64], margin: f64, samples: u64) -> Self {
        let low = min.iter().map(|v| v / (1.0 + margin)).collect();
        let high = max.iter().map(|v| v * (1.0 + margin)).collect();
        Self::from_ends(low, high, margin, samples)
    }

    fn from_ends(min: Vec<f64>, max: Vec<f64>, margin: f64, samples: u64) -> Self {
        let bound = min
            .iter()
            .chain(&max)
            .fold(0.0, |bound: f64, v| bound.max(v.abs()));
        Self {
            min,
            max,
            margin,
            samples,
            bound,
        }
    }

    /// Lowest lower end.
    pub fn low(&self) -> f64 {
        self.min.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Highest upper end.
    pub fn high(&self) -> f64 {
        self.max.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// What is wrong with the range, if anything.
    fn defect(&self) -> Option<String> {
        if self.min.is_empty() || self.min.len() != self.max.len() {
            return Some(format!(
                "{} lower and {} upper ends",
                self.min.len(),
                self.max.len()
            ));
        }
        let ends = self.min.iter().zip(&self.max);
        // Written so that a NaN is a defect as well.
        if let Some((min, max)) = ends
            .into_iter()
            .find(|(min, max)| !(min <= max && (*max - *min).is_finite()))
        {
            return Some(format!("[{min}, {max}]"));
        }
        if !(self.margin >= 0.0 && self.margin.is_finite()) {
            return Some(format!("margin {}", self.margin));
        }
        let needed = self.low().abs().max(self.high().abs());
        (!(self.bound > 0.0 && self.bound >= needed && self.bound.is_finite())).then(|| {
            format!(
                "bound {}, which has to be positive and at least {needed}",
                self.bound
            )
        })
    }
}

/// Intervals and constants of one model, kept beside its checkpoint.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Calibration {
    /// Version of this format.
    pub version: u32,
    /// BLAKE3 of the checkpoint that was measured, in hexadecimal.
    pub model_hash: String,
    /// Tokens per window of the measurement, the beginning-of-text token included.
    pub context: usize,
    /// The softmax is taken as `normalise(exp(score / 2^r))` followed by r rounds of squaring and normalising.
    pub softmax_squarings: u32,
    /// Ranges by site name.
    pub sites: BTreeMap<String, SiteRange>,
    /// Largest magnitude of the encrypted step's values by name, margin included: what a bootstrap has to carry.
    #[serde(default)]
    pub bounds: BTreeMap<String, f64>,
    /// Constants that the ranges assume, by name (a softmax's beta, shifts of keys).
    pub constants: BTreeMap<String, Vec<f64>>,
}

impl Calibration {
    /// Accepts a table only if its version is this crate's, it was made for the model with that hash, every entry is
    /// finite and ordered, and all sites with several entries have equally many. Call it on every table that comes from a
    /// file.
    pub fn check(&self, model_hash: &str) -> Result<(), CalibrationError> {
        if self.version != CALIBRATION_VERSION {
            return Err(CalibrationError::Version { got: self.version });
        }
        if self.model_hash != model_hash {
            return Err(CalibrationError::Model {
                expected: model_hash.into(),
                got: self.model_hash.clone(),
            });
        }
        let field = |field: &str, expected: String, got: String| {
            let field = field.to_owned();
            Err(CalibrationError::Field {
                field,
                expected,
                got,
            })
        };
        if self.context < MIN_CONTEXT {
            let expected = format!("at least {MIN_CONTEXT} tokens");
            return field("context", expected, self.context.to_string());
        }
        if self.softmax_squarings > MAX_SQUARINGS {
            let expected = format!("at most {MAX_SQUARINGS}");
            return field(
                "softmax_squarings",
                expected,
                self.softmax_squarings.to_string(),
            );
        }
        // Written so that a NaN is refused as well.
        if let Some((name, bound)) = self
            .bounds
            .iter()
            .find(|(_, bound)| !(**bound > 0.0 && bound.is_finite()))
        {
            let expected = "a finite positive bound".to_owned();
            return field(&format!("bounds.{name}"), expected, bound.to_string());
        }
        let mut heads = None;
        for (site, range) in &self.sites {
            if let Some(got) = range.defect() {
                return Err(CalibrationError::Entry {
                    site: site.clone(),
                    got,
                });
            }
            let entries = range.min.len();
            if entries > 1 {
                let heads = *heads.get_or_insert(entries);
                if heads != entries {
                    return Err(CalibrationError::Entry {
                        site: site.clone(),
                        got: format!("{entries} entries where another site has {heads}"),
                    });
                }
            }
        }
        for (name, values) in &self.constants {
            if let Some(bad) = values.iter().find(|v| !v.is_finite()) {
                return Err(CalibrationError::Entry {
                    site: name.clone(),
                    got: bad.to_string(),
                });
            }
        }
        Ok(())
    }

    /// The range of a site.
    pub fn site(&self, name: &str) -> Result<&SiteRange, CalibrationError> {
        self.sites
            .get(name)
            .ok_or_else(|| CalibrationError::Missing { site: name.into() })
    }

    /// A constant of `length` values.
    pub fn constant(&self, name: &str, length: usize) -> Result<&[f64], CalibrationError> {
        let values = self
            .constants
            .get(name)
            .ok_or_else(|| CalibrationError::Missing { site: name.into() })?;
        if values.len() != length {
            let got = format!("{} values instead of {length}", values.len());
            return Err(CalibrationError::Entry {
                site: name.into(),
                got,
            });
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Calibration {
        let sites = [
            (
                "a".to_owned(),
                SiteRange::signed(&[-1.0, 0.0], &[1.0, 4.0], 0.25, 10),
            ),
            ("b".to_owned(), SiteRange::positive(&[0.5], &[2.0], 1.0, 10)),
        ];
        Calibration {
            version: CALIBRATION_VERSION,
            model_hash: "h".into(),
            context: 8,
            softmax_squarings: 2,
            bounds: BTreeMap::new(),
            sites: sites.into(),
            constants: [("beta".to_owned(), vec![1.0, 2.0])].into(),
        }
    }

    #[test]
    fn margins_widen_each_kind_its_own_way() {
        let table = table();
        let a = table.site("a").unwrap();
        assert_eq!(
            (a.min.as_slice(), a.max.as_slice(), a.bound),
            (&[-1.5, -1.0][..], &[1.5, 5.0][..], 5.0)
        );
        let b = table.site("b").unwrap();
        assert_eq!((b.low(), b.high()), (0.25, 4.0));
        table.check("h").unwrap();
    }

    #[test]
    fn a_table_for_anything_else_is_refused() {
        assert!(matches!(
            table().check("other"),
            Err(CalibrationError::Model { .. })
        ));
        assert!(matches!(
            Calibration {
                version: 9,
                ..table()
            }
            .check("h"),
            Err(CalibrationError::Version { got: 9 })
        ));
        assert!(matches!(
            table().site("c"),
            Err(CalibrationError::Missing { .. })
        ));
        assert!(matches!(
            table().constant("beta", 3),
            Err(CalibrationError::Entry { .. })
        ));
        type Spoil = fn(&mut SiteRange);
        let spoils: [Spoil; 6] = [
            |r| r.min[0] = f64::NAN,
            |r| r.max[0] = f64::INFINITY,
            |r| r.min.clear(),
            |r| r.max[0] = -9.0,
            |r| r.bound = 0.1,
            |r| r.margin = -1.0,
        ];
        for spoil in spoils {
            let mut bad = table();
            spoil(bad.sites.get_mut("a").unwrap());
            assert!(matches!(
                bad.check("h"),
                Err(CalibrationError::Entry { .. })
            ));
        }
    }
    #[test]
    fn numbers_that_would_break_a_run_are_refused() {
        type Spoil = fn(&mut Calibration);
        let fields: [(&str, Spoil); 6] = [
            ("context", |t| t.context = 0),
            ("context", |t| t.context = 1),
            ("softmax_squarings", |t| t.softmax_squarings = 9),
            ("bounds.x", |t| t.bounds = [("x".to_owned(), 0.0)].into()),
            ("bounds.x", |t| {
                t.bounds = [("x".to_owned(), f64::NAN)].into();
            }),
            ("bounds.x", |t| {
                t.bounds = [("x".to_owned(), f64::INFINITY)].into();
            }),
        ];
        for (name, spoil) in fields {
            let mut bad = table();
            spoil(&mut bad);
            match bad.check("h") {
                Err(CalibrationError::Field { field, .. }) => assert_eq!(field, name),
                other => panic!("{name}: {other:?}"),
            }
        }
        let mut bad = table();
        let three = SiteRange::signed(&[0.0; 3], &[1.0; 3], 0.0, 1);
        bad.sites.insert("c".into(), three);
        assert!(matches!(
            bad.check("h"),
            Err(CalibrationError::Entry { site, .. }) if site == "c"
        ));
    }
}
