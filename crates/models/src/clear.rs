//! The exact model in f64, one token a step, with a key-value cache. The reference of everything encrypted.

use crate::checkpoint::Checkpoint;
use crate::config::ModelConfig;
use crate::error::ModelError;
use crate::site::{Observer, Site};
use crate::weights::{BlockWeights, NormWeights};

/// Runs a checkpoint in the clear.
#[derive(Clone, Copy, Debug)]
pub struct ClearModel<'a> {
    checkpoint: &'a Checkpoint,
}

/// Keys and values of the tokens seen so far.
#[derive(Clone, Debug)]
pub struct ClearCache {
    layers: Vec<LayerCache>,
    position: usize,
}

/// Keys and values of one block, token after token.
#[derive(Clone, Debug, Default)]
struct LayerCache {
    keys: Vec<Vec<f64>>,
    values: Vec<Vec<f64>>,
}

impl ClearCache {
    /// Number of tokens in the cache: the position of the next one.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Key of a token in a block, rotary embedding applied, head after head.
    pub fn key(&self, layer: usize, position: usize) -> &[f64] {
        &self.layers[layer].keys[position]
    }

    /// Value of a token in a block, head after head.
    pub fn value(&self, layer: usize, position: usize) -> &[f64] {
        &self.layers[layer].values[position]
    }
}

impl<'a> ClearModel<'a> {
    /// A model over a loaded checkpoint.
    pub fn new(checkpoint: &'a Checkpoint) -> Self {
        Self { checkpoint }
    }

    /// The model's shape.
    pub fn config(&self) -> &'a ModelConfig {
        &self.checkpoint.config
    }

    /// An empty cache.
    pub fn cache(&self) -> ClearCache {
        ClearCache {
            layers: vec![LayerCache::default(); self.config().layers],
            position: 0,
        }
    }

    /// Processes one token and returns the logits of the next.
    pub fn step(&self, cache: &mut ClearCache, token: u32) -> Result<Vec<f64>, ModelError> {
        self.step_observed(cache, token, &mut ())
    }

    /// [`ClearModel::step`], with every intermediate value shown to `observer`.
    pub fn step_observed(
        &self,
        cache: &mut ClearCache,
        token: u32,
        observer: &mut dyn Observer,
    ) -> Result<Vec<f64>, ModelError> {
        let (config, weights) = (self.config(), &self.checkpoint.weights);
        if token as usize >= config.vocabulary {
            return Err(ModelError::Token {
                token,
                vocabulary: config.vocabulary,
            });
        }
        let position = cache.position;
        if position >= config.positions {
            return Err(ModelError::ContextFull {
                position,
                context: config.positions,
            });
        }
        let mut x = weights.tokens.row(token as usize);
        if let Some(positions) = &weights.positions {
            add(&mut x, &positions.row(position));
        }
        observer.observe(Site::Embedding, &self.centred(&x));
        for (layer, block) in weights.blocks.iter().enumerate() {
            let input = self.norm(&x, &block.norm1, Site::Norm1Variance(layer), observer);
            let mix = self.attention(layer, block, &input, &mut cache.layers[layer], observer);
            add(
                &mut x,
                &block.output.weight.affine(&mix, &block.output.bias),
            );
            observer.observe(Site::ResidualMiddle(layer), &self.centred(&x));

            let input = self.norm(&x, &block.norm2, Site::Norm2Variance(layer), observer);
            let up = block.up.weight.affine(&input, &block.up.bias);
            let activate = |x: &f64| config.activation.apply(*x);
            let hidden: Vec<f64> = match &block.gate {
                None => {
                    observer.observe(Site::Hidden(layer), &up);
                    up.iter().map(activate).collect()
                }
                Some(gate) => {
                    let gate = gate.weight.affine(&input, &gate.bias);
                    observer.observe(Site::Hidden(layer), &gate);
                    let gated = gate.iter().map(activate).zip(&up);
                    gated.map(|(gate, up)| gate * up).collect()
                }
            };
            add(&mut x, &block.down.weight.affine(&hidden, &block.down.bias));
            observer.observe(Site::Residual(layer), &self.centred(&x));
        }
        cache.position += 1;
        let output = self.norm(&x, &weights.final_norm, Site::FinalVariance, observer);
        let logits = weights.head_rows().transposed().apply(&output);
        observer.observe(Site::Logits, &logits);
        Ok(logits)
    }

    /// Attention of one token to itself and everything before it; appends its key and value.
    fn attention(
        &self,
        layer: usize,
        block: &BlockWeights,
        input: &[f64],
        cache: &mut LayerCache,
        observer: &mut dyn Observer,
    ) -> Vec<f64> {
        let config = self.config();
        let position = cache.keys.len();
        let [mut queries, mut key, value] = [&block.query, &block.key, &block.value]
            .map(|linear| linear.weight.affine(input, &linear.bias));
        for (heads, gamma, site) in [
            (&mut queries, &block.query_norm, Site::QueryVariance(layer)),
            (&mut key, &block.key_norm, Site::KeyVariance(layer)),
        ] {
            if let Some(gamma) = gamma {
                self.norm_heads(heads, gamma, site, observer);
            }
            if let Some(rope) = &config.rope {
                rope.turn(heads, position);
            }
        }
        let scale = 1.0 / (config.head_width as f64).sqrt();
        queries.iter_mut().for_each(|q| *q *= scale);
        for (site, values) in [
            (Site::Queries(layer), &queries),
            (Site::Keys(layer), &key),
            (Site::Values(layer), &value),
        ] {
            observer.observe(site, values);
        }
        cache.keys.push(key);
        cache.values.push(value);

        let tokens = cache.keys.len();
        let lanes = |head: usize| head * config.head_width..(head + 1) * config.head_width;
        let shared = |head: usize| lanes(head / config.queries_per_head());
        let mut scores = Vec::with_capacity(config.heads * tokens);
        for head in 0..config.heads {
            let query = &queries[lanes(head)];
            scores.extend(cache.keys.iter().map(|key| dot(query, &key[shared(head)])));
        }
        observer.observe(Site::Scores(layer), &scores);
        let sums: Vec<f64> = scores.chunks(tokens).map(log_sum_exp).collect();
        observer.observe(Site::LogSumExp(layer), &sums);

        let mut mix = vec![0.0; config.query_width()];
        for (head, (scores, sum)) in scores.chunks(tokens).zip(&sums).enumerate() {
            for (score, value) in scores.iter().zip(&cache.values) {
                let weight = (score - sum).exp();
                for (m, v) in mix[lanes(head)].iter_mut().zip(&value[shared(head)]) {
                    *m += weight * v;
                }
            }
        }
        observer.observe(Site::Attention(layer), &mix);
        mix
    }

    fn norm(
        &self,
        x: &[f64],
        weights: &NormWeights,
        site: Site,
        observer: &mut dyn Observer,
    ) -> Vec<f64> {
        let x = self.centred(x);
        let variance = mean_square(&x) + self.config().epsilon;
        observer.observe(site, &[variance]);
        let inverse = 1.0 / variance.sqrt();
        let scaled = x.iter().zip(&weights.gamma).zip(&weights.beta);
        scaled
            .map(|((x, gamma), beta)| x * inverse * gamma + beta)
            .collect()
    }

    /// The norm of every head on its own.
    fn norm_heads(
        &self,
        heads: &mut [f64],
        gamma: &[f64],
        site: Site,
        observer: &mut dyn Observer,
    ) {
        let mut variances = Vec::new();
        for head in heads.chunks_mut(gamma.len()) {
            let variance = mean_square(head) + self.config().epsilon;
            variances.push(variance);
            let scaled = head.iter_mut().zip(gamma);
            scaled.for_each(|(x, gamma)| *x *= gamma / variance.sqrt());
        }
        observer.observe(site, &variances);
    }

    /// The residual stream as norms see it: less its mean, where they subtract it.
    fn centred(&self, x: &[f64]) -> Vec<f64> {
        if !self.config().layer_norm() {
            return x.to_vec();
        }
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        x.iter().map(|v| v - mean).collect()
    }
}

/// `ln(sum_i exp(x_i))` without overflow.
pub fn log_sum_exp(values: &[f64]) -> f64 {
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    max + values.iter().map(|v| (v - max).exp()).sum::<f64>().ln()
}

fn mean_square(x: &[f64]) -> f64 {
    dot(x, x) / x.len() as f64
}

fn add(x: &mut [f64], y: &[f64]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
