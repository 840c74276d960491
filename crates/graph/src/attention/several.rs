//! Attention of several tokens side by side, to each other and to those in the caches.
//!
//! All pairs of tokens meet by turning the caches: turned by `s`, they bring token `j` of the pass the cached tokens whose number is `j + s`
//! modulo `T`. Turned groups are to scores and sums what groups are to one token. Where there are more of them than channels, the scores take
//! several ciphertexts.

use super::cached::Arrival;
use super::{AttentionSpec, RopeSpec, Shown, member};
use crate::folded::to_unit;
use crate::{Graph, GraphError, Heads, NodeId, Op, PairScores, PairValues, SeveralOp};

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
        let numbers = heads.groups() * tokens;
        let pairs = Heads::grouped(
            self.token_slots(),
            heads.heads(),
            heads.queries(),
            heads.channels(),
            numbers.min(heads.channels() / heads.queries()),
        )?;
        let arrival = Arrival::several(pass.start, pass.end, tokens, heads.lanes());
        let keys = self.append_key(layer, x, &cached, &arrival)?;
        let values = self.append_value(layer, x, &cached, &arrival)?;
        let mut groups = Vec::with_capacity(keys.len());
        for group in 0..keys.len() {
            groups.push(match heads.groups() {
                1 => values[0],
                _ => {
                    let name = name(&format!("value_group.{group}"));
                    let op = Op::Several(SeveralOp::Group { heads, group });
                    self.add_node(name, op, &values)?
                }
            });
        }

        let (scale, shift) = to_unit(cached.exp.interval());
        let queries = self.queries(layer, x, &cached, scale * cached.score_scale)?;
        // Shifts of the keys of a single query are in the cache.
        let shifts = match heads.queries() {
            1 => Vec::new(),
            _ => cached.key_shifts.clone(),
        };
        let most = numbers / pairs.groups();
        let parts = (keys.len() * tokens).div_ceil(pairs.groups());
        let mut scores = Vec::with_capacity(parts);
        let mut nodes = Vec::with_capacity(parts);
        for part in 0..parts {
            let (first, end) = (part * pairs.groups(), (part + 1) * pairs.groups());
            let given = &keys[first / tokens..keys.len().min(end.div_ceil(tokens))];
            let of = PairScores {
                pairs,
                first,
                groups: given.len(),
                positions: pass.positions().into(),
                shifts: shifts.clone().into(),
            };
            let inputs = [&queries, given].concat();
            let op = Op::Several(SeveralOp::Scores(of.clone()));
            nodes.push(self.add_node(member(name("scores"), most, part), op, &inputs)?);
            scores.push(of);
        }

        let spec = AttentionSpec {
            heads: pairs,
            ..cached
        };
        let shown = pass.shown(&spec, &scores, (scale, shift));
        let of = PairValues {
            pairs,
            parts,
            groups: groups.len(),
        };
        let weigh = |graph: &mut Graph, name, weights: &[NodeId]| {
            let op = Op::Several(SeveralOp::Weighted(of));
            graph.add_node(name, op, &[weights, &groups].concat())
        };
        self.attend(layer, &nodes, most, &weigh, &spec, shown)
    }
}

impl PassSpec {
    /// Which pairs the softmax of every token sees.
    fn shown(
        &self,
        spec: &AttentionSpec,
        scores: &[PairScores],
        (scale, shift): (f64, f64),
    ) -> Shown {
        let (heads, tokens) = (spec.heads, self.tokens.len());
        let lanes = heads.lanes();
        let (mut shifts, mut used) = (Vec::new(), Vec::new());
        for scores in scores {
            let mut shift_of = vec![0.0; heads.scores().values * tokens];
            let mut seen = shift_of.clone();
            for (i, (head, query)) in spec.used().enumerate() {
                for token in 0..heads.capacity() {
                    let entry = heads.score(head, query, token) * tokens;
                    for (j, own) in self.tokens.iter().enumerate() {
                        let meets = scores.meets(token / lanes, token % lanes, j);
                        (shift_of[entry + j], seen[entry + j]) = match meets {
                            true => (shift - scale * own.offsets[i], 1.0),
                            false => (-1.0, 0.0),
                        };
                    }
                }
            }
            shifts.push(shift_of.into());
            used.push(seen.into());
        }
        let capacity = heads.capacity() * scores.len();
        let mut unused = vec![0.0; heads.heads() * heads.queries() * tokens];
        for (head, query) in spec.used() {
            let entry = heads.per_query(head, query) * tokens;
            for (j, &position) in self.positions().iter().enumerate() {
                unused[entry + j] = (capacity - position - 1) as f64;
            }
        }
        Shown {
            shifts,
            unused: unused.into(),
            used,
        }
    }
}
