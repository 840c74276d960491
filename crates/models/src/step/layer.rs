//! One decoder block of the encrypted step: padded weights and chosen approximations.

use taciturn_approx::{Approximation, Calibration, Exp};
use taciturn_graph::{AttentionSpec, FeedForwardSpec, NormSpec, RopeSpec};

use super::padding::{Places, padded, spread};
use super::sites::Sites;
use crate::calibrate::beta_name;
use crate::config::ModelConfig;
use crate::error::ModelError;
use crate::folded::FoldedLinear;
use crate::observe::denominator_name;
use crate::prepared::{Prepared, PreparedBlock};

pub(super) struct Layer {
    pub(super) norm1: NormSpec,
    /// What depends on the position is filled in for each.
    pub(super) attention: AttentionSpec,
    query_gain: Option<Vec<f64>>,
    key_gain: Option<Vec<f64>>,
    /// Head after head, one constant per position.
    beta: Vec<f64>,
    /// Positions per head in `beta`.
    calibrated: usize,
    pub(super) norm2: NormSpec,
    pub(super) feed_forward: FeedForwardSpec,
}

impl Layer {
    pub(super) fn new(
        prepared: &Prepared,
        calibration: &Calibration,
        layer: usize,
        places: &Places,
        (width, sites): (usize, &Sites),
    ) -> Result<Self, ModelError> {
        let (config, block) = (&prepared.config, &prepared.blocks[layer]);
        let name = |part: &str| format!("layer{layer}.{part}");
        let norm = |part: &str, width| norm(config, sites, &name(part), width);
        let heads = places.heads();
        let query = |entry: usize| places.query(entry);
        let key = |entry: usize| places.key(entry);
        let identity = |i: usize| i;

        let squarings = calibration.softmax_squarings;
        let (rounds, inverse) = divisions(sites, layer, squarings)?;
        let shapes = [heads.query_width(), heads.width()];
        let [queries, keys] = shapes.map(|columns| (width, columns));
        // Without a rotary embedding a shift of the keys is a bias like the model's own.
        let mut key_bias = block.key.bias.clone();
        let mut key_shifts = Vec::new();
        if block.key_shift.iter().any(|&shift| shift != 0.0) {
            if config.rope.is_none() && heads.queries() == 1 {
                let biases = key_bias.iter_mut().zip(&block.key_shift);
                biases.for_each(|(bias, shift)| *bias += shift);
            } else {
                key_shifts = places.spread_shifts(&block.key_shift);
            }
        }
        let head_norm = |gain: &Option<Vec<f64>>, part: &str| match gain {
            Some(_) => norm(part, config.head_width).map(Some),
            None => Ok(None),
        };
        let attention = AttentionSpec {
            heads,
            used_heads: config.kv_heads,
            used_queries: config.queries_per_head(),
            query: padded(
                &name("query"),
                &block.query.weight,
                queries,
                identity,
                query,
            ),
            key: padded(&name("key"), &block.key.weight, keys, identity, key),
            value: padded(&name("value"), &block.value.weight, keys, identity, key),
            output: padded(
                &name("output"),
                &block.output.weight,
                (heads.query_width(), width),
                |entry| places.output(entry),
                identity,
            ),
            query_bias: bias(&block.query.bias, heads.query_width(), query),
            key_bias: bias(&key_bias, heads.width(), key),
            value_bias: bias(&block.value.bias, heads.width(), key),
            output_bias: bias(&block.output.bias, width, identity),
            query_norm: head_norm(&block.query_norm, "query_norm.variance")?,
            key_norm: head_norm(&block.key_norm, "key_norm.variance")?,
            query_rope: None,
            key_rope: None,
            key_shifts,
            // 1/sqrt(head width) is in the query's weights, or in the gain of its norm.
            score_scale: 0.5f64.powi(squarings as i32),
            offsets: Vec::new(),
            exp: exponential(sites, layer)?,
            rounds,
            inverse,
        };
        let beta = calibration.constant(&beta_name(layer), config.heads * calibration.context)?;
        Ok(Self {
            norm1: norm("norm1.variance", config.width)?,
            attention,
            query_gain: block.query_norm.clone(),
            key_gain: block.key_norm.clone(),
            beta: beta.to_vec(),
            calibrated: calibration.context,
            norm2: norm("norm2.variance", config.width)?,
            feed_forward: feed_forward(config, block, layer, (width, sites))?,
        })
    }

    /// The same layer with other approximations.
    pub(super) fn approximate(&mut self, layer: usize, sites: &Sites) -> Result<(), ModelError> {
        let at = |part: &str| sites.at(&format!("layer{layer}.{part}")).cloned();
        self.norm1.inverse_sqrt = at("norm1.variance")?;
        self.norm2.inverse_sqrt = at("norm2.variance")?;
        let attention = &mut self.attention;
        if let Some(norm) = &mut attention.query_norm {
            norm.inverse_sqrt = at("query_norm.variance")?;
        }
        if let Some(norm) = &mut attention.key_norm {
            norm.inverse_sqrt = at("key_norm.variance")?;
        }
        attention.exp = exponential(sites, layer)?;
        let squarings = attention.rounds.len() as u32;
        (attention.rounds, attention.inverse) = divisions(sites, layer, squarings)?;
        self.feed_forward.activation = at("hidden")?;
        Ok(())
    }

    /// Attention of the token at a position.
    pub(super) fn attention(
        &self,
        config: &ModelConfig,
        places: &Places,
        position: usize,
    ) -> AttentionSpec {
        let (heads, channels) = (places.heads(), config.head_width);
        let rope = |count: usize, gain: &Option<Vec<f64>>, spread: &dyn Fn(&[f64]) -> Vec<f64>| {
            let (cos, sin) = config.rope.as_ref()?.factors(position);
            let gain = |channel: usize| gain.as_ref().map_or(1.0, |gain| gain[channel]);
            // The gain of an entry comes with it, so that the partner's is in the other factor.
            let cos: Vec<f64> = (0..channels).map(|c| gain(c) * cos[c]).collect();
            let partner = |c: usize| (c + channels / 2) % channels;
            let sin: Vec<f64> = (0..channels).map(|c| gain(partner(c)) * sin[c]).collect();
            Some(RopeSpec {
                cos: spread(&cos.repeat(count)),
                sin: spread(&sin.repeat(count)),
            })
        };
        let queries = |factors: &[f64]| spread(factors, heads.query_width(), |i| places.query(i));
        let keys = |factors: &[f64]| places.spread_keys(factors);
        AttentionSpec {
            query_rope: rope(config.heads, &self.query_gain, &queries),
            key_rope: rope(config.kv_heads, &self.key_gain, &keys),
            offsets: (0..config.heads)
                .map(|head| self.beta[head * self.calibrated + position])
                .collect(),
            ..self.attention.clone()
        }
    }
}

/// A norm over `width` true entries, with the interval of a site.
pub(super) fn norm(
    config: &ModelConfig,
    sites: &Sites,
    site: &str,
    width: usize,
) -> Result<NormSpec, ModelError> {
    Ok(NormSpec {
        width,
        epsilon: config.epsilon,
        inverse_sqrt: sites.at(site)?.clone(),
    })
}

/// The exponential of a layer's softmax.
fn exponential(sites: &Sites, layer: usize) -> Result<Exp, ModelError> {
    match sites.at(&format!("layer{layer}.exponents"))? {
        Approximation::Exp(exp) => Ok(exp.clone()),
        other => unreachable!(
            "a site of an exponential has an approximation of {}",
            other.target().name()
        ),
    }
}

/// The coarse divisions of a layer's softmax, and the last one.
fn divisions(
    sites: &Sites,
    layer: usize,
    squarings: u32,
) -> Result<(Vec<Approximation>, Approximation), ModelError> {
    let at = |round| sites.at(&denominator_name(layer, round)).cloned();
    Ok((
        (0..squarings).map(at).collect::<Result<_, _>>()?,
        at(squarings)?,
    ))
}

fn feed_forward(
    config: &ModelConfig,
    block: &PreparedBlock,
    layer: usize,
    (width, sites): (usize, &Sites),
) -> Result<FeedForwardSpec, ModelError> {
    let name = |part: &str| format!("layer{layer}.{part}");
    let identity = |i: usize| i;
    let hidden = config.hidden.next_power_of_two();
    let first = |part: &str, linear: &FoldedLinear| {
        padded(
            &name(part),
            &linear.weight,
            (width, hidden),
            identity,
            identity,
        )
    };
    let gate = block.gate.as_ref();
    Ok(FeedForwardSpec {
        hidden: config.hidden,
        up: first("up", &block.up),
        up_bias: bias(&block.up.bias, hidden, identity),
        gate: gate.map(|gate| first("gate", gate)),
        gate_bias: gate.and_then(|gate| bias(&gate.bias, hidden, identity)),
        down: padded(
            &name("down"),
            &block.down.weight,
            (hidden, width),
            identity,
            identity,
        ),
        down_bias: bias(&block.down.bias, width, identity),
        activation: sites.at(&name("hidden"))?.clone(),
    })
}

/// A bias with its entries at their places, if there is any.
fn bias(values: &[f64], length: usize, to: impl Fn(usize) -> usize) -> Option<Vec<f64>> {
    let any = values.iter().any(|&value| value != 0.0);
    any.then(|| spread(values, length, to))
}
