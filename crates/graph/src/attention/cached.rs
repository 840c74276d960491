//! Caches of keys and values: the new tokens' members, and keys as the queries meet them.

use super::{AttentionSpec, RopeSpec};
use crate::{Graph, GraphError, NodeId, Vector};

/// Where the keys and values of new tokens go.
pub(super) struct Arrival {
    group: usize,
    lane: usize,
    /// Whether there are tokens before it, in any group and in this one.
    continues: bool,
    continues_group: bool,
    /// Which of several tokens side by side are new; empty where there is one.
    new: Vec<bool>,
}

impl Arrival {
    /// Of the one token at a position, with so many lanes to a group.
    pub(super) fn one(position: usize, lanes: usize) -> Self {
        Arrival {
            group: position / lanes,
            lane: position % lanes,
            continues: position > 0,
            continues_group: !position.is_multiple_of(lanes),
            new: Vec::new(),
        }
    }

    /// Of the tokens `start .. end`, those of the block `start / tokens` of several side by side, with so many lanes to a group.
    pub(super) fn several(start: usize, end: usize, tokens: usize, lanes: usize) -> Self {
        let block = start / tokens;
        let first = block * tokens;
        Arrival {
            continues: start > 0,
            continues_group: !start.is_multiple_of(lanes * tokens),
            new: (first..first + tokens)
                .map(|position| (start..end).contains(&position))
                .collect(),
            ..Arrival::one(block, lanes)
        }
    }

    /// A vector for the new tokens, zero for the others.
    fn of_new(&self, entries: Vec<f64>) -> Vector {
        if self.new.iter().all(|&new| new) {
            return entries.into();
        }
        let masked = |entry: f64| {
            self.new
                .iter()
                .map(move |&new| if new { entry } else { 0.0 })
        };
        entries
            .into_iter()
            .flat_map(masked)
            .collect::<Vec<_>>()
            .into()
    }

    /// One for the new tokens, zero for the others.
    fn mask(&self, width: usize) -> Vector {
        match self.new.iter().all(|&new| new) {
            true => Vector::Uniform(1.0),
            false => self.of_new(vec![1.0; width]),
        }
    }

    /// Factors that have an entry for each token, zero for those that are not new.
    fn of_new_each(&self, mut factors: Vec<f64>) -> Vector {
        if !self.new.is_empty() {
            let tokens = self.new.iter().cycle();
            let old = factors.iter_mut().zip(tokens).filter(|(_, new)| !**new);
            old.for_each(|(factor, _)| *factor = 0.0);
        }
        factors.into()
    }
}

impl Graph {
    /// The key caches of all groups in use, the new tokens' keys included.
    pub(super) fn append_key(
        &mut self,
        layer: &str,
        x: NodeId,
        spec: &AttentionSpec,
        arrival: &Arrival,
    ) -> Result<Vec<NodeId>, GraphError> {
        let name = |part: &str| format!("{layer}.attention.{part}");
        let heads = spec.heads;
        let &Arrival { group, lane, .. } = arrival;
        let family = format!("{layer}.cache.key");
        let member = |g: usize| format!("{family}.{g}");
        let mut keys = Vec::with_capacity(group + 1);
        for g in 0..group + usize::from(arrival.continues_group) {
            keys.push(self.cache(member(g), &family, heads.cache())?);
        }
        let mut key = self.product_spaced(name("key"), x, &spec.key, lane)?;
        if let Some(bias) = &spec.key_bias {
            key = self.add_plain(name("key_bias"), key, bias.clone())?;
        }
        let inverse = match &spec.key_norm {
            Some(norm) => {
                let used = |value: f64, padding: f64| -> Vector {
                    (0..heads.heads())
                        .map(|head| {
                            if head < spec.used_heads {
                                value
                            } else {
                                padding
                            }
                        })
                        .collect::<Vec<_>>()
                        .into()
                };
                Some(self.head_norm(&name("key_norm"), key, heads.heads(), norm, &used)?)
            }
            None => None,
        };
        key = match &spec.key_rope {
            Some(RopeSpec { cos, sin }) => {
                let half = self.turn(name("key_half"), key, heads.width() / 2)?;
                let [cos, sin] = [cos, sin].map(|factors| arrival.of_new_each(factors.clone()));
                self.rope(name("key_rope"), key, half, cos, sin)?
            }
            None => {
                let mask = arrival.mask(heads.width());
                self.mul_plain(name("key_mask"), key, mask)?
            }
        };
        if let Some(inverse) = inverse {
            key = self.mul(name("key_normed"), key, inverse)?;
        }
        if let ([shift], 1) = (spec.key_shifts.as_slice(), heads.queries()) {
            let shift = arrival.of_new(shift.clone());
            key = self.add_plain(name("key_shift"), key, shift)?;
        }
        let cache = keys.get(group).copied();
        let appended = self.append(name("append_key"), &family, key, cache)?;
        keys.truncate(group);
        keys.push(appended);
        self.output(member(group), appended);
        Ok(keys)
    }

    /// All value caches, the new tokens' values included.
    pub(super) fn append_value(
        &mut self,
        layer: &str,
        x: NodeId,
        spec: &AttentionSpec,
        arrival: &Arrival,
    ) -> Result<Vec<NodeId>, GraphError> {
        let name = |part: &str| format!("{layer}.attention.{part}");
        let heads = spec.heads;
        let &Arrival { group, lane, .. } = arrival;
        let family = format!("{layer}.cache.value");
        let mut value = self.product_spaced(name("value"), x, &spec.value, lane)?;
        if let Some(bias) = &spec.value_bias {
            value = self.add_plain(name("value_bias"), value, bias.clone())?;
        }
        let mut values = Vec::with_capacity(heads.groups());
        for s in 0..heads.groups() {
            let member = format!("{family}.{s}");
            let mask: Vec<f64> = (0..heads.width())
                .map(|entry| {
                    f64::from(u8::from(
                        heads.value_group(entry / heads.heads(), s) == group,
                    ))
                })
                .collect();
            let mask = arrival.of_new(mask);
            let masked = self.mul_plain(name(&format!("value_mask.{s}")), value, mask)?;
            let cache = match arrival.continues {
                false => None,
                true => Some(self.cache(&member, &family, heads.cache())?),
            };
            let appended =
                self.append(name(&format!("append_value.{s}")), &family, masked, cache)?;
            self.output(&member, appended);
            values.push(appended);
        }
        Ok(values)
    }

    /// The key caches that each query meets: for every group one per query, shifted where the queries of a head differ in their shifts. (The
    /// shift of a single query is in the cache.)
    pub(super) fn shifted_keys(
        &mut self,
        layer: &str,
        keys: &[NodeId],
        spec: &AttentionSpec,
        position: usize,
    ) -> Result<Vec<NodeId>, GraphError> {
        let (heads, count) = (spec.heads, spec.heads.queries());
        let mut shifted = Vec::with_capacity(keys.len() * count);
        for (group, &key) in keys.iter().enumerate() {
            // Keys of tokens that are not there stay zero.
            let lanes = (position + 1 - group * heads.lanes()).min(heads.lanes());
            for query in 0..count {
                let shift = spec.key_shifts.get(query).filter(|_| count > 1);
                shifted.push(match shift {
                    Some(shift) => {
                        let mut slots = vec![0.0; shift.len() * heads.lanes()];
                        for (run, &shift) in slots.chunks_mut(heads.lanes()).zip(shift) {
                            run[..lanes].fill(shift);
                        }
                        let number = group * count + query;
                        let name = format!("{layer}.attention.key_shifted.{number}");
                        self.add_plain(name, key, slots)?
                    }
                    None => key,
                });
            }
        }
        Ok(shifted)
    }
}
