//! Attention of one new token, with caches of keys and values: every query head with its own keys and values, or several that share them.

mod cached;
mod several;

use cached::Arrival;
pub use several::PassSpec;

use crate::folded::{folded, to_unit};
use crate::recorder::{Part, Recorder, Unmapped};
use crate::{FunctionKind, Graph, GraphError, Heads, Matrix, NodeId, NormSpec, Vector};
use taciturn_approx::{Approximation, Exp, Target};

type Added = Result<NodeId, GraphError>;

/// Rotary embedding at one position, in padded entry order; the gains of a norm before it may be in the factors. It pairs channel `c` with
/// channel `c + channels / 2` of the padded count, so where channels are padded the second half's columns start there.
#[derive(Clone, Debug)]
pub struct RopeSpec {
    /// Factor of the entry itself.
    pub cos: Vec<f64>,
    /// Factor of the entry half the width away, with the rotation's sign.
    pub sin: Vec<f64>,
}

/// Attention of one layer. Matrices are padded: columns of the query as [`Heads::query_column`] says, of key and value as [`Heads::column`], rows
/// of the output as [`Heads::output_row`].
#[derive(Clone, Debug)]
pub struct AttentionSpec {
    /// Geometry.
    pub heads: Heads,
    /// True number of K/V heads; the others are padding.
    pub used_heads: usize,
    /// True number of query heads per K/V head.
    pub used_queries: usize,
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
    /// Key bias.
    pub key_bias: Option<Vec<f64>>,
    /// Value bias.
    pub value_bias: Option<Vec<f64>>,
    /// Output bias.
    pub output_bias: Option<Vec<f64>>,
    /// Norm of every head's query.
    pub query_norm: Option<NormSpec>,
    /// Norm of every head's key.
    pub key_norm: Option<NormSpec>,
    /// Rotary embedding of the query at this position.
    pub query_rope: Option<RopeSpec>,
    /// Rotary embedding of the key at this position.
    pub key_rope: Option<RopeSpec>,
    /// For each of a head's queries (padding included) what is added to all keys that it meets, after their embedding; empty for nothing. It
    /// shifts all scores of a query alike, which a softmax does not notice.
    pub key_shifts: Vec<Vec<f64>>,
    /// Scores are multiplied by this: usually `1 / sqrt(channels)` of the true channels.
    pub score_scale: f64,
    /// Constant `beta` per true query head, those of one K/V head side by side, that is subtracted from scaled scores.
    pub offsets: Vec<f64>,
    /// Of scaled scores less `beta`; where there are rounds, of these divided by 2 to the number of rounds.
    pub exp: Exp,
    /// Normalise-and-square (Cho et al., as in Cachemir's appendix E): each round divides the exponentials by (about) their sum and squares
    /// them, so that no sum leaves [1/tokens, 1] by much. Each inverse is of that round's sums; a coarse one will do.
    pub rounds: Vec<Approximation>,
    /// Of the last denominators.
    pub inverse: Approximation,
}

impl AttentionSpec {
    /// One value per query head: `value` for the true ones, zero for padding.
    fn per_query(&self, value: f64) -> Vector {
        self.per_query_or(value, 0.0)
    }

    fn per_query_or(&self, value: f64, padding: f64) -> Vector {
        let heads = self.heads;
        let mut entries = vec![padding; heads.heads() * heads.queries()];
        self.used()
            .for_each(|(head, query)| entries[heads.per_query(head, query)] = value);
        entries.into()
    }

    /// The true K/V heads with each of their true queries, those of one head side by side.
    fn used(&self) -> impl Iterator<Item = (usize, usize)> {
        let queries = self.used_queries;
        (0..self.used_heads).flat_map(move |head| (0..queries).map(move |query| (head, query)))
    }

    /// `value(query head, token)` at the scores of true heads and all tokens that fit, zero elsewhere.
    fn scores(&self, value: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        let mut scores = vec![0.0; self.heads.scores().values];
        for (i, (head, query)) in self.used().enumerate() {
            for token in 0..self.heads.capacity() {
                scores[self.heads.score(head, query, token)] = value(i, token);
            }
        }
        scores
    }
}

/// Which scores a softmax sees.
struct Shown {
    /// Added to each ciphertext of scores: the exponential's interval map and beta; for those that are not seen, whose score is zero, its
    /// lower end.
    shifts: Vec<Vector>,
    /// How many are not seen, per query.
    unused: Vector,
    /// For each ciphertext one for those that are seen, zero for the others.
    used: Vec<Vector>,
}

/// The name of one of several values; of an only one the name itself.
fn member(name: String, count: usize, number: usize) -> String {
    match count {
        1 => name,
        _ => format!("{name}.{number}"),
    }
}

impl Graph {
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
        let arrival = Arrival::one(position, heads.lanes());
        let keys = self.append_key(layer, x, spec, &arrival)?;
        let values = self.append_value(layer, x, spec, &arrival)?;
        let keys = self.shifted_keys(layer, &keys, spec, position)?;

        let (scale, shift) = to_unit(spec.exp.interval());
        let queries = self.queries(layer, x, spec, scale * spec.score_scale)?;
        let scores = self.scores(name("scores"), heads, &queries, &keys)?;

        // Unused tokens go to the interval's lower end, padded heads to its middle.
        let tokens = position + 1;
        let shifts = spec.scores(|head, token| match token < tokens {
            true => shift - scale * spec.offsets[head],
            false => -1.0,
        });
        let shown = Shown {
            shifts: vec![shifts.into()],
            unused: spec.per_query((heads.capacity() - tokens) as f64),
            used: vec![(spec.scores(|_, token| f64::from(u8::from(token < tokens)))).into()],
        };
        let weigh = |graph: &mut Graph, name, weights: &[NodeId]| {
            graph.weighted_values(name, heads, weights[0], &values)
        };
        self.attend(layer, &[scores], 1, &weigh, spec, shown)
    }

    /// The softmax of scores, the values that it weighs, and their output. `spec.heads` are those of a ciphertext of scores, of which there are at
    /// most `most`; `weigh` adds the sum of values that exponentials weigh.
    fn attend(
        &mut self,
        layer: &str,
        scores: &[NodeId],
        most: usize,
        weigh: &dyn Fn(&mut Graph, String, &[NodeId]) -> Added,
        spec: &AttentionSpec,
        shown: Shown,
    ) -> Added {
        let name = |part: &str| format!("{layer}.attention.{part}");
        let heads = spec.heads;
        let squarings = spec.exp.squarings;
        let exp = folded(
            FunctionKind::Exp,
            &spec.exp.poly,
            2f64.powi(squarings as i32),
        );
        let approximation = Approximation::Exp(spec.exp.clone());
        let mut exponentials = Vec::with_capacity(scores.len());
        for (number, (&scores, shifts)) in scores.iter().zip(shown.shifts).enumerate() {
            let member = |part: &str| member(name(part), most, number);
            let scores = self.add_plain(member("scores_unit"), scores, shifts)?;
            let names = |part| match part {
                Part::Start => member("exp"),
                Part::Number(number) => member(&format!("exp_squaring{number}")),
            };
            exponentials.push(self.approximated(&name("exp"), |graph| {
                Recorder::new(graph, &names).record(&approximation, scores)
            })?);
        }
        // The first sum loses what unused tokens contribute; after the first round they are zero.
        for (round, coarse) in spec.rounds.iter().enumerate() {
            let part = |part: &str| name(&format!("round{round}.{part}"));
            let mut total = self.sum_tokens(part("total"), heads, &exponentials)?;
            if round == 0 {
                total = self.subtract_image(
                    part("sum"),
                    total,
                    &exp,
                    squarings,
                    -1.0,
                    shown.unused.clone(),
                )?;
                for (number, used) in shown.used.iter().enumerate() {
                    let name = member(part("used"), most, number);
                    exponentials[number] =
                        self.mul_plain(name, exponentials[number], used.clone())?;
                }
            }
            let inverse = self.inverse_of_sums(&part("denominator"), total, coarse, spec)?;
            let inverse = self.repeat(part("inverse_repeat"), inverse)?;
            let inverse = self.flatten(part("inverse_flat"), inverse)?;
            for (number, exponential) in exponentials.iter_mut().enumerate() {
                let part = |name: &str| member(part(name), most, number);
                let normalised = self.mul(part("normalised"), *exponential, inverse)?;
                *exponential = self.square(part("squared"), normalised)?;
            }
        }
        let mut total = self.sum_tokens(name("total"), heads, &exponentials)?;
        if spec.rounds.is_empty() {
            total = self.subtract_image(name("sum"), total, &exp, squarings, -1.0, shown.unused)?;
        }
        let inverse = self.inverse_of_sums(&name("denominator"), total, &spec.inverse, spec)?;
        let mut attended = Vec::with_capacity(heads.queries());
        for turn in 0..heads.queries() {
            let name = |part: &str| member(name(part), heads.queries(), turn);
            let mut weights = Vec::with_capacity(exponentials.len());
            for (number, &exponential) in exponentials.iter().enumerate() {
                let number = turn * most + number;
                weights.push(self.turned_weights(layer, &heads, exponential, turn, number)?);
            }
            let sums = weigh(self, name("attended"), &weights)?;
            let inverse = self.turn(name("denominator_turned"), inverse, turn * heads.heads())?;
            attended.push(self.mul(name("normalised"), sums, inverse)?);
        }
        let attended = self.interleave(name("interleaved"), &attended)?;
        let attended = self.repeat(name("attended_repeat"), attended)?;
        let output = self.product_periodic(name("output"), attended, &spec.output)?;
        match &spec.output_bias {
            Some(bias) => self.add_plain(name("output_bias"), output, bias.clone()),
            None => Ok(output),
        }
    }

    /// The repeated queries, one value for each of a K/V head's queries, multiplied by `factor`.
    fn queries(
        &mut self,
        layer: &str,
        x: NodeId,
        spec: &AttentionSpec,
        factor: f64,
    ) -> Result<Vec<NodeId>, GraphError> {
        let name = |part: &str| format!("{layer}.attention.{part}");
        let (heads, count, tokens) = (spec.heads, spec.heads.queries(), self.tokens());
        let mut all = self.product_spaced(name("query"), x, &spec.query, 0)?;
        if let Some(bias) = &spec.query_bias {
            all = self.add_plain(name("query_bias"), all, bias.clone())?;
        }
        let inverse = match &spec.query_norm {
            Some(norm) => {
                let per_head = heads.heads() * count;
                // Here the queries of one head lie side by side, as the product's columns do.
                let used = |value: f64, padding: f64| -> Vector {
                    let mut entries = vec![padding; per_head];
                    spec.used()
                        .for_each(|(head, query)| entries[head * count + query] = value);
                    entries.into()
                };
                Some(self.head_norm(&name("query_norm"), all, per_head, norm, &used)?)
            }
            None => None,
        };
        let half = match &spec.query_rope {
            Some(_) => Some(self.turn(name("query_half"), all, heads.query_width() / 2)?),
            None => None,
        };
        let mut queries = Vec::with_capacity(count);
        for number in 0..count {
            let name = |part: &str| member(name(part), count, number);
            let one = self.select(name("query_selected"), all, count, number)?;
            let mut query = match (&spec.query_rope, half) {
                (Some(RopeSpec { cos, sin }), Some(half)) => {
                    let half = self.select(name("query_half_selected"), half, count, number)?;
                    let factors = |values: &[f64]| -> Vec<f64> {
                        let entries = values.chunks(tokens).skip(number).step_by(count);
                        entries.flatten().map(|value| factor * value).collect()
                    };
                    self.rope(name("query_rope"), one, half, factors(cos), factors(sin))?
                }
                _ => self.mul_plain(name("query_mask"), one, factor)?,
            };
            if let Some(inverse) = inverse {
                let inverse = self.select(name("query_norm_selected"), inverse, count, number)?;
                query = self.mul(name("query_normed"), query, inverse)?;
            }
            queries.push(self.repeat(name("query_repeat"), query)?);
        }
        Ok(queries)
    }

    /// The exponentials as the values meet them at a turn: at the place of query `r` those of query `r + turn`, of the same group. Nodes are
    /// numbered.
    fn turned_weights(
        &mut self,
        layer: &str,
        heads: &Heads,
        exponentials: NodeId,
        turn: usize,
        number: usize,
    ) -> Added {
        let name = |part: &str| format!("{layer}.attention.weights_{part}.{number}");
        let (queries, parts, stride) = (heads.queries(), heads.parts(), heads.channel_stride());
        if turn == 0 || heads.groups() == 1 {
            return self.turn(name("turned"), exponentials, turn * stride);
        }
        // Turning all parts takes the last queries into the next group: they come from the turn the other way.
        let mut sum = None;
        for (kind, by, wraps) in [
            ("ahead", turn, false),
            ("back", parts + turn - queries, true),
        ] {
            let turned = self.turn(name(kind), exponentials, by * stride)?;
            let mask: Vec<f64> = (0..parts * stride)
                .map(|i| f64::from(u8::from((i / stride % queries + turn >= queries) == wraps)))
                .collect();
            let masked = self.mul_plain(name(&format!("{kind}_mask")), turned, mask)?;
            sum = Some(match sum {
                Some(sum) => self.add(name("turned"), sum, masked)?,
                None => masked,
            });
        }
        Ok(sum.unwrap_or(exponentials))
    }

    /// 1 / sum at lane 0, zero elsewhere. Nodes `name`, `name_*`; the node `name_unit` holds the sums, mapped to [-1, 1], at padding the middle.
    fn inverse_of_sums(
        &mut self,
        name: &str,
        total: NodeId,
        approximation: &Approximation,
        spec: &AttentionSpec,
    ) -> Added {
        self.expect(name, Target::Inverse, approximation)?;
        let (scale, shift) = to_unit(approximation.interval());
        self.approximated(name, |graph| {
            let masked = graph.mul_plain(format!("{name}_mask"), total, spec.per_query(scale))?;
            let unit = graph.add_plain(format!("{name}_unit"), masked, spec.per_query(shift))?;
            let names = |part| match part {
                Part::Start => format!("{name}_inverse"),
                Part::Number(number) => format!("{name}_step{number}"),
            };
            let unmapped = Unmapped {
                value: total,
                factor: 1.0,
                added: 0.0,
                spread: &|value, padding| spec.per_query_or(value, padding),
            };
            let inverse = Recorder::new(graph, &names)
                .from(unmapped)
                .record(approximation, unit)?;
            graph.clear_rest(format!("{name}_clear"), inverse)
        })
    }
}
