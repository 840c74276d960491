//! The encrypted step of a GPT-2 model: prepared weights and calibrated approximations as one graph per token position.

use std::collections::BTreeMap;
use std::sync::Arc;

use taciturn_approx::{Calibration, Exp, Gelu, GeluForm, Inverse, InverseSqrt};
use taciturn_graph::{
    AttentionSpec, CostTable, FeedForwardSpec, FunctionKind, Graph, Heads, Layout, Matrix, NodeId,
    NormSpec, Op, Placement, Plain, PlainId, Plan, Rest, refresh_site,
};

use crate::bounds::bound_name;
use crate::calibrate::beta_name;
use crate::checkpoint::{Checkpoint, LinearWeights};
use crate::clear::ClearModel;
use crate::config::{Activation, Gpt2Config};
use crate::error::ModelError;
use crate::observe::denominator_name;
use crate::prepared::{LayerPrefix, Prepared};
use crate::softmax::{Divisions, divisions};

/// Name of the encrypted input, and of the outputs' beginning.
const INPUT: &str = "embedding";
const LOGITS: &str = "logits";
const WITNESS: &str = "witness";

/// Bits that an approximation is chosen for: of relative error for the norms and the last division, of the largest value for the
/// exponential, of absolute error for GeLU. An error of 2^-14 in any of them moves a logit by about 2^-10 of its range.
const NORM_BITS: f64 = 16.0;
const EXP_BITS: f64 = 16.0;
const INVERSE_BITS: f64 = 14.0;
const GELU_BITS: f64 = 14.0;

/// A decrypted value that tells whether an encrypted run stayed in its intervals.
#[derive(Clone, Debug)]
pub struct Witness {
    /// Name of the output.
    pub output: String,
    /// The polynomial whose argument it is.
    pub site: String,
    /// Where its entries are.
    pub layout: Layout,
    /// Lower end of the polynomial's interval.
    pub low: f64,
    /// Upper end of the polynomial's interval.
    pub high: f64,
}

struct Layer {
    norm1: NormSpec,
    /// Constants per head and position are filled in for each position.
    attention: AttentionSpec,
    /// Head after head, one constant per position.
    beta: Vec<f64>,
    norm2: NormSpec,
    feed_forward: FeedForwardSpec,
}

/// Everything public about a model's encrypted step, for machines of a number of slots and up to a number of tokens.
pub struct StepModel {
    prepared: Prepared,
    slots: usize,
    context: usize,
    /// Tokens per row of the calibrated constants.
    calibrated: usize,
    width: usize,
    layers: Vec<Layer>,
    final_norm: NormSpec,
    head: Matrix,
    head_bias: Vec<f64>,
    prefix: Vec<LayerPrefix>,
    bounds: BTreeMap<String, f64>,
}

impl StepModel {
    /// Chooses approximations for a calibrated checkpoint. `context` counts the beginning-of-text token, the prompt and the new tokens.
    pub fn new(
        checkpoint: &Checkpoint,
        calibration: &Calibration,
        slots: usize,
        context: usize,
    ) -> Result<Self, ModelError> {
        let config = &checkpoint.config;
        let limit = calibration.context.min(config.positions);
        if !(2..=limit).contains(&context) {
            return Err(ModelError::Context {
                expected: limit,
                got: context,
            });
        }
        let mut prepared = Prepared::new(checkpoint);
        prepared.shift_keys(calibration)?;
        let clear = ClearModel::new(checkpoint);
        let mut cache = clear.cache();
        clear.step(&mut cache, config.bos)?;
        let prefix = prepared.prefix(&cache);

        let geometry = geometry(config, slots, context)?;
        let width = config.width.next_power_of_two();
        let layers = (0..config.layers)
            .map(|layer| build_layer(&prepared, calibration, layer, geometry, width))
            .collect::<Result<_, _>>()?;
        let vocabulary = config.vocabulary.next_power_of_two();
        let identity = |i: usize| i;
        Ok(Self {
            slots,
            context,
            calibrated: calibration.context,
            width,
            layers,
            final_norm: norm(config, calibration, "final.variance")?,
            head: padded(
                "head",
                &prepared.head,
                (width, vocabulary),
                identity,
                identity,
            ),
            head_bias: spread(&prepared.head.bias, vocabulary, identity),
            prefix,
            bounds: calibration.bounds.clone(),
            prepared,
        })
    }

    /// The model's shape.
    pub fn config(&self) -> &Gpt2Config {
        &self.prepared.config
    }

    /// The number of tokens that fit, the beginning-of-text token included.
    pub fn context(&self) -> usize {
        self.context
    }

    /// Name of the encrypted input.
    pub fn input_name() -> &'static str {
        INPUT
    }

    /// One period of the slots of a token's input: its centred embedding, padded with zeros.
    pub fn embed(&self, token: u32, position: usize) -> Result<Vec<f64>, ModelError> {
        let mut slots = self.prepared.embed(token, position)?;
        slots.resize(self.width, 0.0);
        Ok(slots)
    }

    /// The caches after the public beginning-of-text token, by name: computed in the clear.
    pub fn prefix_caches(&self) -> Vec<(String, Plain)> {
        let mut caches = Vec::new();
        for (layer, prefix) in self.prefix.iter().enumerate() {
            let heads = self.layers[layer].attention.heads;
            let (key, value) = (&prefix.keys[0], &prefix.values[0]);
            caches.push((
                format!("layer{layer}.cache.key.0"),
                self.cached(&heads, key, |_| true),
            ));
            for s in 0..heads.groups() {
                // Number s holds, at channel c, the token of group (c + s) mod G; the first token is in group 0.
                let chosen = move |channel: usize| (channel + s).is_multiple_of(heads.groups());
                caches.push((
                    format!("layer{layer}.cache.value.{s}"),
                    self.cached(&heads, value, chosen),
                ));
            }
        }
        caches
    }

    /// A cache's member that holds one value, head after head, at lane 0.
    fn cached(&self, heads: &Heads, value: &[f64], chosen: impl Fn(usize) -> bool) -> Plain {
        let config = self.config();
        let mut slots = vec![0.0; self.slots];
        for head in 0..config.heads {
            for channel in (0..config.head_width()).filter(|&c| chosen(c)) {
                let at = heads.column(head, channel) * heads.lanes();
                slots[at] = value[head * config.head_width() + channel];
            }
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
        let mut graph = Graph::new(self.slots)?;
        let mut x = graph.input(INPUT, Layout::periodic(self.width))?;
        for (i, layer) in self.layers.iter().enumerate() {
            let name = format!("layer{i}");
            let normed = graph.norm(&format!("{name}.norm1"), x, &layer.norm1)?;
            let mut attention = layer.attention.clone();
            attention.offsets = (0..attention.used_heads)
                .map(|head| layer.beta[head * self.calibrated + position])
                .collect();
            let attended = graph.attention(&name, normed, &attention, position)?;
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
            .filter_map(|node| {
                let bound = self.bounds.get(bound_name(&node.name))?;
                Some((node.name.clone(), *bound))
            })
            .collect();
        graph.set_bounds(bounds.iter().map(|(name, bound)| (name.as_str(), *bound)));
        Ok(graph)
    }

    /// [`graph`](Self::graph) as a session runs it: the values that the plan refreshes are witnesses too.
    pub fn step_graph(&self, plan: &Plan, position: usize) -> Result<Graph, ModelError> {
        let mut graph = self.graph(position)?;
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
        Ok(graph)
    }

    /// The part of [`step_graph`](Self::step_graph) that a prompt's token needs before the last: what enters the caches, with its witnesses.
    /// The last layer's attention and what follows are left out.
    pub fn prompt_graph(&self, plan: &Plan, position: usize) -> Result<Graph, ModelError> {
        Ok(self
            .step_graph(plan, position)?
            .pruned(|output| output.contains(".cache.")))
    }

    /// The plan that serves every position, made for the last one.
    pub fn plan(&self, costs: &CostTable, placement: &impl Placement) -> Result<Plan, ModelError> {
        let plan = taciturn_graph::plan(&self.graph(self.context - 1)?, costs, placement)?;
        // A product ends at its lane by rotations to either side, by the bits of the lane: powers of two have each bit set once, and
        // the first of them leave the others clear.
        let positions =
            std::iter::successors(Some(1), |p| Some(2 * p)).take_while(|&p| p < self.context);
        positions.into_iter().try_fold(plan, |plan, position| {
            Ok(plan.cover(&self.graph(position)?)?)
        })
    }

    /// Names of the outputs that hold the logits, with their layouts, in order.
    pub fn logit_outputs(&self, graph: &Graph) -> Vec<(String, Layout)> {
        let outputs = graph.outputs().iter();
        outputs
            .filter(|(name, _)| name.starts_with(LOGITS))
            .map(|(name, id)| (name.clone(), graph.node(*id).layout))
            .collect()
    }

    /// The vocabulary's logits from the slots of [`logit_outputs`](Self::logit_outputs), in their order.
    pub fn logits(&self, graph: &Graph, slots: &[impl AsRef<[f64]>]) -> Vec<f64> {
        let outputs = self.logit_outputs(graph);
        let mut logits: Vec<f64> = outputs
            .iter()
            .zip(slots)
            .flat_map(|((_, layout), slots)| layout.compact(slots.as_ref()))
            .collect();
        logits.truncate(self.config().vocabulary);
        logits
    }

    /// What a client checks after decryption: arguments of polynomials lie in their intervals, refreshed values within their bounds. (A
    /// refreshed value past its bound still comes out past it, up to hundreds of times: the sine bends late.)
    pub fn witnesses(&self, graph: &Graph) -> Vec<Witness> {
        let polynomials = graph.nodes().iter().filter_map(|node| match &node.op {
            Op::Polynomial(function) => Some((node, function)),
            _ => None,
        });
        let arguments = polynomials.map(|(node, function)| Witness {
            output: witness_name(&node.name),
            site: node.name.clone(),
            layout: graph.node(node.inputs[0]).layout,
            low: function.polynomial.low,
            high: function.polynomial.high,
        });
        let refreshed = graph.outputs().iter().filter_map(|(output, id)| {
            let node = graph.node(*id);
            let bound = node
                .bound
                .filter(|_| *output == witness_name(&refresh_site(&node.name)))?;
            Some(Witness {
                output: output.clone(),
                site: refresh_site(&node.name),
                layout: node.layout,
                low: -bound,
                high: bound,
            })
        });
        arguments.chain(refreshed).collect()
    }
}

fn witness_name(node: &str) -> String {
    format!("{WITNESS}.{node}")
}

fn witness_nodes(graph: &Graph) -> Vec<(String, NodeId)> {
    let polynomials = graph
        .nodes()
        .iter()
        .filter(|node| matches!(node.op, Op::Polynomial(_)));
    polynomials
        .map(|node| (witness_name(&node.name), node.inputs[0]))
        .collect()
}

/// Heads and channels padded separately; as many groups of lanes as hold the context.
fn geometry(config: &Gpt2Config, slots: usize, context: usize) -> Result<Heads, ModelError> {
    let heads = config.heads.next_power_of_two();
    let channels = config.head_width().next_power_of_two();
    let lanes = (slots / (heads * channels)).max(1);
    Ok(Heads::new(
        slots,
        heads,
        channels,
        context.div_ceil(lanes).next_power_of_two(),
    )?)
}

fn norm(
    config: &Gpt2Config,
    calibration: &Calibration,
    site: &str,
) -> Result<NormSpec, ModelError> {
    let range = calibration.site(site)?;
    Ok(NormSpec {
        width: config.width,
        epsilon: config.epsilon,
        inverse_sqrt: InverseSqrt::choose(range.low(), range.high(), NORM_BITS)?,
    })
}

fn build_layer(
    prepared: &Prepared,
    calibration: &Calibration,
    layer: usize,
    heads: Heads,
    width: usize,
) -> Result<Layer, ModelError> {
    let (config, block) = (&prepared.config, &prepared.blocks[layer]);
    let channels = config.head_width();
    let column = |old: usize| heads.column(old / channels, old % channels);
    let identity = |i: usize| i;
    let name = |part: &str| format!("layer{layer}.{part}");
    let attention_width = heads.width();

    let exponents = calibration.site(&name("exponents"))?;
    let squarings = calibration.softmax_squarings;
    let intervals = (0..=squarings)
        .map(|round| {
            let range = calibration.site(&denominator_name(layer, round))?;
            Ok((range.low(), range.high()))
        })
        .collect::<Result<Vec<_>, ModelError>>()?;
    let Divisions {
        coarse,
        last: (low, high),
    } = divisions(layer, &intervals)?;
    let qkv = (width, attention_width);
    let attention = AttentionSpec {
        heads,
        used_heads: config.heads,
        query: padded(&name("query"), &block.query, qkv, identity, column),
        key: padded(&name("key"), &block.key, qkv, identity, column),
        value: padded(&name("value"), &block.value, qkv, identity, column),
        output: padded(
            &name("output"),
            &block.output,
            (attention_width, width),
            column,
            identity,
        ),
        query_bias: Some(spread(&block.query.bias, attention_width, column)),
        key_bias: Some(spread(&block.key.bias, attention_width, column)),
        value_bias: Some(spread(&block.value.bias, attention_width, column)),
        output_bias: Some(spread(&block.output.bias, width, identity)),
        rope: None,
        // 1/sqrt(head width) is in the query's weights.
        score_scale: 0.5f64.powi(squarings as i32),
        offsets: Vec::new(),
        exp: Exp::choose(exponents.low(), exponents.high(), EXP_BITS)?,
        rounds: coarse,
        inverse: Inverse::choose(low, high, INVERSE_BITS)?,
    };
    let hidden = config.hidden.next_power_of_two();
    let range = calibration.site(&name("hidden"))?;
    let (form, kind) = match config.activation {
        Activation::GeluTanh => (GeluForm::Tanh, FunctionKind::GeluTanh),
        Activation::GeluErf => (GeluForm::Erf, FunctionKind::GeluErf),
    };
    // The interval has to contain zero, where padding sits.
    let edge = 1e-3 * range.bound;
    let gelu = Gelu::choose(
        form,
        range.low().min(-edge),
        range.high().max(edge),
        GELU_BITS,
    )?;
    let feed_forward = FeedForwardSpec {
        up: padded(&name("up"), &block.up, (width, hidden), identity, identity),
        up_bias: Some(spread(&block.up.bias, hidden, identity)),
        gate: None,
        down: padded(
            &name("down"),
            &block.down,
            (hidden, width),
            identity,
            identity,
        ),
        down_bias: Some(spread(&block.down.bias, width, identity)),
        kind,
        polynomial: gelu.poly,
    };
    Ok(Layer {
        norm1: norm(config, calibration, &name("norm1.variance"))?,
        attention,
        beta: calibration
            .constant(&beta_name(layer), config.heads * calibration.context)?
            .to_vec(),
        norm2: norm(config, calibration, &name("norm2.variance"))?,
        feed_forward,
    })
}

/// A matrix with rows and columns moved and zeros between and after them.
fn padded(
    name: &str,
    linear: &LinearWeights,
    (rows, columns): (usize, usize),
    row: impl Fn(usize) -> usize,
    column: impl Fn(usize) -> usize,
) -> Matrix {
    let weight = &linear.weight;
    let mut entries = vec![0f32; rows * columns];
    for i in 0..weight.rows() {
        for (j, &value) in weight.row(i).iter().enumerate() {
            entries[row(i) * columns + column(j)] = value;
        }
    }
    Matrix::computed(name, rows, columns, {
        let entries: Arc<[f32]> = entries.into();
        move |i, j| f64::from(entries[i * columns + j])
    })
}

/// A vector with entries moved and zeros between and after them.
fn spread(values: &[f64], length: usize, to: impl Fn(usize) -> usize) -> Vec<f64> {
    let mut out = vec![0.0; length];
    for (i, &value) in values.iter().enumerate() {
        out[to(i)] = value;
    }
    out
}
