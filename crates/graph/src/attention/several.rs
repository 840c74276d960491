//! Attention of several tokens side by side, to each other and to those in the caches.
//!
//! All pairs of tokens meet by turning the caches: turned by `s`, they bring token `j` of the pass the cached tokens whose number is `j + s`
//! modulo `T`. Turned groups are to scores, sums and weighted values what groups are to one token, so that only the way to them is here.

use super::cached::Arrival;
use super::{AttentionSpec, RopeSpec, Shown};
use crate::folded::to_unit;
use crate::{Graph, GraphError, Heads, NodeId, Op, PairScores, SeveralOp};

/// A pass: the tokens that are computed side by side.
#[derive(Clone, Debug)]
pub struct PassSpec {
    /// Position of the first new token; all before it are in the caches.
    pub start: usize,
    /// Position after the last new token, in the same block of as many positions as there are tokens side by side.
    pub end: usize,
    /// Attention of every token of the block, at its position; those that are not new repeat one that is.
    pub tokens: Vec<AttentionSpec>,
}

impl PassSpec {
    /// The position at which token `j` of a block computes: its own, or the nearest that is new.
    pub fn position(start: usize, end: usize, tokens: usize, j: usize) -> usize {
        (start / tokens * tokens + j).clamp(start, end - 1)
    }

    fn positions(&self) -> Vec<usize> {
        let tokens = self.tokens.len();
        (0..tokens)
            .map(|j| PassSpec::position(self.start, self.end, tokens, j))
            .collect()
    }

    /// What all tokens share, with heads for `slots` slots; factors of the rotary embedding have an entry for each token.
    fn shared(&self, slots: usize) -> Result<AttentionSpec, GraphError> {
        let first = &self.tokens[0];
        let heads = first.heads;
        let rope = |of: &dyn Fn(&AttentionSpec) -> Option<&RopeSpec>| {
            let each: Option<Vec<&RopeSpec>> = self.tokens.iter().map(of).collect();
            let each = each.filter(|each| !each.is_empty())?;
            let side_by_side = |factors: &dyn Fn(&RopeSpec) -> &[f64]| {
                (0..factors(each[0]).len())
                    .flat_map(|i| each.iter().map(move |rope| factors(rope)[i]))
                    .collect()
            };
            Some(RopeSpec {
                cos: side_by_side(&|rope| &rope.cos),
                sin: side_by_side(&|rope| &rope.sin),
            })
        };
        Ok(AttentionSpec {
            heads: Heads::grouped(
                slots,
                heads.heads(),
                heads.queries(),
                heads.channels(),
                heads.groups(),
            )?,
            query_rope: rope(&|spec| spec.query_rope.as_ref()),
            key_rope: rope(&|spec| spec.key_rope.as_ref()),
            ..first.clone()
        })
    }
}

impl Graph {
    /// Attention of a pass, for normed periodic values. Nodes and caches as those of [`Graph::attention`], whose caches these are.
    pub fn attention_several(
        &mut self,
        layer: &str,
        x: NodeId,
        pass: &PassSpec,
    ) -> Result<NodeId, GraphError> {
        let name = |part: &str| format!("{layer}.attention.{part}");
        let tokens = self.tokens();
        let cached = pass.shared(self.token_slots())?;
        let heads = cached.heads;
        let groups = heads.groups();
        let pairs = Heads::grouped(
            self.token_slots(),
            heads.heads(),
            heads.queries(),
            heads.channels(),
            groups * tokens,
        )?;
        let arrival = Arrival::several(pass.start, pass.end, tokens, heads.lanes());
        let keys = self.append_key(layer, x, &cached, &arrival)?;
        let values = self.append_value(layer, x, &cached, &arrival)?;

        let (numbers, keys) = self.turned_keys(layer, &keys, groups)?;
        let keys = self.keys_of_queries(layer, &numbers, &keys, &cached)?;
        let values = self.staggered_values(layer, &values, &pairs)?;
        let (scale, shift) = to_unit(cached.exp.interval());
        let queries = self.queries(layer, x, &cached, scale * cached.score_scale)?;
        let scores = PairScores {
            pairs,
            groups,
            numbers: numbers.into(),
            positions: pass.positions().into(),
        };
        let inputs = [queries, keys].concat();
        let op = SeveralOp::Scores(scores.clone());
        let node = self.add_node(name("scores"), Op::Several(op), &inputs)?;

        let spec = AttentionSpec {
            heads: pairs,
            ..cached
        };
        let shown = pass.shown(&spec, &scores, (scale, shift));
        self.attend(layer, node, &values, &spec, shown)
    }

    /// The key caches of all groups at every turn, with their numbers among the groups of pairs.
    fn turned_keys(
        &mut self,
        layer: &str,
        keys: &[NodeId],
        groups: usize,
    ) -> Result<(Vec<usize>, Vec<NodeId>), GraphError> {
        let name = |part: &str| format!("{layer}.attention.key_{part}");
        let tokens = self.tokens();
        let (mut numbers, mut turned) = (Vec::new(), Vec::new());
        for turn in 0..tokens {
            for (group, &key) in keys.iter().enumerate() {
                let number = turn * groups + group;
                numbers.push(number);
                if turn == 0 {
                    turned.push(key);
                    continue;
                }
                let back = turn as i64 - tokens as i64;
                let ahead = self.shift(name(&format!("ahead.{number}")), key, turn as i64)?;
                let back = self.shift(name(&format!("back.{number}")), key, back)?;
                let op = Op::Several(SeveralOp::Turn { by: turn });
                turned.push(self.add_node(
                    name(&format!("turned.{number}")),
                    op,
                    &[ahead, back],
                )?);
            }
        }
        Ok((numbers, turned))
    }

    /// The keys that each query of a head meets: shifted where the queries differ in their shifts. What a token does not meet is masked after the
    /// product, so that the shift may be added everywhere.
    fn keys_of_queries(
        &mut self,
        layer: &str,
        numbers: &[usize],
        keys: &[NodeId],
        spec: &AttentionSpec,
    ) -> Result<Vec<NodeId>, GraphError> {
        let count = spec.heads.queries();
        let mut shifted = Vec::with_capacity(keys.len() * count);
        for (&number, &key) in numbers.iter().zip(keys) {
            for query in 0..count {
                let shift = spec.key_shifts.get(query).filter(|_| count > 1);
                shifted.push(match shift {
                    Some(shift) => {
                        let lanes = spec.heads.lanes();
                        let runs = shift.iter().flat_map(|&s| std::iter::repeat_n(s, lanes));
                        let name =
                            format!("{layer}.attention.key_shifted.{}", number * count + query);
                        self.add_plain(name, key, runs.collect::<Vec<_>>())?
                    }
                    None => key,
                });
            }
        }
        Ok(shifted)
    }

    /// The value caches that the weights of all pairs meet.
    fn staggered_values(
        &mut self,
        layer: &str,
        values: &[NodeId],
        pairs: &Heads,
    ) -> Result<Vec<NodeId>, GraphError> {
        let name = |part: &str| format!("{layer}.attention.value_{part}");
        let tokens = self.tokens();
        let mut shifted = Vec::with_capacity(values.len());
        for (member, &value) in values.iter().enumerate() {
            let mut shifts = Vec::with_capacity(2 * tokens - 1);
            for (i, by) in crate::several::shifts(tokens).enumerate() {
                let number = member * 2 * tokens + i;
                shifts.push(match by {
                    0 => value,
                    _ => self.shift(name(&format!("shifted.{number}")), value, by)?,
                });
            }
            shifted.push(shifts);
        }
        (0..pairs.groups())
            .map(|number| {
                let op = SeveralOp::Stagger {
                    pairs: *pairs,
                    groups: values.len(),
                    number,
                };
                let shifts = &shifted[number % values.len()];
                self.add_node(
                    name(&format!("staggered.{number}")),
                    Op::Several(op),
                    shifts,
                )
            })
            .collect()
    }

    fn shift(&mut self, name: String, x: NodeId, by: i64) -> Result<NodeId, GraphError> {
        self.add_node(name, Op::Several(SeveralOp::Shift { by }), &[x])
    }
}

impl PassSpec {
    /// Which pairs the softmax of every token sees.
    fn shown(
        &self,
        spec: &AttentionSpec,
        scores: &PairScores,
        (scale, shift): (f64, f64),
    ) -> Shown {
        let (heads, tokens) = (spec.heads, self.tokens.len());
        let (lanes, positions) = (heads.lanes(), &scores.positions);
        let mut shifts = vec![0.0; heads.scores().values * tokens];
        let mut used = shifts.clone();
        for (i, (head, query)) in spec.used().enumerate() {
            for token in 0..heads.capacity() {
                let entry = heads.score(head, query, token) * tokens;
                for (j, own) in self.tokens.iter().enumerate() {
                    let meets = scores.meets(token / lanes, token % lanes, j);
                    (shifts[entry + j], used[entry + j]) = match meets {
                        true => (shift - scale * own.offsets[i], 1.0),
                        false => (-1.0, 0.0),
                    };
                }
            }
        }
        let capacity = heads.capacity();
        let mut unused = vec![0.0; heads.heads() * heads.queries() * tokens];
        for (head, query) in spec.used() {
            let entry = heads.per_query(head, query) * tokens;
            for (j, &position) in positions.iter().enumerate() {
                unused[entry + j] = (capacity - position - 1) as f64;
            }
        }
        Shown {
            shifts: shifts.into(),
            unused: unused.into(),
            used: used.into(),
        }
    }
}
