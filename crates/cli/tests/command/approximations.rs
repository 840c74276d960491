//! Approximations by name, for plans and for what runs under them.

use crate::harness::{SMALL, failure, json, names, taciturn};
use serde_json::Value;
use tempfile::TempDir;

const PLAN: [&str; 4] = ["plan", "--context", "12", "--sites"];

fn planned(selected: &[&str]) -> Value {
    let flags = selected.iter().flat_map(|entry| ["--approximation", entry]);
    let flags: Vec<&str> = flags.collect();
    json(&[&PLAN[..], &["--json"], &flags, &SMALL].concat())
}

/// The approximation of a site and whether it was asked for.
fn at(report: &Value, site: &str) -> (String, bool) {
    let sites = report["sites"].as_array().expect("a list");
    let found = sites
        .iter()
        .find(|known| known["site"] == site)
        .expect(site);
    let name = found["approximation"].as_str().expect("a name");
    (name.to_owned(), found["selected"] == true)
}

/// Every row that a model's function can have is selected by its name, at sites by name, function or pattern.
#[test]
fn every_row_can_be_selected() {
    let chosen = planned(&[]);
    let functions = [
        (
            ("layer0.norm1", "layer0.norm1.variance"),
            [
                "minimax-newton",
                "minimax-goldschmidt",
                "constant-goldschmidt",
                "taylor-newton",
            ],
        ),
        (
            ("*.softmax.exp", "layer1.exponents"),
            ["minimax-squarings", "limit", "limit", "limit"],
        ),
        (
            ("layer0.denominator3", "layer0.denominator3"),
            [
                "minimax-newton",
                "minimax-goldschmidt",
                "constant-goldschmidt",
                "constant",
            ],
        ),
        (
            ("gelu", "layer1.hidden"),
            ["minimax", "composite", "chebyshev-127", "piecewise"],
        ),
    ];
    for row in 0..4 {
        let entries = functions.map(|((entry, _), rows)| format!("{entry}={}", rows[row]));
        let report = planned(&entries.each_ref().map(String::as_str));
        for ((_, site), rows) in functions {
            assert!(!at(&chosen, site).1);
            let (name, selected) = at(&report, site);
            assert!(
                selected && name.split('/').next() == Some(rows[row]),
                "{name}"
            );
        }
        // Others are still chosen.
        assert!(!at(&report, "final.variance").1);
        assert!(report["seconds"].as_f64().expect("a time") > 0.0);
    }
    // The last entry of a site holds, and numbers are taken as they are.
    let report = planned(&["norm=minimax-goldschmidt", "*.norm2=minimax-newton/31+1"]);
    assert_eq!(
        at(&report, "layer1.norm2.variance").0,
        "minimax-newton/31+1"
    );
    assert!(
        at(&report, "layer1.norm1.variance")
            .0
            .starts_with("minimax-goldschmidt/")
    );
}

/// Alternatives are as exact as what is chosen has to be, and each cheaper than the others in levels or in products.
#[test]
fn sites_show_what_could_have_been_chosen() {
    let report = planned(&[]);
    let sites = report["sites"].as_array().expect("a list");
    let mut choices = 0;
    for site in sites {
        let cost = |choice: &Value| {
            let number = |field: &str| choice[field].as_u64().expect("a number");
            (number("depth"), number("products"))
        };
        let (depth, products) = cost(site);
        for other in site["alternatives"].as_array().expect("a list") {
            let (other_depth, other_products) = cost(other);
            assert!(
                (other_depth < depth) == (other_products > products),
                "{site}"
            );
            choices += 1;
        }
    }
    assert!(choices >= 4, "{choices}");
    let text = taciturn(&[&PLAN[..], &SMALL].concat());
    names(
        &String::from_utf8_lossy(&text.stdout),
        &["or minimax", "alone ms"],
    );
}

#[test]
fn what_cannot_be_selected_says_what_can() {
    for (entry, expected) in [
        (
            "layer7.norm1=minimax-newton",
            &["layer7.norm1", "layer0.norm1.variance", "final.variance"][..],
        ),
        (
            "gelu=minimax-newton",
            &["layer0.hidden", "minimax, composite", "minimax-newton"],
        ),
        (
            "exp=minimax-squarings/12+",
            &["exponents", "limit", "minimax-squarings/12+"],
        ),
        (
            "layer0.norm1=minimax-newton/9999",
            &["layer0.norm1.variance", "degree", "9999"],
        ),
        (
            "layer0.denominator0=constant",
            &["round 0 of layer 0", "constant", "choose another"],
        ),
        ("layer0.norm1", &["--approximation", "SITE=NAME"]),
    ] {
        let arguments = [&PLAN[..], &["--approximation", entry], &SMALL].concat();
        let code = if entry.ends_with("=constant") { 1 } else { 2 };
        names(&failure(code, &arguments), expected);
    }
}

/// A plan holds its approximations; a run under it computes with them, near the clear model.
#[test]
fn generations_run_with_what_is_selected() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("plan.json");
    let path = path.to_str().expect("UTF-8");
    let selected = [
        "--approximation",
        "layer0.norm1=minimax-goldschmidt/7+1",
        "--approximation",
        "layer1.gelu=composite",
    ];
    let out = ["plan", "--context", "12", "--json", "--out", path];
    let plan = json(&[&out[..], &selected, &SMALL].concat());
    let generate = [
        "generate",
        "--prompt",
        "def f(",
        "--max-new-tokens",
        "1",
        "--compare",
        "--json",
    ];
    let under = json(&[&generate[..], &["--plan", path], &SMALL].concat());
    assert_eq!(under["plan_hash"], plan["hash"]);
    let error = under["steps"][0]["max_abs_logit_error"]
        .as_f64()
        .expect("a number");
    assert!(error < 0.5, "{error}");
    let directly = json(&[&generate[..], &selected, &SMALL].concat());
    assert_eq!(directly["tokens"], under["tokens"]);
    let both = [&generate[..], &["--plan", path], &selected, &SMALL].concat();
    names(&failure(2, &both), &["--plan", "--approximation"]);
    // What the file says of a site is under its hash.
    let text = std::fs::read_to_string(path).expect("the plan");
    std::fs::write(
        path,
        text.replace("minimax-goldschmidt/7+1", "minimax-newton/7+1"),
    )
    .expect("a file");
    let changed = [&generate[..], &["--plan", path], &SMALL].concat();
    names(&failure(1, &changed), &["--plan", "hash"]);
}
