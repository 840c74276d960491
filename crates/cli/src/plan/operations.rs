//! Time by kind of operation, over all decoder blocks: the rows of Cachemir's breakdown (Table 5), bootstraps apart.

use serde::Serialize;
use taciturn_graph::{BootstrapPlan, CostTable, Graph, Op, Plan};

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Projections,
    Caches,
    Scores,
    Softmax,
    WeightedValues,
    Output,
    Norms,
    Up,
    Activation,
    Down,
    Head,
}

const KINDS: [(Kind, &str); 11] = [
    (Kind::Projections, "Q, K, V"),
    (Kind::Caches, "RoPE and caches"),
    (Kind::Scores, "Q K^T"),
    (Kind::Softmax, "softmax"),
    (Kind::WeightedValues, "scores V"),
    (Kind::Output, "output projection"),
    (Kind::Norms, "sums and norms"),
    (Kind::Up, "up and gate projections"),
    (Kind::Activation, "activation"),
    (Kind::Down, "down projection"),
    (Kind::Head, "head"),
];

/// What one kind of operation takes in a step.
#[derive(Serialize)]
pub struct OperationReport {
    operation: Kind,
    #[serde(skip)]
    name: &'static str,
    /// Of the operations.
    seconds: f64,
    bootstraps: usize,
    /// Of the bootstraps of their results.
    bootstrap_seconds: f64,
    /// The highest level of an operand.
    level_in: u32,
    /// The lowest level of a result.
    level_out: u32,
}

/// All rows of a plan.
pub fn operations(graph: &Graph, plan: &Plan, table: &CostTable) -> Vec<OperationReport> {
    let mut reports: Vec<OperationReport> = (KINDS.into_iter())
        .map(|(operation, name)| OperationReport {
            operation,
            name,
            seconds: 0.0,
            bootstraps: 0,
            bootstrap_seconds: 0.0,
            level_in: 0,
            level_out: u32::MAX,
        })
        .collect();
    for (index, node) in graph.nodes().iter().enumerate() {
        let (Some(kind), Ok(planned)) = (kind(&node.name), plan.node(&node.name)) else {
            continue;
        };
        // With the interval's map in its weights, the projection gives the argument.
        let kind = match (kind, &node.op) {
            (Kind::Activation, Op::ProductSpaced { .. }) => Kind::Up,
            _ => kind,
        };
        let Some(report) = reports.iter_mut().find(|report| report.operation == kind) else {
            continue;
        };
        // A shared bootstrap is done at its second value.
        let done = planned.bootstrap.as_ref().filter(|bootstrap| {
            let partner = bootstrap.partner.as_ref();
            let partner = partner.and_then(|partner| graph.find(partner));
            partner.is_none_or(|partner| partner.index() < index)
        });
        let refresh = done.map_or(0.0, |bootstrap| refresh_seconds(bootstrap, table));
        report.seconds += (planned.microseconds as f64 / 1e6 - refresh).max(0.0);
        report.bootstraps += usize::from(done.is_some());
        report.bootstrap_seconds += refresh;
        if !node.inputs.is_empty() {
            report.level_in = report.level_in.max(planned.level_in.0);
            report.level_out = report.level_out.min(planned.level_out.0);
        }
    }
    reports.retain(|report| report.level_out != u32::MAX);
    reports
}

fn refresh_seconds(bootstrap: &BootstrapPlan, table: &CostTable) -> f64 {
    let cost = table.bootstrap(bootstrap.slots);
    let times = cost.and_then(|cost| match bootstrap.partner {
        None => Some(&cost.target_ms),
        Some(_) => cost.pair_ms.as_ref(),
    });
    let ms = times.and_then(|times| times.get(bootstrap.target.index()));
    ms.map_or(0.0, |ms| ms / 1e3)
}

/// The row of a node, by its name.
fn kind(name: &str) -> Option<Kind> {
    let mut parts = name.split('.');
    let (block, module) = (parts.next()?, parts.next().unwrap_or_default());
    let part = parts.next().unwrap_or_default();
    let begins = |with: &[&str]| with.iter().any(|with| part.starts_with(with));
    Some(match (block, module) {
        ("head", _) => Kind::Head,
        ("final", _) | (_, "norm1" | "norm2") => Kind::Norms,
        (_, "attention" | "mlp") if part == "residual" => Kind::Norms,
        (_, "cache") => Kind::Caches,
        (_, "attention") if begins(&["append", "query_rope", "query_half", "key_rope"]) => {
            Kind::Caches
        }
        (_, "attention") if begins(&["key_half", "key_shift", "key_ahead", "key_back"]) => {
            Kind::Caches
        }
        (_, "attention") if begins(&["query", "key", "value"]) => Kind::Projections,
        (_, "attention") if part == "scores" => Kind::Scores,
        (_, "attention") if begins(&["attended_repeat", "output"]) => Kind::Output,
        (_, "attention") if begins(&["attended", "normalised", "interleaved", "weights"]) => {
            Kind::WeightedValues
        }
        (_, "attention") => Kind::Softmax,
        (_, "mlp") if begins(&["argument", "up"]) => Kind::Up,
        (_, "mlp") if begins(&["repeat", "down"]) => Kind::Down,
        (_, "mlp") => Kind::Activation,
        _ => return None,
    })
}

impl OperationReport {
    /// For people.
    pub fn table(reports: &[OperationReport]) -> String {
        let mut out = format!(
            "{:<24} {:>10} {:>11} {:>12} {:>16}\n",
            "operation", "seconds", "bootstraps", "of these s", "levels"
        );
        for report in reports {
            let levels = format!("{} to {}", report.level_in, report.level_out);
            out += &format!(
                "{:<24} {:>10.3} {:>11} {:>12.2} {levels:>16}\n",
                report.name, report.seconds, report.bootstraps, report.bootstrap_seconds
            );
        }
        let sum = |of: &dyn Fn(&OperationReport) -> f64| reports.iter().map(of).sum::<f64>();
        out += &format!(
            "{:<24} {:>10.3} {:>11} {:>12.2}\n",
            "all",
            sum(&|report| report.seconds),
            reports
                .iter()
                .map(|report| report.bootstraps)
                .sum::<usize>(),
            sum(&|report| report.bootstrap_seconds)
        );
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_found_by_their_names() {
        for (name, expected) in [
            ("embedding", None),
            ("layer0.norm1.start", Some(Kind::Norms)),
            ("layer3.attention.residual", Some(Kind::Norms)),
            ("layer0.attention.query_mask", Some(Kind::Projections)),
            ("layer0.attention.value_mask.1", Some(Kind::Projections)),
            ("layer0.attention.query_rope", Some(Kind::Caches)),
            ("layer0.attention.append_key", Some(Kind::Caches)),
            ("layer0.cache.key.0", Some(Kind::Caches)),
            ("layer0.attention.scores", Some(Kind::Scores)),
            ("layer0.attention.scores_unit", Some(Kind::Softmax)),
            ("layer0.attention.round0.normalised", Some(Kind::Softmax)),
            ("layer0.attention.denominator_inverse", Some(Kind::Softmax)),
            ("layer0.attention.normalised", Some(Kind::WeightedValues)),
            ("layer0.attention.attended_repeat", Some(Kind::Output)),
            ("layer0.mlp.up_bias", Some(Kind::Up)),
            ("layer0.mlp.function_step3", Some(Kind::Activation)),
            ("layer0.mlp.down", Some(Kind::Down)),
            ("head.product.0", Some(Kind::Head)),
        ] {
            assert_eq!(kind(name), expected, "{name}");
        }
    }
}
