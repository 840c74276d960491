//! Plans in files: made, used, and refused where they do not fit.

use std::path::Path;

use crate::harness::{SMALL, failure, json, names};
use tempfile::TempDir;

/// Arguments of a generation under a plan.
fn generate<'a>(plan: &'a str, params: &[&'a str]) -> Vec<&'a str> {
    let fixed = [
        "generate",
        "--prompt",
        "def f(",
        "--max-new-tokens",
        "1",
        "--plan",
        plan,
        "--json",
    ];
    [&fixed[..], params].concat()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn a_plan_in_a_file_is_used_or_refused() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("plan.json");
    let path = text(&path);
    let arguments = ["plan", "--context", "12", "--out", path, "--json"];
    let planned = json(&[&arguments[..], &SMALL].concat());
    let report = json(&generate(path, &SMALL));
    assert_eq!(report["plan_hash"], planned["hash"]);

    let other = ["--params", "insecure-n11", "--allow-insecure"];
    let message = failure(1, &generate(path, &other));
    names(
        &message,
        &["--plan", path, "insecure-n11", "insecure-n13", "--out FILE"],
    );

    let plan = std::fs::read_to_string(path).expect("the plan");
    let changed = folder.path().join("changed.json");
    let changed = text(&changed);
    for (content, expected) in [
        (plan.replacen("\"slots\": ", "\"slots\": 1", 1), "hash"),
        (
            plan.replacen("\"version\": 1", "\"version\": 2", 1),
            "version 2, expected 1",
        ),
        (plan[..plan.len() / 2].to_owned(), "cannot be read"),
        (String::new(), "cannot be read"),
    ] {
        std::fs::write(changed, content).expect("a file");
        names(
            &failure(1, &generate(changed, &SMALL)),
            &["--plan", changed, expected],
        );
    }
    let missing = folder.path().join("missing.json");
    names(
        &failure(1, &generate(text(&missing), &SMALL)),
        &["--plan", text(&missing)],
    );

    // Too short for the exchange.
    let arguments = ["plan", "--context", "3", "--out", changed, "--json"];
    json(&[&arguments[..], &SMALL].concat());
    let message = failure(1, &generate(changed, &SMALL));
    names(&message, &["--plan", changed, "one for 3", "--context N"]);
    // There is no such folder.
    let nowhere = folder.path().join("nowhere/plan.json");
    let output = crate::harness::taciturn(
        &[
            &["plan", "--context", "3", "--out", text(&nowhere)][..],
            &SMALL,
        ]
        .concat(),
    );
    assert_eq!(output.status.code(), Some(1));
    names(&crate::harness::stderr(&output), &["--out", text(&nowhere)]);
}
