//! The server cannot link the secret half: proven over the workspace's metadata.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

const SECRET: &str = "taciturn-secret";
const PUBLIC: [&str; 7] = [
    "taciturn-server",
    "taciturn-models",
    "taciturn-graph",
    "taciturn-circuits",
    "taciturn-approx",
    "taciturn-ckks",
    "taciturn-ring",
];

/// What every package of the workspace needs to be built, tests apart.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo's metadata");
    let text = |value: &Value| value.as_str().expect("a name").to_owned();
    metadata["packages"]
        .as_array()
        .expect("packages")
        .iter()
        .map(|package| {
            let needed = package["dependencies"]
                .as_array()
                .expect("dependencies")
                .iter()
                .filter(|dependency| dependency["kind"] != "dev")
                .map(|dependency| text(&dependency["name"]));
            (text(&package["name"]), needed.collect())
        })
        .collect()
}

fn reaches(graph: &BTreeMap<String, BTreeSet<String>>, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![from.to_owned()];
    while let Some(package) = open.pop() {
        if package == to {
            return true;
        }
        if seen.insert(package.clone()) {
            open.extend(graph.get(&package).into_iter().flatten().cloned());
        }
    }
    false
}

#[test]
fn nothing_public_reaches_the_secret_half() {
    let graph = dependencies();
    for package in PUBLIC {
        assert!(
            graph.contains_key(package),
            "{package} is not in the workspace"
        );
        assert!(
            !reaches(&graph, package, SECRET),
            "{package} reaches {SECRET}"
        );
    }
    // The search finds what is there.
    assert!(reaches(&graph, "taciturn-client", SECRET));
    assert!(reaches(&graph, "taciturn-server", "taciturn-ring"));
}
