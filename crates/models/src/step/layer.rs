//! A layer of the step: padded weights and an approximation for every function, chosen for its calibrated interval.

use std::sync::Arc;

use taciturn_approx::{Calibration, Exp, Gelu, GeluForm, Inverse, InverseSqrt};
use taciturn_graph::{AttentionSpec, FeedForwardSpec, FunctionKind, Heads, Matrix, NormSpec};

use crate::calibrate::beta_name;
use crate::checkpoint::LinearWeights;
use crate::config::{Activation, Gpt2Config};
use crate::error::ModelError;
use crate::observe::denominator_name;
use crate::prepared::Prepared;
use crate::softmax::{Divisions, divisions};

/// Bits that an approximation is chosen for: of relative error for the norms and the last division, of the largest value for the
/// exponential, of absolute error for GeLU. An error of 2^-14 in any of them moves a logit by about 2^-10 of its range.
const NORM_BITS: f64 = 16.0;
const EXP_BITS: f64 = 16.0;
const INVERSE_BITS: f64 = 14.0;
const GELU_BITS: f64 = 14.0;

/// One decoder block.
pub(super) struct Layer {
    pub(super) norm1: NormSpec,
    /// Constants per head and position are filled in for each position.
    pub(super) attention: AttentionSpec,
    /// Head after head, one constant per position.
    pub(super) beta: Vec<f64>,
    pub(super) norm2: NormSpec,
    pub(super) feed_forward: FeedForwardSpec,
}

/// Heads and channels padded separately; as many groups of lanes as hold the context.
pub(super) fn geometry(
    config: &Gpt2Config,
    slots: usize,
    context: usize,
) -> Result<Heads, ModelError> {
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

/// A norm whose inverse root covers the calibrated interval of its mean squares.
pub(super) fn norm(
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

/// A block's padded weights and chosen approximations.
pub(super) fn build_layer(
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
pub(super) fn padded(
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
pub(super) fn spread(values: &[f64], length: usize, to: impl Fn(usize) -> usize) -> Vec<f64> {
    let mut out = vec![0.0; length];
    for (i, &value) in values.iter().enumerate() {
        out[to(i)] = value;
    }
    out
}
