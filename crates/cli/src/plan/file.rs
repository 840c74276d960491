//! Plans in files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use taciturn_graph::Plan;

/// Far above any plan: 6,000 nodes take about a megabyte.
const LARGEST: u64 = 64 << 20;

/// Writes a plan.
pub fn write(path: &Path, plan: &Plan) -> Result<()> {
    std::fs::write(path, plan.to_json())
        .with_context(|| format!("--out: {} cannot be written", path.display()))
}

/// Reads a plan; whether it fits a model is another question.
pub fn read(path: &Path) -> Result<Plan> {
    let name = || format!("--plan: {}", path.display());
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text))
        .with_context(name)?;
    ensure!(
        text.len() as u64 <= LARGEST,
        "{}: expected a plan of at most {LARGEST} bytes, got more; make it with `taciturn plan --out FILE`",
        name()
    );
    Plan::from_json(&text).with_context(name)
}
