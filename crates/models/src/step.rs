//! The encrypted step of a model: prepared weights and calibrated approximations as one graph per token position.

mod client;
mod layer;
mod padding;
mod pass;
mod selection;
mod sites;

use std::collections::BTreeMap;

use taciturn_approx::Calibration;
use taciturn_graph::{
    CostTable, Graph, GraphError, Layout, Level, Matrix, NodeId, NormSpec, Optimal, Placement,
    Plain, PlainId, Plan, Rest, refresh_site,
};

use crate::bounds::bound_name;
use crate::checkpoint::Checkpoint;
use crate::clear::ClearModel;
use crate::config::ModelConfig;
use crate::error::ModelError;
use crate::prepared::{LayerPrefix, Prepared};
use client::{INPUT, LOGITS, witness_name, witness_nodes};
use layer::Layer;
use padding::{Places, padded, spread};
use sites::Sites;

pub use client::Witness;
pub use pass::Pass;
pub use selection::Selection;
pub use sites::StepSite;

/// Everything public about a model's encrypted step, for machines of a number of slots and up to a number of tokens.
pub struct StepModel {
    prepared: Prepared,
    slots: usize,
    context: usize,
    width: usize,
    places: Places,
    layers: Vec<Layer>,
    final_norm: NormSpec,
    head: Matrix,
    head_bias: Vec<f64>,
    prefix: Vec<LayerPrefix>,
    calibration: Calibration,
    selection: Selection,
    sites: Sites,
}

impl StepModel {
    /// Chooses approximations for a calibrated checkpoint. `context` counts the beginning-of-text token, the prompt and the new tokens.
    pub fn new(
        checkpoint: &Checkpoint,
        calibration: &Calibration,
        slots: usize,
        context: usize,
    ) -> Result<Self, ModelError> {
        Self::after(checkpoint, calibration, slots, context, &[])
    }

    /// The same for exchanges that begin with a public text after the beginning-of-text token. Its keys and values are computed in the clear;
    /// `context` counts its tokens too.
    pub fn after(
        checkpoint: &Checkpoint,
        calibration: &Calibration,
        slots: usize,
        context: usize,
        public: &[u32],
    ) -> Result<Self, ModelError> {
        let config = &checkpoint.config;
        let limit = calibration.context.min(config.positions);
        if !(2..=limit).contains(&context) || public.len() > context - 2 {
            return Err(ModelError::Context {
                expected: limit,
                got: context,
            });
        }
        let mut prepared = Prepared::new(checkpoint);
        prepared.shift_keys(calibration)?;
        let clear = ClearModel::new(checkpoint);
        let mut cache = clear.cache();
        for &token in std::iter::once(&config.bos).chain(public) {
            clear.step(&mut cache, token)?;
        }
        let prefix = prepared.prefix(&cache);
        checkpoint.weights.release();

        let places = Places::new(config, slots, context)?;
        let width = config.width.next_power_of_two();
        let selection = Selection::default();
        let sites = Sites::new(config, calibration, &selection)?;
        let layers = (0..config.layers)
            .map(|layer| Layer::new(&prepared, calibration, layer, &places, (width, &sites)))
            .collect::<Result<_, _>>()?;
        let vocabulary = config.vocabulary.next_power_of_two();
        let identity = |i: usize| i;
        Ok(Self {
            slots,
            context,
            width,
            places,
            layers,
            final_norm: layer::norm(config, &sites, "final.variance", config.width)?,
            head: padded(
                "head",
                &prepared.head.weight,
                (width, vocabulary),
                identity,
                identity,
            ),
            head_bias: spread(&prepared.head.bias, vocabulary, identity),
            prefix,
            calibration: calibration.clone(),
            selection,
            sites,
            prepared,
        })
    }

    /// The same step with approximations as they are selected, and the default ones at all other sites.
    pub fn select(&mut self, selection: &Selection) -> Result<(), ModelError> {
        let sites = Sites::new(self.config(), &self.calibration, selection)?;
        self.approximate(&sites)?;
        (self.selection, self.sites) = (selection.clone(), sites);
        Ok(())
    }

    /// The same step with the approximations that take the least time, of those that are as exact as the default ones (or exact enough): with their
    /// levels, products and the refreshes that these cause. Sites that were selected keep what they have.
    ///
    /// Gives back the last position's graph with those of least depth, for placements that choose nothing.
    pub fn choose(&mut self, costs: &CostTable) -> Result<Graph, ModelError> {
        self.find_alternatives()?;
        let counts = self.sites.0.iter().map(|site| site.alternatives.len());
        let mut graphs = Vec::new();
        for variant in 0..counts.max().unwrap_or(0) {
            self.approximate(&self.sites.variant(variant))?;
            graphs.push(self.graph(self.context - 1)?);
        }
        let chosen = Optimal::default().choose(&graphs, costs)?;
        let shallow = graphs.swap_remove(0);
        let nodes = shallow.sites().iter().map(|(node, _)| node.as_str());
        let chosen: BTreeMap<&str, usize> = nodes.zip(chosen).collect();
        self.take(|site| chosen.get(site).copied().unwrap_or(0))?;
        Ok(shallow)
    }

    /// The same step with the approximations of least depth, of those that [`choose`](Self::choose) would choose from.
    pub fn choose_shallow(&mut self) -> Result<(), ModelError> {
        self.find_alternatives()?;
        self.take(|_| 0)
    }

    /// What sites may be approximated by; budgets of errors are those of the default approximations, not of an earlier choice.
    fn find_alternatives(&mut self) -> Result<(), ModelError> {
        if self
            .sites
            .0
            .iter()
            .any(|site| !site.alternatives.is_empty())
        {
            self.sites = Sites::new(self.config(), &self.calibration, &self.selection)?;
        }
        self.sites.find_alternatives()
    }

    /// Takes an alternative for each site that was not selected, by its name in the graph.
    fn take(&mut self, chosen: impl Fn(&str) -> usize) -> Result<(), ModelError> {
        let label = |site: &StepSite| {
            let variant = chosen(&site.node);
            let last = site.alternatives.len() - 1;
            (
                site.site.clone(),
                site.alternatives[variant.min(last)].to_string(),
            )
        };
        let labels = self.sites.0.iter().filter(|site| !site.selected).map(label);
        let labels = self.selection.with_others(labels.collect());
        let mut sites = Sites::new(self.config(), &self.calibration, &labels)?;
        for (site, known) in sites.0.iter_mut().zip(&mut self.sites.0) {
            site.selected = known.selected;
            site.alternatives = std::mem::take(&mut known.alternatives);
        }
        self.approximate(&sites)?;
        self.sites = sites;
        Ok(())
    }

    fn approximate(&mut self, sites: &Sites) -> Result<(), ModelError> {
        for (number, layer) in self.layers.iter_mut().enumerate() {
            layer.approximate(number, sites)?;
        }
        self.final_norm.inverse_sqrt = sites.at("final.variance")?.clone();
        Ok(())
    }

    /// The non-linear functions with their approximations, in the order of a step.
    pub fn sites(&self) -> &[StepSite] {
        &self.sites.0
    }

    /// The model's shape.
    pub fn config(&self) -> &ModelConfig {
        &self.prepared.config
    }

    /// The number of tokens that fit, the beginning-of-text token included.
    pub fn context(&self) -> usize {
        self.context
    }

    /// How many public tokens there are, the beginning-of-text token included: the position of the first encrypted one.
    pub fn prefix_tokens(&self) -> usize {
        self.prefix.first().map_or(1, |prefix| prefix.keys.len())
    }

    /// The caches after the public tokens, by name: computed in the clear.
    pub fn prefix_caches(&self) -> Vec<(String, Plain)> {
        let heads = self.places.heads();
        let groups = self.prefix_tokens().div_ceil(heads.lanes());
        let mut caches = Vec::new();
        for (layer, prefix) in self.prefix.iter().enumerate() {
            // The cached keys of a single query carry its shift.
            let shift = match heads.queries() {
                1 => (self.places).spread_keys(&self.prepared.blocks[layer].key_shift),
                _ => vec![0.0; heads.width()],
            };
            let keys: Vec<Vec<f64>> = (prefix.keys.iter())
                .map(|key| {
                    let key = self.places.spread_keys(key);
                    key.iter().zip(&shift).map(|(k, s)| k + s).collect()
                })
                .collect();
            let values: Vec<Vec<f64>> = (prefix.values.iter())
                .map(|value| self.places.spread_keys(value))
                .collect();
            for group in 0..groups {
                caches.push((
                    format!("layer{layer}.cache.key.{group}"),
                    self.cached(&keys, |_| group),
                ));
            }
            for s in 0..heads.groups() {
                caches.push((
                    format!("layer{layer}.cache.value.{s}"),
                    self.cached(&values, |channel| heads.value_group(channel, s)),
                ));
            }
        }
        caches
    }

    /// A cache's member that holds at every channel the tokens of one group.
    fn cached(&self, tokens: &[Vec<f64>], group: impl Fn(usize) -> usize) -> Plain {
        let heads = self.places.heads();
        let lanes = heads.lanes();
        let mut slots = vec![0.0; self.slots];
        for (entry, run) in slots.chunks_mut(lanes).enumerate() {
            let held = tokens.iter().skip(group(entry / heads.heads()) * lanes);
            run.iter_mut()
                .zip(held)
                .for_each(|(slot, token)| *slot = token[entry]);
        }
        let bits: Vec<u64> = slots.iter().map(|v| v.to_bits()).collect();
        Plain::new(PlainId::of(("prefix", bits)), self.slots, move |out| {
            out.copy_from_slice(&slots)
        })
    }

    /// The graph of the token at a position, 1 at least: position 0 is the public beginning-of-text token. Its nodes have the same names
    /// at every position.
    pub fn graph(&self, position: usize) -> Result<Graph, ModelError> {
        if position == 0 || position >= self.context {
            return Err(ModelError::ContextFull {
                position,
                context: self.context,
            });
        }
        self.built(Graph::new(self.slots)?, |graph, layer, name, normed| {
            let attention = layer.attention(self.config(), &self.places, position);
            graph.attention(name, normed, &attention, position)
        })
    }

    /// The whole step in a graph, with attention from outside, which comes with the layer's name and the normed value.
    fn built(
        &self,
        mut graph: Graph,
        attention: impl Fn(&mut Graph, &Layer, &str, NodeId) -> Result<NodeId, GraphError>,
    ) -> Result<Graph, ModelError> {
        let mut x = graph.input(INPUT, Layout::periodic(self.width))?;
        for (i, layer) in self.layers.iter().enumerate() {
            let name = format!("layer{i}");
            let normed = graph.norm(&format!("{name}.norm1"), x, &layer.norm1)?;
            let attended = attention(&mut graph, layer, &name, normed)?;
            x = graph.add(format!("{name}.attention.residual"), x, attended)?;
            let normed = graph.norm(&format!("{name}.norm2"), x, &layer.norm2)?;
            let forward =
                graph.feed_forward(&format!("{name}.mlp"), normed, &layer.feed_forward)?;
            x = graph.add(format!("{name}.mlp.residual"), x, forward)?;
        }
        let normed = graph.norm("final.norm", x, &self.final_norm)?;
        let blocks = graph.product_blocks("head.product", normed, &self.head)?;
        for (i, block) in blocks.into_iter().enumerate() {
            let columns = graph.node(block).layout.values;
            let bias = self.head_bias[i * columns..(i + 1) * columns].to_vec();
            let logits = graph.add_plain(format!("head.bias.{i}"), block, bias)?;
            graph.output(format!("{LOGITS}.{i}"), logits);
        }
        for (output, argument) in witness_nodes(&graph) {
            graph.output(output, argument);
        }
        let bounds: Vec<(String, f64)> = (graph.nodes().iter())
            // What sits between the entries of a spaced value is no part of the measurement.
            .filter(|node| node.layout.rest() != Some(Rest::Garbage))
            // Values inside an approximation have the bounds that it gives them: those measured may be of another one.
            .filter(|node| node.bound.is_none())
            .filter_map(|node| {
                let bound = self.calibration.bounds.get(bound_name(&node.name))?;
                Some((node.name.clone(), *bound))
            })
            .collect();
        graph.set_bounds(bounds.iter().map(|(name, bound)| (name.as_str(), *bound)));
        let results: Vec<(String, f64)> = (graph.sites().iter())
            .filter_map(|(site, nodes)| {
                let bound = measured_result(&self.calibration, site)?;
                Some((graph.nodes()[nodes.end - 1].name.clone(), bound))
            })
            .collect();
        graph.set_bounds(results.iter().map(|(name, bound)| (name.as_str(), *bound)));
        graph.set_approximations(self.sites.labels());
        Ok(graph)
    }

    /// [`graph`](Self::graph) as a session runs it: the values that the plan refreshes are witnesses too.
    pub fn step_graph(&self, plan: &Plan, position: usize) -> Result<Graph, ModelError> {
        Ok(with_refreshed(self.graph(position)?, plan))
    }

    /// The part of [`step_graph`](Self::step_graph) that a prompt's token needs before the last: what enters the caches, with its witnesses.
    /// The last layer's attention and what follows are left out.
    pub fn prompt_graph(&self, plan: &Plan, position: usize) -> Result<Graph, ModelError> {
        Ok(self
            .step_graph(plan, position)?
            .pruned(|output| output.contains(".cache.")))
    }

    /// The graphs that a plan has to serve, that of the last position first: together they have the keys of all positions.
    ///
    /// A product ends at its lane by rotations to either side, by the bits of the lane: powers of two have each bit set once, and the first
    /// of them leave the others clear.
    pub fn planned_graphs(&self) -> Result<Vec<Graph>, ModelError> {
        let powers =
            std::iter::successors(Some(1), |p| Some(2 * p)).take_while(|&p| p < self.context);
        std::iter::once(self.context - 1)
            .chain(powers)
            .map(|position| self.graph(position))
            .collect()
    }

    /// The plan that serves every position, made for the last one.
    pub fn plan(
        &self,
        costs: &CostTable,
        placement: &(impl Placement + ?Sized),
    ) -> Result<Plan, ModelError> {
        self.plan_beside(costs, placement, &BTreeMap::new())
    }

    /// The same with the least levels of families of caches: those that passes need.
    pub fn plan_beside(
        &self,
        costs: &CostTable,
        placement: &(impl Placement + ?Sized),
        caches: &BTreeMap<String, Level>,
    ) -> Result<Plan, ModelError> {
        plan_all(&self.planned_graphs()?, costs, placement, caches)
    }
}

/// The plan of the first graph, with the keys of all: those of [`StepModel::planned_graphs`].
pub fn plan_over(
    graphs: &[Graph],
    costs: &CostTable,
    placement: &(impl Placement + ?Sized),
) -> Result<Plan, ModelError> {
    plan_all(graphs, costs, placement, &BTreeMap::new())
}

/// The same with the least levels of families of caches.
fn plan_all(
    graphs: &[Graph],
    costs: &CostTable,
    placement: &(impl Placement + ?Sized),
    caches: &BTreeMap<String, Level>,
) -> Result<Plan, ModelError> {
    let plan = taciturn_graph::plan_beside(&graphs[0], costs, placement, caches)?;
    let covered = (graphs[1..].iter()).try_fold(plan, |plan, graph| plan.cover(graph))?;
    Ok(covered)
}

/// The bound that was measured of a site's result, whatever approximated it then: the last node of those that the table has for it. Results depend on
/// an approximation no more than by its error.
fn measured_result(calibration: &Calibration, site: &str) -> Option<f64> {
    let steps = ["_squaring", ".step", "_step", ".function_step"];
    let last = |part: &str| {
        let names = (0..).map(|number| format!("{site}{part}{number}"));
        let known = names.map_while(|name| calibration.bounds.get(&name).copied());
        known.last()
    };
    let starts = ["", ".start", "_inverse", ".function"];
    let start = |part: &&str| calibration.bounds.get(&format!("{site}{part}")).copied();
    (steps.into_iter().find_map(last)).or_else(|| starts.iter().find_map(start))
}

/// The values that a plan refreshes as witnesses too.
fn with_refreshed(mut graph: Graph, plan: &Plan) -> Graph {
    let refreshed = |name: &str| plan.node(name).is_ok_and(|node| node.bootstrap.is_some());
    let witnesses: Vec<(String, NodeId)> = (graph.nodes().iter())
        .filter(|node| refreshed(&node.name))
        .filter_map(|node| {
            Some((
                witness_name(&refresh_site(&node.name)),
                graph.find(&node.name)?,
            ))
        })
        .collect();
    for (output, id) in witnesses {
        graph.output(output, id);
    }
    graph
}
