//! The non-linear functions of a step, and what each is approximated by: by default, by name, or as a planner chooses.

use std::collections::BTreeMap;

use rayon::prelude::*;
use taciturn_approx::{
    ApproxError, Approximation, Calibration, ENOUGH_BITS, Gate, Named, SiteRange, Target,
    candidates,
};

use super::selection::Selection;
use crate::config::{Activation, ModelConfig};
use crate::error::ModelError;
use crate::observe::denominator_name;
use crate::softmax::{COARSE_BITS, Rounds, named};

/// Bits that an approximation is chosen for: of relative error for the norms and the last division, of the largest value for the
/// exponential, of absolute error for the activation. An error of 2^-14 in any of them moves a logit by about 2^-10 of its range.
const NORM_BITS: f64 = 16.0;
const EXP_BITS: f64 = 16.0;
const INVERSE_BITS: f64 = 14.0;
const ACTIVATION_BITS: f64 = 14.0;
/// Of a coarse division, which only has to keep the next sums in their interval.
const COARSE_LEAST_BITS: f64 = 1.0;

/// A non-linear function of a step with its approximation.
#[derive(Clone, Debug)]
pub struct StepSite {
    /// Its name in the calibration table.
    pub site: String,
    /// Its name in the graph.
    pub node: String,
    /// What is approximated.
    pub target: Target,
    /// Share by which the calibration widened what it saw.
    pub margin: f64,
    /// By what. Its interval has the margin, and what earlier errors add.
    pub named: Named,
    /// Whether somebody asked for it.
    pub selected: bool,
    /// What a planner chose it from, itself included, by depth; empty where none did.
    pub alternatives: Vec<Named>,
    /// Bits asked for, and bits beyond which more make no difference.
    bits: (f64, f64),
}

/// All names by which a selection finds a site: its own, that without what is measured there, one by the part of the model, and its function's.
fn names(site: &str, target: Target) -> [String; 4] {
    let kind = match target {
        Target::Inverse => "inverse",
        Target::InverseSqrt => "norm",
        Target::Exp => "exp",
        Target::Activation(Gate::Logistic) => "silu",
        Target::Activation(_) => "gelu",
        Target::Sign | Target::Max => "sign",
    };
    let part = match target {
        Target::Exp => site.replace(".exponents", ".softmax.exp"),
        Target::Inverse => site.replace(".denominator", ".softmax.inverse"),
        _ => site.replace(".hidden", &format!(".{kind}")),
    };
    let short = site.trim_end_matches(".variance");
    [site.to_owned(), short.to_owned(), part, kind.to_owned()]
}

/// All of them, in the order of a step.
pub(super) struct Sites(pub(super) Vec<StepSite>);

/// Where sites are collected.
struct Collector<'a> {
    calibration: &'a Calibration,
    selection: &'a Selection,
    sites: Vec<StepSite>,
}

impl Sites {
    /// Those of a calibrated model, with the approximations that are selected and the default ones for the others.
    pub(super) fn new(
        config: &ModelConfig,
        calibration: &Calibration,
        selection: &Selection,
    ) -> Result<Self, ModelError> {
        let layers = (0..config.layers).into_par_iter().map(|layer| {
            let mut collector = Collector {
                calibration,
                selection,
                sites: Vec::new(),
            };
            collector.layer(config, layer)?;
            Ok(collector.sites)
        });
        // Of several errors the first layer's is told.
        let layers: Vec<Result<Vec<StepSite>, ModelError>> = layers.collect();
        let layers: Vec<Vec<StepSite>> = layers.into_iter().collect::<Result<_, _>>()?;
        let mut last = Collector {
            calibration,
            selection,
            sites: Vec::new(),
        };
        last.norm("final.variance".to_owned(), "final.norm".to_owned())?;
        let sites = Sites(layers.into_iter().flatten().chain(last.sites).collect());
        let names = sites.0.iter().map(|site| names(&site.site, site.target));
        selection.check(&names.collect::<Vec<_>>())?;
        Ok(sites)
    }

    /// The approximation at a site.
    pub(super) fn at(&self, site: &str) -> Result<&Approximation, ModelError> {
        let found = self.0.iter().find(|known| known.site == site);
        match found {
            Some(found) => Ok(&found.named.approximation),
            None => Err(taciturn_approx::CalibrationError::Missing {
                site: site.to_owned(),
            }
            .into()),
        }
    }

    /// Names by site.
    pub(super) fn labels(&self) -> BTreeMap<String, String> {
        let label = |site: &StepSite| (site.site.clone(), site.named.to_string());
        self.0.iter().map(label).collect()
    }

    /// What a planner may choose among: of selected sites that alone.
    pub(super) fn find_alternatives(&mut self) -> Result<(), ModelError> {
        self.0.par_iter_mut().try_for_each(|site| {
            let (bits, enough) = site.bits;
            site.alternatives = match site.selected {
                true => vec![site.named.clone()],
                false => {
                    candidates(&site.named, bits, enough).map_err(|source| ModelError::Site {
                        site: site.site.clone(),
                        source,
                    })?
                }
            };
            Ok(())
        })
    }

    /// The same sites, each with its `variant`-th alternative or the last.
    pub(super) fn variant(&self, variant: usize) -> Sites {
        let chosen = |site: &StepSite| {
            let last = site.alternatives.len().saturating_sub(1);
            let named = site.alternatives.get(variant.min(last));
            StepSite {
                named: named.unwrap_or(&site.named).clone(),
                ..site.clone()
            }
        };
        Sites(self.0.iter().map(chosen).collect())
    }
}

/// A site before its approximation is known.
struct Place<'r> {
    site: String,
    node: String,
    range: &'r SiteRange,
    target: Target,
    interval: (f64, f64),
    bits: f64,
    enough: f64,
}

impl Place<'_> {
    /// An approximation that is one: whose error is smaller than what it is relative to.
    fn fits(&self, named: Named) -> Result<Named, ApproxError> {
        let best = named.approximation.bits();
        match best > 0.0 {
            true => Ok(named),
            false => Err(ApproxError::TooWide {
                function: self.target.name(),
                low: self.interval.0,
                high: self.interval.1,
                bits: 0.0,
                best,
            }),
        }
    }
}

impl<'a> Collector<'a> {
    /// A site on the interval of the calibration.
    fn place(
        &self,
        site: String,
        node: String,
        target: Target,
        bits: f64,
    ) -> Result<Place<'a>, ModelError> {
        let range = self.calibration.site(&site)?;
        Ok(Place {
            site,
            node,
            range,
            target,
            interval: (range.low(), range.high()),
            bits,
            enough: ENOUGH_BITS,
        })
    }

    /// A site with the approximation that is selected, or `default`.
    fn add(
        &mut self,
        place: Place<'a>,
        default: impl FnOnce(&Place<'a>) -> Result<Named, ModelError>,
    ) -> Result<(), ModelError> {
        let names = names(&place.site, place.target);
        let selected = self.selection.find(&names);
        let named = match selected {
            None => default(&place)?,
            Some(name) => {
                let named = Named::parse(place.target, name, place.interval, place.bits);
                let fits = named.and_then(|named| place.fits(named));
                fits.map_err(|source| ModelError::Site {
                    site: place.site.clone(),
                    source,
                })?
            }
        };
        self.sites.push(StepSite {
            margin: place.range.margin,
            named,
            selected: selected.is_some(),
            alternatives: Vec::new(),
            bits: (place.bits, place.enough),
            site: place.site,
            node: place.node,
            target: place.target,
        });
        Ok(())
    }

    /// The same where the default is the first row of the catalogue.
    fn add_chosen(&mut self, place: Place<'a>) -> Result<(), ModelError> {
        self.add(place, |place| {
            let first = place.target.rows()[0].name;
            let chosen = place.target.choose(first, place.interval, place.bits);
            chosen.map_err(|source| ModelError::Site {
                site: place.site.clone(),
                source,
            })
        })
    }

    fn layer(&mut self, config: &ModelConfig, layer: usize) -> Result<(), ModelError> {
        let part = |part: &str| format!("layer{layer}.{part}");
        self.norm(part("norm1.variance"), part("norm1"))?;
        for norm in ["query_norm", "key_norm"] {
            let site = part(&format!("{norm}.variance"));
            if self.calibration.sites.contains_key(&site) {
                self.norm(site, part(&format!("attention.{norm}")))?;
            }
        }
        let exp = (part("exponents"), part("attention.exp"));
        let exp = self.place(exp.0, exp.1, Target::Exp, EXP_BITS)?;
        self.add_chosen(exp)?;
        self.divisions(layer)?;
        self.norm(part("norm2.variance"), part("norm2"))?;
        let gate = match config.activation {
            Activation::GeluTanh => Gate::NormalByTanh,
            Activation::GeluErf => Gate::Normal,
            Activation::Silu => Gate::Logistic,
        };
        let target = Target::Activation(gate);
        let hidden = self.place(part("hidden"), part("mlp"), target, ACTIVATION_BITS)?;
        // The interval has to contain zero, where padding sits.
        let edge = 1e-3 * hidden.range.bound;
        let (low, high) = hidden.interval;
        self.add_chosen(Place {
            interval: (low.min(-edge), high.max(edge)),
            ..hidden
        })
    }

    fn norm(&mut self, site: String, node: String) -> Result<(), ModelError> {
        let place = self.place(site, node, Target::InverseSqrt, NORM_BITS)?;
        self.add_chosen(place)
    }

    fn divisions(&mut self, layer: usize) -> Result<(), ModelError> {
        let mut rounds = Rounds::new(layer);
        let squarings = self.calibration.softmax_squarings;
        for round in 0..=squarings {
            let last = round == squarings;
            let node = match last {
                true => format!("layer{layer}.attention.denominator"),
                false => format!("layer{layer}.attention.round{round}.denominator"),
            };
            let site = denominator_name(layer, round);
            let sums = self.place(site, node, Target::Inverse, INVERSE_BITS)?;
            let interval = rounds.interval(sums.interval);
            let sums = Place { interval, ..sums };
            if last {
                return self.add_chosen(sums);
            }
            let sums = Place {
                bits: COARSE_LEAST_BITS,
                enough: COARSE_BITS,
                ..sums
            };
            self.add(sums, |sums| Ok(named(rounds.coarse(sums.interval)?)))?;
            if let Some(division) = self.sites.last() {
                rounds.divided(&division.named)?;
            }
        }
        Ok(())
    }
}
