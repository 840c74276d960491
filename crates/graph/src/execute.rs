//! The executor: runs a graph on any machine as a plan says.

use crate::lower::lower;
use crate::{Graph, Level, Machine, Node, Op, Plan, RunError};
use std::collections::HashMap;

/// Where outputs are taken, if they still are that high: a value at level 0 wraps around at q0 over the scale, at 512 in the default
/// parameters, and could come back looking harmless.
const OUTPUT_LEVEL: Level = Level(1);

/// A node that was just computed.
#[derive(Debug)]
pub struct Step<'a, V> {
    /// Its name.
    pub name: &'a str,
    /// Its position in the graph.
    pub index: usize,
    /// Nodes of the graph.
    pub total: usize,
    /// Its value, after a refresh.
    pub value: &'a V,
}

/// Computes all outputs of a graph.
///
/// Inputs are taken by name, at the level of the plan or above. Values are refreshed and dropped as the plan says and freed
/// after their last use. Outputs come at level 1 or 0, caches at their fixed level.
pub fn run<M: Machine>(
    graph: &Graph,
    plan: &Plan,
    machine: &mut M,
    mut inputs: HashMap<String, M::Value>,
    observe: &mut dyn FnMut(Step<'_, M::Value>),
) -> Result<HashMap<String, M::Value>, RunError<M::Error>> {
    let total = graph.nodes().len();
    let mut uses: Vec<usize> = graph.consumers().iter().map(Vec::len).collect();
    graph
        .outputs()
        .iter()
        .for_each(|(_, id)| uses[id.index()] += 1);
    let mut values: Vec<Option<M::Value>> = (0..total).map(|_| None).collect();
    for (index, node) in graph.nodes().iter().enumerate() {
        machine.enter(&node.name);
        let value = match node.op {
            Op::Input { .. } => take_input(node, plan, machine, &mut inputs)?,
            _ => compute(graph, node, plan, machine, &values)?,
        };
        observe(Step {
            name: &node.name,
            index,
            total,
            value: &value,
        });
        for input in &node.inputs {
            uses[input.index()] -= 1;
            if uses[input.index()] == 0 {
                values[input.index()] = None;
            }
        }
        values[index] = Some(value);
    }
    let mut outputs = HashMap::new();
    for (name, id) in graph.outputs() {
        let value = values[id.index()].as_ref().expect("outputs are kept");
        let node = graph.node(*id);
        let level = match node.op.cache_family() {
            Some(_) => plan.node(&node.name)?.level(),
            None => OUTPUT_LEVEL.min(machine.level(value)),
        };
        machine.enter(name);
        outputs.insert(
            name.clone(),
            dropped(machine, name, value, level)?.unwrap_or_else(|| value.clone()),
        );
    }
    Ok(outputs)
}

fn take_input<M: Machine>(
    node: &Node,
    plan: &Plan,
    machine: &mut M,
    inputs: &mut HashMap<String, M::Value>,
) -> Result<M::Value, RunError<M::Error>> {
    let value = inputs
        .remove(&node.name)
        .ok_or_else(|| RunError::MissingInput {
            name: node.name.clone(),
        })?;
    let level = plan.node(&node.name)?.level();
    Ok(dropped(machine, &node.name, &value, level)?.unwrap_or(value))
}

fn compute<M: Machine>(
    graph: &Graph,
    node: &Node,
    plan: &Plan,
    machine: &mut M,
    values: &[Option<M::Value>],
) -> Result<M::Value, RunError<M::Error>> {
    let planned = plan.node(&node.name)?;
    let inputs: Vec<&M::Value> = node
        .inputs
        .iter()
        .map(|id| values[id.index()].as_ref().expect("inputs come before"))
        .collect();
    let mut lowered = Vec::with_capacity(inputs.len());
    for input in &inputs {
        lowered.push(dropped(machine, &node.name, input, planned.level_in)?);
    }
    let inputs: Vec<&M::Value> = lowered
        .iter()
        .zip(inputs)
        .map(|(low, input)| low.as_ref().unwrap_or(input))
        .collect();
    let value = lower(graph, node, machine, &inputs).map_err(|source| failed(node, source))?;
    let Some(bootstrap) = planned.bootstrap else {
        return Ok(value);
    };
    let bound = node.bound.ok_or_else(|| RunError::Bound {
        name: node.name.clone(),
    })?;
    machine
        .bootstrap(&value, bootstrap.slots, bound, bootstrap.target)
        .map_err(|source| failed(node, source))
}

/// The value at a lower level; `None` where it is at that level already.
fn dropped<M: Machine>(
    machine: &mut M,
    name: &str,
    value: &M::Value,
    level: Level,
) -> Result<Option<M::Value>, RunError<M::Error>> {
    let got = machine.level(value);
    if got == level {
        return Ok(None);
    }
    if got < level {
        return Err(RunError::Level {
            name: name.to_owned(),
            expected: level,
            got,
        });
    }
    machine
        .drop_to(value, level)
        .map(Some)
        .map_err(|source| RunError::Machine {
            node: name.to_owned(),
            source,
        })
}

fn failed<E: std::error::Error + 'static>(node: &Node, source: E) -> RunError<E> {
    RunError::Machine {
        node: node.name.clone(),
        source,
    }
}
