//! Passes: steps of several tokens side by side, for prompts and for checking guesses.

use std::collections::BTreeMap;
use std::ops::Range;

use taciturn_graph::{CostTable, Graph, Level, PassSpec, Placement, Plan};

use super::{StepModel, plan_all, with_refreshed};
use crate::error::ModelError;

/// The passes of a step model at a number of tokens side by side. Positions come in blocks of that many; a pass computes new ones of one block.
#[derive(Clone, Copy)]
pub struct Pass<'m> {
    model: &'m StepModel,
    tokens: usize,
}

impl StepModel {
    /// The numbers of tokens that passes can have, ascending: powers of two from 2, as many as leave the width in one ciphertext. A wider
    /// feed-forward network takes several, and so do the scores of many pairs.
    pub fn pass_sizes(&self) -> Vec<usize> {
        let heads = self.places.heads();
        let room = self.slots / self.width.max(heads.query_width());
        std::iter::successors(Some(2), |tokens| Some(2 * tokens))
            .take_while(|&tokens| tokens <= room)
            .collect()
    }

    /// Passes of so many tokens, one of [`pass_sizes`](Self::pass_sizes).
    pub fn pass(&self, tokens: usize) -> Result<Pass<'_>, ModelError> {
        let sizes = self.pass_sizes();
        match sizes.contains(&tokens) {
            true => Ok(Pass {
                model: self,
                tokens,
            }),
            false => Err(ModelError::PassSize { sizes, got: tokens }),
        }
    }
}

impl Pass<'_> {
    /// Tokens side by side.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// The positions of the pass that begins at `start`, of those before `end`.
    pub fn positions(&self, start: usize, end: usize) -> Range<usize> {
        let block = start / self.tokens * self.tokens;
        start..end.min(block + self.tokens)
    }

    /// How many passes compute the positions `start .. end`.
    pub fn count(&self, start: usize, end: usize) -> usize {
        match start < end {
            true => end.div_ceil(self.tokens) - start / self.tokens,
            false => 0,
        }
    }

    /// The graph of new tokens at positions of one block, 1 at least. Its nodes have the same names at all positions, later ones being more.
    pub fn graph(&self, positions: Range<usize>) -> Result<Graph, ModelError> {
        let Range { start, end } = positions;
        let block = start / self.tokens * self.tokens;
        if start == 0 || start >= end || end > self.model.context || end > block + self.tokens {
            return Err(ModelError::PassPositions {
                start,
                end,
                tokens: self.tokens,
                context: self.model.context,
            });
        }
        let model = self.model;
        let graph = Graph::side_by_side(model.slots, self.tokens)?;
        model.built(graph, |graph, layer, name, normed| {
            let tokens = (0..self.tokens)
                .map(|j| PassSpec::position(start, end, self.tokens, j))
                .map(|position| layer.attention(model.config(), &model.places, position))
                .collect();
            graph.attention_several(name, normed, &PassSpec { start, end, tokens })
        })
    }

    /// [`graph`](Self::graph) as a session runs it: the values that the plan refreshes are witnesses too. Without `logits` only what enters the
    /// caches is left.
    pub fn step_graph(
        &self,
        plan: &Plan,
        positions: Range<usize>,
        logits: bool,
    ) -> Result<Graph, ModelError> {
        let graph = with_refreshed(self.graph(positions)?, plan);
        Ok(match logits {
            true => graph,
            false => graph.pruned(|output| output.contains(".cache.")),
        })
    }

    /// The step graph of the last block, which has every node of all others.
    pub fn longest(&self, plan: &Plan, logits: bool) -> Result<Graph, ModelError> {
        let context = self.model.context;
        let start = ((context - 1) / self.tokens * self.tokens).max(1);
        self.step_graph(plan, start..context, logits)
    }

    /// Whether a node's value is an input of [`acceptance_graph`](Self::acceptance_graph).
    pub fn is_before_acceptance(node: &str) -> bool {
        ["key", "value"].iter().any(|part| {
            node.strip_suffix(part)
                .is_some_and(|layer| layer.ends_with(".attention."))
        })
    }

    /// What is left to do where the keys and values of more tokens were computed than are taken into the caches: those at `positions`.
    pub fn acceptance_graph(&self, positions: Range<usize>) -> Result<Graph, ModelError> {
        let graph = self.graph(positions)?.cut(Pass::is_before_acceptance);
        Ok(graph.pruned(|output| output.contains(".cache.")))
    }

    /// The plans of single steps and of passes with logits whose caches are at the same levels, so that both can follow each other in any order.
    pub fn plan_both(
        &self,
        costs: &CostTable,
        placement: &(impl Placement + ?Sized),
    ) -> Result<[Plan; 2], ModelError> {
        let mut least = BTreeMap::new();
        loop {
            let one = self.model.plan_beside(costs, placement, &least)?;
            let several = self.plan(costs, placement, &one.caches, true)?;
            if one.caches == several.caches {
                return Ok([one, several]);
            }
            // Levels only rise, up to the highest that there is.
            least = several.caches;
        }
    }

    /// The plan that serves all positions, made for the last block; `caches` are levels that the caches have at least. Without `logits` it is for
    /// passes that only fill the caches.
    pub fn plan(
        &self,
        costs: &CostTable,
        placement: &(impl Placement + ?Sized),
        caches: &BTreeMap<String, Level>,
        logits: bool,
    ) -> Result<Plan, ModelError> {
        let graph = |block: usize| -> Result<Graph, ModelError> {
            let start = (block * self.tokens).max(1);
            let graph = self.graph(self.positions(start, self.model.context))?;
            Ok(match logits {
                true => graph,
                false => graph.pruned(|output| output.contains(".cache.")),
            })
        };
        let last = (self.model.context - 1) / self.tokens;
        // As for one token: the bits of the lane say where products end.
        let blocks = std::iter::successors(Some(1), |b| Some(2 * b)).take_while(|&b| b < last);
        let graphs = [last, 0].into_iter().chain(blocks).map(graph);
        let graphs: Vec<Graph> = graphs.collect::<Result<_, _>>()?;
        plan_all(&graphs, costs, placement, caches)
    }

    /// One period of the slots of a pass's input: embeddings of the tokens from `start` on, side by side. Places without a new token repeat the
    /// nearest that is new.
    pub fn embed(&self, tokens: &[u32], start: usize) -> Result<Vec<f64>, ModelError> {
        let (count, width) = (self.tokens, self.model.width);
        let end = start + tokens.len();
        if tokens.is_empty() || self.positions(start, end).end != end {
            return Err(ModelError::PassPositions {
                start,
                end,
                tokens: count,
                context: self.model.context,
            });
        }
        let mut slots = vec![0.0; width * count];
        for j in 0..count {
            let position = PassSpec::position(start, end, count, j);
            let embedding = self.model.embed(tokens[position - start], position)?;
            for (i, value) in embedding.into_iter().enumerate() {
                slots[i * count + j] = value;
            }
        }
        Ok(slots)
    }
}
