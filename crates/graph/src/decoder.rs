//! The parts of a decoder block that GPT-2 and Llama share, for one new token.

use crate::{Function, FunctionKind, Graph, GraphError, Heads, Matrix, NodeId, NonLinear, Vector};
use std::sync::Arc;
use taciturn_approx::{Chebyshev, Exp, Inverse, InverseSqrt};

type Added = Result<NodeId, GraphError>;

/// A root-mean-square norm (a LayerNorm too, once the residual stream is centred); gains are folded into what follows.
#[derive(Clone, Debug)]
pub struct NormSpec {
    /// The true width, by which the sum of squares is divided.
    pub width: usize,
    /// Added to the mean square.
    pub epsilon: f64,
    /// Of the mean square plus `epsilon`.
    pub inverse_sqrt: InverseSqrt,
}

/// Rotary embedding of queries and keys at one position, in padded column order. It pairs channel `c` with channel
/// `c + channels / 2` of the padded count, so where channels are padded the second half's columns start there.
#[derive(Clone, Debug)]
pub struct RopeSpec {
    /// Factor of the entry itself.
    pub cos: Vec<f64>,
    /// Factor of the entry half the width away, with the rotation's sign.
    pub sin: Vec<f64>,
}

/// Attention of one layer. Matrices are padded: columns of query, key, value and rows of output as [`Heads::column`] says.
#[derive(Clone, Debug)]
pub struct AttentionSpec {
    /// Geometry.
    pub heads: Heads,
    /// True number of heads; the others are padding.
    pub used_heads: usize,
    /// Query weights.
    pub query: Matrix,
    /// Key weights.
    pub key: Matrix,
    /// Value weights.
    pub value: Matrix,
    /// Output weights.
    pub output: Matrix,
    /// Query bias.
    pub query_bias: Option<Vec<f64>>,
    /// Key bias. It shifts all scores of a query alike, so that a model's own may be dropped and a calibrated one put in its place.
    pub key_bias: Option<Vec<f64>>,
    /// Value bias.
    pub value_bias: Option<Vec<f64>>,
    /// Output bias.
    pub output_bias: Option<Vec<f64>>,
    /// Rotary embedding at this position.
    pub rope: Option<RopeSpec>,
    /// Scores are multiplied by this: usually `1 / sqrt(channels)` of the true channels.
    pub score_scale: f64,
    /// Constant `beta` per true head that is subtracted from scaled scores.
    pub offsets: Vec<f64>,
    /// Of scaled scores less `beta`; where there are rounds, of these divided by 2 to the number of rounds.
    pub exp: Exp,
    /// Normalise-and-square (Cho et al., as in Cachemir's appendix E): each round divides the exponentials by (about) their sum and squares
    /// them, so that no sum leaves [1/tokens, 1] by much. Each inverse is of that round's sums; a coarse one will do.
    pub rounds: Vec<Inverse>,
    /// Of the last denominators.
    pub inverse: Inverse,
}

/// A feed-forward network; with a gate (SwiGLU) the function is applied to the gate.
#[derive(Clone, Debug)]
pub struct FeedForwardSpec {
    /// First weights.
    pub up: Matrix,
    /// Their bias.
    pub up_bias: Option<Vec<f64>>,
    /// Weights of the gate.
    pub gate: Option<Matrix>,
    /// Second weights.
    pub down: Matrix,
    /// Their bias.
    pub down_bias: Option<Vec<f64>>,
    /// The non-linear function.
    pub kind: FunctionKind,
    /// Its approximation.
    pub polynomial: Chebyshev,
}

/// Scale and shift that map a polynomial's interval to [-1, 1].
fn to_unit(polynomial: &Chebyshev) -> (f64, f64) {
    let width = polynomial.high - polynomial.low;
    (2.0 / width, -(polynomial.high + polynomial.low) / width)
}

/// A function whose argument comes mapped to [-1, 1]; `divisor` divides the exact one's argument.
fn folded(kind: FunctionKind, polynomial: &Chebyshev, divisor: f64) -> Arc<NonLinear> {
    let (low, high) = (polynomial.low / divisor, polynomial.high / divisor);
    let polynomial = Chebyshev {
        low: -1.0,
        high: 1.0,
        coefficients: polynomial.coefficients.clone(),
    };
    Arc::new(NonLinear {
        function: Function::folded(kind, low, high),
        polynomial,
    })
}

/// One at the scores of used heads and tokens, zero elsewhere.
fn used_tokens(heads: &Heads, used_heads: usize, tokens: usize) -> Vec<f64> {
    let mut mask = vec![0.0; heads.scores().values];
    for head in 0..used_heads {
        for token in 0..tokens {
            mask[heads.score(head, token)] = 1.0;
        }
    }
    mask
}

impl Graph {
    /// `x / rms(x)` for a periodic value. Nodes `name.*`.
    pub fn norm(&mut self, name: &str, x: NodeId, spec: &NormSpec) -> Added {
        let width = spec.width as f64;
        let squares = self.square(format!("{name}.squares"), x)?;
        let sum = self.sum_all(format!("{name}.sum"), squares)?;
        // The interval's map is an operation of its own, so that its result, of moderate size, can be a witness.
        let InverseSqrt { start, newton } = &spec.inverse_sqrt;
        let (scale, shift) = to_unit(start);
        let scaled = self.mul_plain(format!("{name}.scaled"), sum, scale / width)?;
        let unit = self.add_plain(format!("{name}.unit"), scaled, shift + scale * spec.epsilon)?;
        let function = folded(FunctionKind::InverseSqrt, start, 1.0);
        let mut inverse = self.polynomial(format!("{name}.start"), unit, &function)?;
        if *newton > 0 {
            let scaled = self.mul_plain(format!("{name}.half"), sum, 0.5 / width)?;
            let half =
                self.add_plain(format!("{name}.half_variance"), scaled, 0.5 * spec.epsilon)?;
            for step in 0..*newton {
                inverse =
                    self.newton_inverse_sqrt(&format!("{name}.newton{step}"), half, inverse)?;
            }
        }
        self.mul(format!("{name}.result"), x, inverse)
    }

    /// Attention of the token at `position` to all tokens up to it, for a normed periodic value. Nodes `layer.attention.*`;
    /// caches `layer.cache.*`, which are inputs (from the second token on) and outputs.
    pub fn attention(
        &mut self,
        layer: &str,
        x: NodeId,
        spec: &AttentionSpec,
        position: usize,
    ) -> Added {
        let name = |part: &str| format!("{layer}.attention.{part}");
        let heads = spec.heads;
        let keys = self.append_key(layer, x, spec, position)?;
        let values = self.append_value(layer, x, spec, position)?;

        let (scale, shift) = to_unit(&spec.exp.poly);
        let mut query = self.product_spaced(name("query"), x, &spec.query, 0)?;
        if let Some(bias) = &spec.query_bias {
            query = self.add_plain(name("query_bias"), query, bias.clone())?;
        }
        let factor = scale * spec.score_scale;
        query = match &spec.rope {
            Some(RopeSpec { cos, sin }) => {
                let scaled = |values: &[f64]| {
                    values
                        .iter()
                        .map(|value| factor * value)
                        .collect::<Vec<_>>()
                };
                self.rope(name("query_rope"), query, scaled(cos), scaled(sin))?
            }
            None => self.mul_plain(name("query_mask"), query, factor)?,
        };
        query = self.repeat(name("query_repeat"), query)?;
        let scores = self.scores(name("scores"), heads, query, &keys)?;

        // Unused tokens go to the interval's lower end, padded heads to its middle.
        let tokens = position + 1;
        let mut shifts = vec![0.0; heads.scores().values];
        for head in 0..spec.used_heads {
            for token in 0..heads.capacity() {
                let unit = if token < tokens {
                    shift - scale * spec.offsets[head]
                } else {
                    -1.0
                };
                shifts[heads.score(head, token)] = unit;
            }
        }
        let scores = self.add_plain(name("scores_unit"), scores, shifts)?;
        let squarings = spec.exp.squarings;
        let exp = folded(
            FunctionKind::Exp,
            &spec.exp.poly,
            2f64.powi(squarings as i32),
        );
        let mut exponentials = self.polynomial(name("exp"), scores, &exp)?;
        for step in 0..squarings {
            exponentials = self.square(name(&format!("exp_squaring{step}")), exponentials)?;
        }
        let used = |value: f64| -> Vector {
            (0..heads.heads())
                .map(|head| if head < spec.used_heads { value } else { 0.0 })
                .collect::<Vec<_>>()
                .into()
        };
        // The first sum loses what unused tokens contribute; after the first round they are zero.
        let unused = (heads.capacity() - tokens) as f64;
        for (round, coarse) in spec.rounds.iter().enumerate() {
            let part = |part: &str| name(&format!("round{round}.{part}"));
            let mut total = self.sum_tokens(part("total"), heads, exponentials)?;
            if round == 0 {
                total =
                    self.subtract_image(part("sum"), total, &exp, squarings, -1.0, used(unused))?;
                exponentials = self.mul_plain(
                    part("used"),
                    exponentials,
                    used_tokens(&heads, spec.used_heads, tokens),
                )?;
            }
            let inverse = self.inverse_of_sums(&part("denominator"), total, coarse, spec, &used)?;
            let inverse = self.repeat(part("inverse_repeat"), inverse)?;
            let inverse = self.flatten(part("inverse_flat"), inverse)?;
            let normalised = self.mul(part("normalised"), exponentials, inverse)?;
            exponentials = self.square(part("squared"), normalised)?;
        }
        let mut total = self.sum_tokens(name("total"), heads, exponentials)?;
        if spec.rounds.is_empty() {
            total = self.subtract_image(name("sum"), total, &exp, squarings, -1.0, used(unused))?;
        }
        let inverse =
            self.inverse_of_sums(&name("denominator"), total, &spec.inverse, spec, &used)?;
        let attended = self.weighted_values(name("attended"), heads, exponentials, &values)?;
        let attended = self.mul(name("normalised"), attended, inverse)?;
        let attended = self.repeat(name("attended_repeat"), attended)?;
        let output = self.product_periodic(name("output"), attended, &spec.output)?;
        match &spec.output_bias {
            Some(bias) => self.add_plain(name("output_bias"), output, bias.clone()),
            None => Ok(output),
        }
    }

    /// 1 / sum at lane 0, zero elsewhere. Nodes `name`, `name_*`; the node `name_unit` holds the sums, mapped to [-1, 1].
    fn inverse_of_sums(
        &mut self,
        name: &str,
        total: NodeId,
        approximation: &Inverse,
        spec: &AttentionSpec,
        used: &dyn Fn(f64) -> Vector,
    ) -> Added {
        let start = &approximation.start;
        let (scale, shift) = to_unit(start);
        let masked = self.mul_plain(format!("{name}_mask"), total, used(scale))?;
        let unit = self.add_plain(format!("{name}_unit"), masked, used(shift))?;
        let function = folded(FunctionKind::Inverse, start, 1.0);
        let mut inverse = self.polynomial(format!("{name}_inverse"), unit, &function)?;
        if approximation.newton > 0 {
            let masked = self.mul_plain(format!("{name}_copy"), total, used(1.0))?;
            // Outside the used heads the middle of the interval, where the first approximation is taken as well.
            let middle = (start.low + start.high) / 2.0;
            let padding: Vec<f64> = (0..spec.heads.heads())
                .map(|head| if head < spec.used_heads { 0.0 } else { middle })
                .collect();
            let x = self.add_filled(format!("{name}_filled"), masked, padding, middle)?;
            for step in 0..approximation.newton {
                inverse = self.newton_inverse(&format!("{name}_newton{step}"), x, inverse)?;
            }
        }
        self.clear_rest(format!("{name}_clear"), inverse)
    }

    /// The key caches of all groups in use, the new token's key included.
    fn append_key(
        &mut self,
        layer: &str,
        x: NodeId,
        spec: &AttentionSpec,
        position: usize,
    ) -> Result<Vec<NodeId>, GraphError> {
        let heads = spec.heads;
        let (group, lane) = (position / heads.lanes(), position % heads.lanes());
        let family = format!("{layer}.cache.key");
        let member = |g: usize| format!("{family}.{g}");
        let mut keys = Vec::with_capacity(group + 1);
        for g in 0..group + usize::from(lane > 0) {
            keys.push(self.cache(member(g), &family, heads.cache())?);
        }
        let mut key = self.product_spaced(format!("{layer}.attention.key"), x, &spec.key, lane)?;
        if let Some(bias) = &spec.key_bias {
            key = self.add_plain(format!("{layer}.attention.key_bias"), key, bias.clone())?;
        }
        let key = match &spec.rope {
            Some(RopeSpec { cos, sin }) => self.rope(
                format!("{layer}.attention.key_rope"),
                key,
                cos.clone(),
                sin.clone(),
            )?,
            None => self.mul_plain(format!("{layer}.attention.key_mask"), key, 1.0)?,
        };
        let cache = keys.get(group).copied();
        let appended = self.append(format!("{layer}.attention.append_key"), &family, key, cache)?;
        keys.truncate(group);
        keys.push(appended);
        self.output(member(group), appended);
        Ok(keys)
    }

    /// All value caches, the new token's value included.
    fn append_value(
        &mut self,
        layer: &str,
        x: NodeId,
        spec: &AttentionSpec,
        position: usize,
    ) -> Result<Vec<NodeId>, GraphError> {
        let heads = spec.heads;
        let (group, lane) = (position / heads.lanes(), position % heads.lanes());
        let family = format!("{layer}.cache.value");
        let mut value =
            self.product_spaced(format!("{layer}.attention.value"), x, &spec.value, lane)?;
        if let Some(bias) = &spec.value_bias {
            value = self.add_plain(format!("{layer}.attention.value_bias"), value, bias.clone())?;
        }
        let mut values = Vec::with_capacity(heads.groups());
        for s in 0..heads.groups() {
            let member = format!("{family}.{s}");
            // Number s holds, at channel c, the token of group (c + s) mod G.
            let chosen = |entry: usize| (entry / heads.heads() + s) % heads.groups() == group;
            let mask: Vec<f64> = (0..heads.width())
                .map(|entry| f64::from(u8::from(chosen(entry))))
                .collect();
            let masked =
                self.mul_plain(format!("{layer}.attention.value_mask.{s}"), value, mask)?;
            let cache = if position == 0 {
                None
            } else {
                Some(self.cache(&member, &family, heads.cache())?)
            };
            let appended = self.append(
                format!("{layer}.attention.append_value.{s}"),
                &family,
                masked,
                cache,
            )?;
            self.output(&member, appended);
            values.push(appended);
        }
        Ok(values)
    }

    /// A feed-forward network for a normed periodic value. Nodes `name.*`.
    pub fn feed_forward(&mut self, name: &str, x: NodeId, spec: &FeedForwardSpec) -> Added {
        let part = |part: &str| format!("{name}.{part}");
        let (scale, shift) = to_unit(&spec.polynomial);
        let argument = spec.gate.as_ref().unwrap_or(&spec.up);
        let product = self.product_spaced(part("argument"), x, argument, 0)?;
        let masked = self.mul_plain(part("mask"), product, scale)?;
        let shifts: Vector = match (&spec.up_bias, &spec.gate) {
            (Some(bias), None) => bias
                .iter()
                .map(|bias| scale * bias + shift)
                .collect::<Vec<_>>()
                .into(),
            _ => shift.into(),
        };
        // Elsewhere stays 0, the middle of the interval.
        let unit = self.add_plain(part("unit"), masked, shifts)?;
        let function = folded(spec.kind, &spec.polynomial, 1.0);
        let value = self.polynomial(part("function"), unit, &function)?;
        let mut hidden = self.clear_rest(part("clear"), value)?;
        if spec.gate.is_some() {
            // The zeros of the gated side mask this one.
            let mut up = self.product_spaced(part("up"), x, &spec.up, 0)?;
            if let Some(bias) = &spec.up_bias {
                up = self.add_plain(part("up_bias"), up, bias.clone())?;
            }
            hidden = self.mul(part("gated"), hidden, up)?;
        }
        let hidden = self.repeat(part("repeat"), hidden)?;
        let down = self.product_periodic(part("down"), hidden, &spec.down)?;
        match &spec.down_bias {
            Some(bias) => self.add_plain(part("down_bias"), down, bias.clone()),
            None => Ok(down),
        }
    }
}
