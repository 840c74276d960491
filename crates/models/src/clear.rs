//! The exact model: GPT-2 in f64, one token a step, with a key-value cache. The reference of everything encrypted.

use crate::checkpoint::{Checkpoint, NormWeights};
use crate::config::Gpt2Config;
use crate::error::ModelError;
use crate::site::{Observer, Site};

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

    /// Key of a token in a block, head after head: `width` values.
    pub fn key(&self, layer: usize, position: usize) -> &[f64] {
        &self.layers[layer].keys[position]
    }

    /// Value of a token in a block, head after head: `width` values.
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
    pub fn config(&self) -> &'a Gpt2Config {
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
        let embeddings = weights
            .tokens
            .row(token as usize)
            .iter()
            .zip(weights.positions.row(position));
        let mut x: Vec<f64> = embeddings
            .map(|(&t, &p)| f64::from(t) + f64::from(p))
            .collect();
        observer.observe(Site::Embedding, &centred(&x));
        for (layer, block) in weights.blocks.iter().enumerate() {
            let input = self.norm(&x, &block.norm1, Site::Norm1Variance(layer), observer);
            let qkv = block.qkv.weight.affine(&input, &block.qkv.bias);
            let mix = self.attention(layer, &qkv, &mut cache.layers[layer], observer);
            add(
                &mut x,
                &block.output.weight.affine(&mix, &block.output.bias),
            );
            observer.observe(Site::ResidualMiddle(layer), &centred(&x));

            let input = self.norm(&x, &block.norm2, Site::Norm2Variance(layer), observer);
            let mut hidden = block.up.weight.affine(&input, &block.up.bias);
            observer.observe(Site::Hidden(layer), &hidden);
            hidden
                .iter_mut()
                .for_each(|h| *h = config.activation.apply(*h));
            add(&mut x, &block.down.weight.affine(&hidden, &block.down.bias));
            observer.observe(Site::Residual(layer), &centred(&x));
        }
        cache.position += 1;
        let output = self.norm(&x, &weights.final_norm, Site::FinalVariance, observer);
        let head = weights.head_rows();
        let logits: Vec<f64> = (0..config.vocabulary)
            .map(|id| dot_f32(&output, head.row(id)))
            .collect();
        observer.observe(Site::Logits, &logits);
        Ok(logits)
    }

    /// Attention of one token to itself and everything before it; appends its key and value.
    fn attention(
        &self,
        layer: usize,
        qkv: &[f64],
        cache: &mut LayerCache,
        observer: &mut dyn Observer,
    ) -> Vec<f64> {
        let (d, heads, channels) = (
            self.config().width,
            self.config().heads,
            self.config().head_width(),
        );
        let scale = 1.0 / (channels as f64).sqrt();
        let queries: Vec<f64> = qkv[..d].iter().map(|q| q * scale).collect();
        let (key, value) = (&qkv[d..2 * d], &qkv[2 * d..]);
        for (site, values) in [
            (Site::Queries(layer), &queries[..]),
            (Site::Keys(layer), key),
            (Site::Values(layer), value),
        ] {
            observer.observe(site, values);
        }
        cache.keys.push(key.to_vec());
        cache.values.push(value.to_vec());

        let tokens = cache.keys.len();
        let mut scores = Vec::with_capacity(heads * tokens);
        for head in 0..heads {
            let lanes = head * channels..(head + 1) * channels;
            scores.extend(
                cache
                    .keys
                    .iter()
                    .map(|key| dot(&queries[lanes.clone()], &key[lanes.clone()])),
            );
        }
        observer.observe(Site::Scores(layer), &scores);
        let sums: Vec<f64> = scores.chunks(tokens).map(log_sum_exp).collect();
        observer.observe(Site::LogSumExp(layer), &sums);

        let mut mix = vec![0.0; d];
        for (head, (scores, sum)) in scores.chunks(tokens).zip(&sums).enumerate() {
            let lanes = head * channels..(head + 1) * channels;
            for (score, value) in scores.iter().zip(&cache.values) {
                let weight = (score - sum).exp();
                for (m, v) in mix[lanes.clone()].iter_mut().zip(&value[lanes.clone()]) {
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
        let centred = centred(x);
        let variance = dot(&centred, &centred) / x.len() as f64 + self.config().epsilon;
        observer.observe(site, &[variance]);
        let inverse = 1.0 / variance.sqrt();
        let scaled = centred.iter().zip(&weights.gamma).zip(&weights.beta);
        scaled
            .map(|((c, gamma), beta)| c * inverse * gamma + beta)
            .collect()
    }
}

/// `ln(sum_i exp(x_i))` without overflow.
pub fn log_sum_exp(values: &[f64]) -> f64 {
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    max + values.iter().map(|v| (v - max).exp()).sum::<f64>().ln()
}

fn centred(x: &[f64]) -> Vec<f64> {
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    x.iter().map(|v| v - mean).collect()
}

fn add(x: &mut [f64], y: &[f64]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn dot_f32(a: &[f64], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, &b)| a * f64::from(b)).sum()
}
