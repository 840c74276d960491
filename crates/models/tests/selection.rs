//! Approximations of a model's sites: chosen by a planner, selected by name, and made again from a plan.

use std::collections::BTreeMap;
use std::path::Path;

use taciturn_approx::{ApproxError, Calibration};
use taciturn_graph::{CostTable, Level, Optimal};
use taciturn_models::{Checkpoint, ModelError, Selection, StepModel, load_calibration};

const SLOTS: usize = 1 << 15;
const CONTEXT: usize = 24;
const MAX: Level = Level(16);

fn demonstration(name: &str) -> (Checkpoint, Calibration) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../models")
        .join(name);
    let checkpoint = Checkpoint::load(&folder).unwrap();
    let calibration = load_calibration(&folder, &checkpoint).unwrap();
    (checkpoint, calibration)
}

fn selection(entries: &[(&str, &str)]) -> Selection {
    let entries = entries.iter();
    Selection::new(
        entries
            .map(|(site, name)| ((*site).into(), (*name).into()))
            .collect(),
    )
}

#[test]
fn plans_are_as_fast_and_as_exact_and_can_be_made_again() {
    for name in ["gpt2-code-tiny", "llama-code-tiny"] {
        let (checkpoint, calibration) = demonstration(name);
        let model = || StepModel::new(&checkpoint, &calibration, SLOTS, CONTEXT).unwrap();
        let costs = CostTable::reference(SLOTS, MAX);
        let first = model();
        let before = first.plan(&costs, &Optimal::default()).unwrap();
        let bits: BTreeMap<&str, f64> = (first.sites().iter())
            .map(|site| (site.site.as_str(), site.named.approximation.bits()))
            .collect();

        let mut chosen = model();
        let shallow = chosen.choose(&costs).unwrap();
        let plan = chosen.plan(&costs, &Optimal::default()).unwrap();
        assert!(plan.microseconds < before.microseconds, "{name}");
        let shallow = taciturn_graph::plan(&shallow, &costs, &Optimal::default()).unwrap();
        assert!(plan.microseconds <= shallow.microseconds, "{name}");
        for site in chosen.sites() {
            let coarse = site.site.contains("denominator")
                && chosen
                    .sites()
                    .iter()
                    .filter(|other| {
                        let layer = |site: &str| site.split('.').next().map(str::to_owned);
                        layer(&other.site) == layer(&site.site)
                            && other.site > site.site
                            && other.site.contains("denominator")
                    })
                    .count()
                    > 0;
            let enough = if coarse { 7.0 } else { 20.0 };
            let got = site.named.approximation.bits();
            // A choice before it may have changed the interval by a little.
            assert!(
                got >= bits[site.site.as_str()].min(enough) - 0.01,
                "{}: {got}",
                site.site
            );
            assert!(site.alternatives.contains(&site.named) || site.site.contains("denominator"));
        }

        let graph = |model: &StepModel| model.graph(CONTEXT - 1).unwrap();
        assert!(plan.check(&graph(&first), MAX).is_err());
        let mut again = model();
        let approximations = plan.approximations.clone().into_iter().collect();
        again.select(&Selection::new(approximations)).unwrap();
        plan.check(&graph(&again), MAX).unwrap();
        assert_eq!(again.plan(&costs, &Optimal::default()).unwrap(), plan);
    }
}

#[test]
fn what_is_selected_stays_and_the_others_are_chosen() {
    let (checkpoint, calibration) = demonstration("llama-code-tiny");
    let mut model = StepModel::new(&checkpoint, &calibration, SLOTS, CONTEXT).unwrap();
    let entries = [
        ("norm", "minimax-goldschmidt"),
        ("*.silu", "composite/15x15"),
    ];
    model.select(&selection(&entries)).unwrap();
    model.choose(&CostTable::reference(SLOTS, MAX)).unwrap();
    for site in model.sites() {
        let name = site.named.to_string();
        match site.site.as_str() {
            site if site.contains("variance") => assert!(name.starts_with("minimax-goldschmidt/")),
            site if site.contains("hidden") => assert_eq!(name, "composite/15x15"),
            _ => assert!(!site.selected && !site.alternatives.is_empty()),
        }
    }
    // One more choice on the same terms is the same one.
    let names: Vec<String> = model
        .sites()
        .iter()
        .map(|site| site.named.to_string())
        .collect();
    model.choose(&CostTable::reference(SLOTS, MAX)).unwrap();
    let again = model.sites().iter().map(|site| site.named.to_string());
    assert_eq!(names, again.collect::<Vec<_>>());
}

#[test]
fn what_cannot_be_selected_is_an_error_that_says_where() {
    let (checkpoint, calibration) = demonstration("llama-code-tiny");
    let mut model = StepModel::new(&checkpoint, &calibration, SLOTS, CONTEXT).unwrap();
    let before = model.graph(1).unwrap().approximations().clone();
    let mut error = |site: &str, name: &str| model.select(&selection(&[(site, name)])).unwrap_err();
    let unknown = error("gelu", "minimax");
    assert!(
        matches!(&unknown, ModelError::UnknownSite { expected, .. } if expected.contains("layer0.hidden"))
    );
    let piecewise = error("silu", "piecewise");
    assert!(matches!(&piecewise, ModelError::Site { site, .. } if site == "layer0.hidden"));
    let coarser = error("silu", "minimax/1");
    let too_wide = |error: &ModelError| {
        let ModelError::Site { source, .. } = error else {
            return false;
        };
        matches!(source, ApproxError::TooWide { .. })
    };
    assert!(too_wide(&coarser), "{coarser}");
    let coarse = error("layer1.denominator0", "constant");
    assert!(
        coarse.to_string().contains("round 0 of layer 1"),
        "{coarse}"
    );
    // A refused selection changes nothing.
    assert_eq!(*model.graph(1).unwrap().approximations(), before);
}
