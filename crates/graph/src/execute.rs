//! The executor: runs a graph on any machine as a plan says.

use crate::lower::lower;
use crate::{Graph, Level, Machine, Node, NodeId, Op, Plan, RunError};
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

/// A computed value, as it is and refreshed.
struct Held<V> {
    /// Absent where every user takes it refreshed.
    computed: Option<V>,
    refreshed: Option<V>,
}

impl<V> Held<V> {
    /// What an output is taken from.
    fn last(&self) -> Option<&V> {
        self.refreshed.as_ref().or(self.computed.as_ref())
    }
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
    let consumers = graph.consumers();
    let mut uses: Vec<usize> = consumers.iter().map(Vec::len).collect();
    graph
        .outputs()
        .iter()
        .for_each(|(_, id)| uses[id.index()] += 1);
    let mut values: Vec<Option<Held<M::Value>>> = (0..total).map(|_| None).collect();
    for (index, node) in graph.nodes().iter().enumerate() {
        machine.enter(&node.name);
        let computed = match node.op {
            Op::Input { .. } => take_input(node, plan, machine, &mut inputs)?,
            _ => compute(graph, node, plan, machine, &values)?,
        };
        values[index] = Some(Held {
            computed: Some(computed),
            refreshed: None,
        });
        refresh(graph, &consumers, index, plan, machine, &mut values)?;
        observe(Step {
            name: &node.name,
            index,
            total,
            value: (values[index].as_ref())
                .and_then(Held::last)
                .expect("the value was just computed"),
        });
        for input in &node.inputs {
            uses[input.index()] -= 1;
            if uses[input.index()] == 0 {
                values[input.index()] = None;
            }
        }
    }
    let mut outputs = HashMap::new();
    for (name, id) in graph.outputs() {
        let value = (values[id.index()].as_ref())
            .and_then(Held::last)
            .expect("outputs are kept");
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
    values: &[Option<Held<M::Value>>],
) -> Result<M::Value, RunError<M::Error>> {
    let level_in = plan.node(&node.name)?.level_in;
    let mut inputs: Vec<&M::Value> = Vec::with_capacity(node.inputs.len());
    for id in &node.inputs {
        let held = values[id.index()].as_ref().expect("inputs come before");
        let low = level_in <= plan.node(&graph.node(*id).name)?.level_out;
        let value = if low {
            held.computed.as_ref()
        } else {
            held.refreshed.as_ref().or(held.computed.as_ref())
        };
        inputs.push(value.expect("values are kept for their users"));
    }
    let mut lowered = Vec::with_capacity(inputs.len());
    for input in &inputs {
        lowered.push(dropped(machine, &node.name, input, level_in)?);
    }
    let inputs: Vec<&M::Value> = lowered
        .iter()
        .zip(inputs)
        .map(|(low, input)| low.as_ref().unwrap_or(input))
        .collect();
    lower(graph, node, machine, &inputs).map_err(|source| failed(node, source))
}

/// Refreshes the value just computed, with its partner where it is the second of a pair. The first of a pair waits; where the graph
/// is a part that lacks the other, a value is refreshed alone.
fn refresh<M: Machine>(
    graph: &Graph,
    consumers: &[Vec<NodeId>],
    index: usize,
    plan: &Plan,
    machine: &mut M,
    values: &mut [Option<Held<M::Value>>],
) -> Result<(), RunError<M::Error>> {
    let node = &graph.nodes()[index];
    let Some(bootstrap) = &plan.node(&node.name)?.bootstrap else {
        return Ok(());
    };
    let partner = (bootstrap.partner.as_ref())
        .and_then(|partner| graph.find(partner))
        .map(|partner| partner.index());
    if partner.is_some_and(|partner| partner > index) {
        return Ok(());
    }
    let bound = |node: &Node| {
        node.bound.ok_or_else(|| RunError::Bound {
            name: node.name.clone(),
        })
    };
    let computed =
        |index: usize| -> Option<&M::Value> { values[index].as_ref()?.computed.as_ref() };
    let own = computed(index).expect("the value was just computed");
    let refreshed = match partner.and_then(|partner| Some((partner, computed(partner)?))) {
        None => machine
            .bootstrap(own, bootstrap.slots, bound(node)?, bootstrap.target)
            .map(|value| vec![(index, value)]),
        Some((partner, first)) => {
            let bound = bound(node)?.max(bound(&graph.nodes()[partner])?);
            machine
                .bootstrap_pair([first, own], bootstrap.slots, bound, bootstrap.target)
                .map(|[first, second]| vec![(partner, first), (index, second)])
        }
    }
    .map_err(|source| failed(node, source))?;
    for (index, value) in refreshed {
        let level_out = plan.node(&graph.nodes()[index].name)?.level_out;
        let mut low = false;
        for user in &consumers[index] {
            low |= plan.node(&graph.node(*user).name)?.level_in <= level_out;
        }
        if let Some(held) = &mut values[index] {
            held.refreshed = Some(value);
            if !low {
                held.computed = None;
            }
        }
    }
    Ok(())
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
