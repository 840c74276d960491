//! Plans in files: made, used, and refused where they do not fit.

use std::path::Path;

use crate::harness::{SMALL, failure, json, names, taciturn};
use serde_json::Value;
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
    let output = taciturn(
        &[
            &["plan", "--context", "3", "--out", text(&nowhere)][..],
            &SMALL,
        ]
        .concat(),
    );
    assert_eq!(output.status.code(), Some(1));
    names(&crate::harness::stderr(&output), &["--out", text(&nowhere)]);
}

/// A slower plan is taken where the fastest does not fit, and said so; less than anything needs is refused with what would do.
#[test]
fn a_limit_of_memory_is_met_where_that_is_possible() {
    let plan = |limit: u64| {
        let limit = limit.to_string();
        let arguments = ["plan", "--context", "16", "--json", "--memory-limit"];
        taciturn(&[&arguments[..], &[&limit], &SMALL].concat())
    };
    let read = |output: &std::process::Output| -> Value {
        serde_json::from_slice(&output.stdout).expect("one JSON object")
    };
    let peak = |report: &Value| report["memory_bytes"]["peak"].as_u64().expect("bytes");
    let fastest = read(&plan(u64::MAX));
    assert!(fastest.get("instead_of").is_none());
    let output = plan(peak(&fastest) - 1);
    let fitted = read(&output);
    assert!(output.status.success(), "{fitted}");
    assert!(peak(&fitted) < peak(&fastest));
    assert_eq!(
        fitted["instead_of"]["bytes"],
        fastest["memory_bytes"]["peak"]
    );
    assert!(fitted["seconds"].as_f64() >= fastest["seconds"].as_f64());
    let refused = plan(1 << 20);
    assert_eq!(refused.status.code(), Some(1));
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(message.contains("smallest plan"), "{message}");
}

#[test]
fn time_and_memory_are_shown_by_context() {
    let folder = TempDir::new().expect("a temporary folder");
    let file = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let pictures = [
        ("--memory-svg", file("memory.svg")),
        ("--time-svg", file("time.svg")),
        ("--levels", file("levels.svg")),
    ];
    let mut arguments = vec!["plan", "--context", "16", "--contexts", "--json"];
    for (flag, path) in &pictures {
        arguments.extend([flag, path.as_str()]);
    }
    arguments.extend(SMALL);
    let report = json(&arguments);
    let contexts = report["contexts"].as_array().expect("a list");
    let lengths: Vec<u64> = (contexts.iter())
        .map(|context| context["context"].as_u64().expect("tokens"))
        .collect();
    assert!(
        lengths.is_sorted_by(|a, b| a < b) && lengths.contains(&16),
        "{lengths:?}"
    );
    let own = contexts.iter().find(|context| context["context"] == 16);
    assert_eq!(
        own.expect("its own")["memory_bytes"],
        report["memory_bytes"]
    );
    for context in contexts {
        assert!(context["seconds"].as_f64().expect("seconds") > 0.0);
    }
    for (_, path) in pictures {
        let picture = std::fs::read_to_string(&path).expect("a picture");
        assert!(
            picture.starts_with("<svg") && !picture.contains("NaN"),
            "{path}"
        );
    }
}

#[test]
fn every_site_is_shown_with_its_approximation() {
    let report = json(
        &[
            &["plan", "--context", "16", "--sites", "--json"][..],
            &SMALL,
        ]
        .concat(),
    );
    let sites = report["sites"].as_array().expect("a list");
    let named = |name: &str| sites.iter().any(|site| site["site"] == name);
    assert!(named("layer0.norm1.variance") && named("layer1.hidden") && named("final.variance"));
    for site in sites {
        let number = |field: &str| site[field].as_f64().expect("a number");
        assert!(
            number("low") < number("high") && number("depth") > 0.0,
            "{site}"
        );
        assert!(number("bits") > 1.0 && number("margin") >= 0.0, "{site}");
    }
    let shown = taciturn(&[&["plan", "--context", "16", "--sites"][..], &SMALL].concat());
    names(
        &String::from_utf8_lossy(&shown.stdout),
        &[
            "layer0.exponents",
            "1/sqrt(x)",
            "minimax-newton/15",
            "gelu(x)",
        ],
    );
}

#[test]
fn a_gpu_that_is_not_there_is_planned_for_by_an_estimate() {
    let report = json(&[
        "plan",
        "--device",
        "h200",
        "--context",
        "12",
        "--memory-limit",
        "139GB",
        "--json",
    ]);
    assert_eq!(report["costs"], "estimated");
    assert!(
        report["seconds"]
            .as_f64()
            .is_some_and(|seconds| seconds > 0.0)
    );
}
