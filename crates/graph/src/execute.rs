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
    let mut running = Running::new(graph);
    for index in 0..graph.nodes().len() {
        running.compute(index, plan, machine, &mut inputs, observe)?;
    }
    Ok(running.outputs)
}

/// Values by the names of a graph's inputs or outputs.
pub type Named<V> = HashMap<String, V>;

/// Computes graphs of successive steps in step: every node in all graphs, in their order, before the next node, so that a machine that keeps the
/// weights of its last product encodes them once for all.
///
/// The caches are in `caches`, where every graph finds what those before it left; there they are afterwards. Nodes have the same names in all
/// graphs, in the same order; those of the last graph say what is computed next. Other inputs are given for each graph, and other outputs come
/// back for each.
pub fn run_in_step<M: Machine>(
    graphs: &[Graph],
    plan: &Plan,
    machine: &mut M,
    caches: &mut Named<M::Value>,
    inputs: Vec<Named<M::Value>>,
    observe: &mut dyn FnMut(Step<'_, M::Value>),
) -> Result<Vec<Named<M::Value>>, RunError<M::Error>> {
    let mut runs: Vec<InStep<'_, M::Value>> = (graphs.iter().zip(inputs))
        .map(|(graph, inputs)| InStep {
            running: Running::new(graph),
            next: 0,
            inputs,
        })
        .collect();
    let last = graphs.last().map_or(&[][..], Graph::nodes);
    for node in last {
        for run in &mut runs {
            let known = run.running.graph.find(&node.name);
            let end = known.map_or(0, |id| id.index() + 1);
            run.advance(end, plan, machine, caches, observe)?;
        }
    }
    for run in &mut runs {
        let end = run.running.graph.nodes().len();
        run.advance(end, plan, machine, caches, observe)?;
    }
    Ok(runs.into_iter().map(|run| run.running.outputs).collect())
}

/// One of several graphs that are computed in step.
struct InStep<'g, V> {
    running: Running<'g, V>,
    next: usize,
    inputs: HashMap<String, V>,
}

impl<V: Clone> InStep<'_, V> {
    /// Computes all nodes before `end`. Caches are taken when they are used, and what enters them is there for those that come after.
    fn advance<M: Machine<Value = V>>(
        &mut self,
        end: usize,
        plan: &Plan,
        machine: &mut M,
        caches: &mut HashMap<String, V>,
        observe: &mut dyn FnMut(Step<'_, V>),
    ) -> Result<(), RunError<M::Error>> {
        let graph = self.running.graph;
        let is_cache = |node: &Node| node.inputs.is_empty() && node.op.cache_family().is_some();
        while self.next < end {
            let index = self.next;
            self.next += 1;
            let node = &graph.nodes()[index];
            if is_cache(node) {
                continue;
            }
            for input in &node.inputs {
                let cache = graph.node(*input);
                if is_cache(cache) && self.running.values[input.index()].is_none() {
                    if let Some(value) = caches.get(&cache.name) {
                        self.inputs.insert(cache.name.clone(), value.clone());
                    }
                    (self.running).compute(
                        input.index(),
                        plan,
                        machine,
                        &mut self.inputs,
                        observe,
                    )?;
                }
            }
            (self.running).compute(index, plan, machine, &mut self.inputs, observe)?;
            for (name, id) in graph.outputs() {
                if graph.node(*id).op.cache_family().is_some()
                    && let Some(value) = self.running.outputs.remove(name)
                {
                    caches.insert(name.clone(), value);
                }
            }
        }
        Ok(())
    }
}

/// A graph that is being computed.
struct Running<'g, V> {
    graph: &'g Graph,
    consumers: Vec<Vec<NodeId>>,
    /// How many nodes are still to take each value.
    uses: Vec<usize>,
    values: Vec<Option<Held<V>>>,
    outputs: HashMap<String, V>,
}

impl<'g, V: Clone> Running<'g, V> {
    fn new(graph: &'g Graph) -> Self {
        let consumers = graph.consumers();
        Running {
            uses: consumers.iter().map(Vec::len).collect(),
            consumers,
            values: (0..graph.nodes().len()).map(|_| None).collect(),
            outputs: HashMap::new(),
            graph,
        }
    }

    /// Computes a node whose inputs are computed.
    fn compute<M: Machine<Value = V>>(
        &mut self,
        index: usize,
        plan: &Plan,
        machine: &mut M,
        inputs: &mut HashMap<String, V>,
        observe: &mut dyn FnMut(Step<'_, V>),
    ) -> Result<(), RunError<M::Error>> {
        let graph = self.graph;
        let node = &graph.nodes()[index];
        machine.enter(&node.name);
        let computed = match node.op {
            Op::Input { .. } => take_input(node, plan, machine, inputs)?,
            _ => compute(graph, node, plan, machine, &self.values)?,
        };
        self.values[index] = Some(Held {
            computed: Some(computed),
            refreshed: None,
        });
        if !node.inputs.is_empty() {
            refresh(
                graph,
                &self.consumers,
                index,
                plan,
                machine,
                &mut self.values,
            )?;
        }
        observe(Step {
            name: &node.name,
            index,
            total: graph.nodes().len(),
            value: (self.values[index].as_ref())
                .and_then(Held::last)
                .expect("the value was just computed"),
        });
        if node.op.cache_family().is_some() && !node.inputs.is_empty() {
            // Those that come after a step take its caches while it still uses them.
            self.take_outputs(index, plan, machine)?;
        }
        for input in &node.inputs {
            self.uses[input.index()] -= 1;
        }
        for index in (node.inputs.iter().map(|input| input.index())).chain([index]) {
            if self.uses[index] == 0 {
                self.finish(index, plan, machine)?;
            }
        }
        Ok(())
    }

    /// Frees a value that no node takes any more, after the outputs were taken from it.
    fn finish<M: Machine<Value = V>>(
        &mut self,
        index: usize,
        plan: &Plan,
        machine: &mut M,
    ) -> Result<(), RunError<M::Error>> {
        let node = &self.graph.nodes()[index];
        if node.op.cache_family().is_none() || node.inputs.is_empty() {
            self.take_outputs(index, plan, machine)?;
        }
        self.values[index] = None;
        Ok(())
    }

    fn take_outputs<M: Machine<Value = V>>(
        &mut self,
        index: usize,
        plan: &Plan,
        machine: &mut M,
    ) -> Result<(), RunError<M::Error>> {
        let Some(value) = self.values[index].as_ref().and_then(Held::last) else {
            return Ok(());
        };
        let node = &self.graph.nodes()[index];
        for (name, _) in (self.graph.outputs().iter()).filter(|(_, id)| id.index() == index) {
            let level = match node.op.cache_family() {
                Some(_) => plan.node(&node.name)?.level(),
                None => OUTPUT_LEVEL.min(machine.level(value)),
            };
            machine.enter(name);
            let output = dropped(machine, name, value, level)?.unwrap_or_else(|| value.clone());
            self.outputs.insert(name.clone(), output);
        }
        Ok(())
    }
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
    let level = plan.input_level(node)?;
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
        let value = match &held.refreshed {
            Some(_) if level_in <= plan.node(&graph.node(*id).name)?.level_out => {
                held.computed.as_ref()
            }
            Some(refreshed) => Some(refreshed),
            None => held.computed.as_ref(),
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
