//! Helpers shared by the integration tests.

use taciturn_models::{ClearCache, LayerPrefix, Prepared, log_sum_exp};

/// Runs prepared weights the way their documentation says, sharing no code with the clear model.
pub struct PreparedRunner<'a> {
    pub model: &'a Prepared,
    pub cache: Vec<LayerPrefix>,
}

impl<'a> PreparedRunner<'a> {
    /// Continues after the tokens that the clear model has put into `cache`.
    pub fn new(model: &'a Prepared, cache: &ClearCache) -> Self {
        Self {
            model,
            cache: model.prefix(cache),
        }
    }

    pub fn step(&mut self, token: u32) -> Vec<f64> {
        let config = &self.model.config;
        let mut x = self.model.embed(token, self.cache[0].keys.len()).unwrap();
        let rms_norm = |x: &[f64]| -> Vec<f64> {
            assert!(
                x.iter().sum::<f64>().abs() < 1e-4 * x.iter().map(|v| v.abs()).sum::<f64>(),
                "not centred"
            );
            let variance = x.iter().map(|v| v * v).sum::<f64>() / x.len() as f64 + config.epsilon;
            x.iter().map(|v| v / variance.sqrt()).collect()
        };
        let add = |x: &mut Vec<f64>, y: Vec<f64>| x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
        for (block, cache) in self.model.blocks.iter().zip(&mut self.cache) {
            let n = rms_norm(&x);
            let query = block.query.weight.affine(&n, &block.query.bias);
            cache
                .keys
                .push(block.key.weight.affine(&n, &block.key.bias));
            cache
                .values
                .push(block.value.weight.affine(&n, &block.value.bias));
            let mut mix = vec![0.0; config.width];
            for lanes in
                (0..config.heads).map(|h| h * config.head_width()..(h + 1) * config.head_width())
            {
                let score = |key: &Vec<f64>| lanes.clone().map(|c| query[c] * key[c]).sum::<f64>();
                let scores: Vec<f64> = cache.keys.iter().map(score).collect();
                let total = log_sum_exp(&scores);
                for (score, value) in scores.iter().zip(&cache.values) {
                    lanes
                        .clone()
                        .for_each(|c| mix[c] += (score - total).exp() * value[c]);
                }
            }
            add(&mut x, block.output.weight.affine(&mix, &block.output.bias));
            let mut hidden = block.up.weight.affine(&rms_norm(&x), &block.up.bias);
            hidden
                .iter_mut()
                .for_each(|h| *h = config.activation.apply(*h));
            add(&mut x, block.down.weight.affine(&hidden, &block.down.bias));
        }
        self.model
            .head
            .weight
            .affine(&rms_norm(&x), &self.model.head.bias)
    }
}

/// Compares relative to the largest expected value.
pub fn assert_close(got: &[f64], expected: &[f64], tolerance: f64, context: &str) {
    assert_eq!(got.len(), expected.len(), "{context}");
    let scale = expected.iter().fold(1.0, |m: f64, v| m.max(v.abs()));
    for (k, (g, e)) in got.iter().zip(expected).enumerate() {
        assert!(
            (g - e).abs() <= tolerance * scale,
            "{context}: value {k} is {g}, expected {e}"
        );
    }
}
