//! The table of approximations, site by site.

use serde::Serialize;
use taciturn_models::SiteApproximation;

/// One site.
#[derive(Serialize)]
pub struct SiteReport {
    site: String,
    function: &'static str,
    low: f64,
    high: f64,
    margin: f64,
    approximation: String,
    depth: u32,
    products: u32,
    /// Of the worst error: relative for inverses, of the largest value for exponentials, absolute for activations.
    bits: f64,
}

impl SiteReport {
    /// Of a site.
    pub fn new(site: SiteApproximation) -> Self {
        let steps = match site.steps {
            None => String::new(),
            Some((1, "Newton")) => ", 1 Newton step".to_owned(),
            Some((count, "Newton")) => format!(", {count} Newton steps"),
            Some((count, step)) => format!(", {step} {count} times"),
        };
        SiteReport {
            approximation: format!("degree {}{steps}", site.degree),
            site: site.site,
            function: site.function,
            low: site.low,
            high: site.high,
            margin: site.margin,
            depth: site.depth,
            products: site.products,
            bits: site.bits,
        }
    }

    /// For people.
    pub fn table(sites: &[SiteReport]) -> String {
        let mut out = format!(
            "{:<24} {:<12} {:>24} {:>7} {:<26} {:>6} {:>9} {:>6}\n",
            "site", "function", "interval", "margin", "approximation", "levels", "products", "bits"
        );
        for site in sites {
            let interval = format!("[{:.4}, {:.4}]", site.low, site.high);
            out += &format!(
                "{:<24} {:<12} {interval:>24} {:>6.0}% {:<26} {:>6} {:>9} {:>6.1}\n",
                site.site,
                site.function,
                100.0 * site.margin,
                site.approximation,
                site.depth,
                site.products,
                site.bits
            );
        }
        out
    }
}
