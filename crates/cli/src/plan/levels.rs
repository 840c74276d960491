//! Levels over one block, as a picture.

use anyhow::{Context, Result};
use taciturn_graph::{Graph, Plan, module_of};

use crate::chart::{Labels, Line, Mark, lines};

/// The levels of a plan over a decoder block: of every result as it is computed, and where it is refreshed.
///
/// A block in the middle is shown: the first and the last differ from the others.
pub fn svg(graph: &Graph, plan: &Plan, layers: usize) -> Result<String> {
    let block = format!("layer{}", layers / 2);
    let inside = |name: &str| name.split('.').next() == Some(block.as_str());
    let mut at = 0.0;
    let (mut computed, mut refreshed) = (Vec::new(), Vec::new());
    let mut marks: Vec<Mark> = Vec::new();
    for node in graph.nodes().iter().filter(|node| inside(&node.name)) {
        let planned = plan.node(&node.name).context("the plan is of this graph")?;
        let module = module_of(&node.name);
        if !node.inputs.is_empty() && marks.last().is_none_or(|mark| mark.name != module) {
            marks.push(Mark {
                at,
                name: module.to_owned(),
            });
        }
        let seconds = planned.microseconds as f64 / 1e6;
        let (before, level) = (planned.level_in, planned.level_out);
        let end = at + seconds;
        if !node.inputs.is_empty() {
            let (before, after) = (f64::from(before.0), f64::from(level.0));
            computed.push(vec![(at, before), (end, after)]);
            if let Some(bootstrap) = &planned.bootstrap {
                refreshed.push(vec![(end, after), (end, f64::from(bootstrap.target.0))]);
            }
        }
        at = end;
    }
    let line = |name: &str, parts| Line {
        name: name.to_owned(),
        parts,
    };
    let title = format!("levels over {block}: {} bootstraps", refreshed.len());
    let labels = Labels {
        title: &title,
        x: "seconds, predicted",
        y: "level",
    };
    let all = [line("operations", computed), line("bootstraps", refreshed)];
    Ok(lines(&labels, &all, &marks))
}
