//! The table of approximations, site by site.

use anyhow::Result;
use serde::Serialize;
use taciturn_approx::Named;
use taciturn_graph::{CostTable, Counter, Level, approximate};
use taciturn_models::StepSite;

use crate::setup::Setup;

/// One site.
#[derive(Serialize)]
pub struct SiteReport {
    site: String,
    function: &'static str,
    low: f64,
    high: f64,
    margin: f64,
    /// Whether the command line asked for the approximation.
    selected: bool,
    /// What the plan takes for it, refreshes inside included.
    plan_ms: f64,
    #[serde(flatten)]
    chosen: Choice,
    /// What else the plan could have chosen.
    alternatives: Vec<Choice>,
}

/// An approximation of a site.
#[derive(Serialize)]
struct Choice {
    approximation: String,
    depth: u32,
    products: u32,
    /// Of the worst error: relative for inverses, of the largest value for exponentials, absolute for activations.
    bits: f64,
    /// From an argument at the level that it takes to a result at level 0; none where there are fewer levels.
    #[serde(skip_serializing_if = "Option::is_none")]
    alone_ms: Option<f64>,
}

impl Choice {
    fn new(named: &Named, slots: usize, table: &CostTable) -> Result<Self> {
        let approximation = &named.approximation;
        let depth = approximation.depth();
        let alone_ms = match depth <= table.max_level().0 {
            true => {
                let mut counter = Counter::new(slots, table);
                approximate(&mut counter, approximation, &Level(depth))?;
                Some(counter.milliseconds())
            }
            false => None,
        };
        Ok(Choice {
            approximation: named.to_string(),
            depth,
            products: approximation.products(),
            bits: approximation.bits(),
            alone_ms,
        })
    }
}

/// All sites of a model under its plan.
pub fn sites(setup: &Setup, context: usize) -> Result<Vec<SiteReport>> {
    let graph = setup.model.graph(context - 1)?;
    let (slots, table) = (setup.params.slots(), &setup.costs.table);
    let report = |site: &StepSite| -> Result<SiteReport> {
        let nodes = (graph.sites().iter()).find(|(name, _)| *name == site.node);
        let nodes = nodes.map_or(0..0, |(_, nodes)| nodes.clone());
        let planned = graph.nodes()[nodes].iter();
        let microseconds =
            planned.filter_map(|node| Some(setup.plan.node(&node.name).ok()?.microseconds));
        let (low, high) = site.named.approximation.interval();
        let label = site.named.to_string();
        let alternatives = site.alternatives.iter();
        let others = alternatives.filter(|other| other.to_string() != label);
        Ok(SiteReport {
            site: site.site.clone(),
            function: site.target.name(),
            low,
            high,
            margin: site.margin,
            selected: site.selected,
            plan_ms: microseconds.sum::<u64>() as f64 / 1e3,
            chosen: Choice::new(&site.named, slots, table)?,
            alternatives: others
                .map(|other| Choice::new(other, slots, table))
                .collect::<Result<_>>()?,
        })
    };
    setup.model.sites().iter().map(report).collect()
}

impl SiteReport {
    /// For people: under each site what else it could be.
    pub fn table(sites: &[SiteReport]) -> String {
        let mut out = format!(
            "{:<24} {:<14} {:>24} {:>7} {:<26} {:>6} {:>9} {:>6} {:>9} {:>9}\n",
            "site",
            "function",
            "interval",
            "margin",
            "approximation",
            "levels",
            "products",
            "bits",
            "alone ms",
            "plan ms"
        );
        for site in sites {
            let interval = format!("[{:.4}, {:.4}]", site.low, site.high);
            let mark = if site.selected { " *" } else { "" };
            out += &format!(
                "{:<24} {:<14} {interval:>24} {:>6.0}% {} {:>9.0}{mark}\n",
                site.site,
                site.function,
                100.0 * site.margin,
                site.chosen.columns(),
                site.plan_ms,
            );
            for other in &site.alternatives {
                out += &format!("{:>72} {}\n", "or", other.columns());
            }
        }
        if sites.iter().any(|site| site.selected) {
            out += "* asked for by --approximation\n";
        }
        out
    }
}

impl Choice {
    fn columns(&self) -> String {
        let alone = match self.alone_ms {
            Some(ms) => format!("{ms:.0}"),
            None => "-".to_owned(),
        };
        format!(
            "{:<26} {:>6} {:>9} {:>6.1} {alone:>9}",
            self.approximation, self.depth, self.products, self.bits
        )
    }
}
