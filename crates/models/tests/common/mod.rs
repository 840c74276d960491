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
        let position = self.cache[0].keys.len();
        let mut x = self.model.embed(token, position).unwrap();
        let rms = |x: &[f64]| {
            let square = x.iter().map(|v| v * v).sum::<f64>() / x.len() as f64;
            (square + config.epsilon).sqrt()
        };
        let rms_norm = |x: &[f64]| -> Vec<f64> {
            assert!(
                !config.layer_norm()
                    || x.iter().sum::<f64>().abs() < 1e-4 * x.iter().map(|v| v.abs()).sum::<f64>(),
                "not centred"
            );
            x.iter().map(|v| v / rms(x)).collect()
        };
        // Norm and rotary embedding of every head, where the model has them.
        let finish = |x: Vec<f64>, gain: &Option<Vec<f64>>| -> Vec<f64> {
            let finish_head = |head: &[f64]| -> Vec<f64> {
                let mut head = head.to_vec();
                if let Some(gain) = gain {
                    let rms = rms(&head);
                    head.iter_mut().zip(gain).for_each(|(x, g)| *x *= g / rms);
                }
                if let Some(rope) = &config.rope {
                    let (cos, sin) = rope.factors(position);
                    let half = head.len() / 2;
                    let partner = |c: usize| head[(c + half) % head.len()];
                    return (0..head.len())
                        .map(|c| head[c] * cos[c] + partner(c) * sin[c])
                        .collect();
                }
                head
            };
            x.chunks(config.head_width).flat_map(finish_head).collect()
        };
        let add = |x: &mut Vec<f64>, y: Vec<f64>| x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
        for (block, cache) in self.model.blocks.iter().zip(&mut self.cache) {
            let n = rms_norm(&x);
            let query = finish(block.query.apply(&n), &block.query_norm);
            cache
                .keys
                .push(finish(block.key.apply(&n), &block.key_norm));
            cache.values.push(block.value.apply(&n));
            let c = config.head_width;
            let mut mix = vec![0.0; config.heads * c];
            for head in 0..config.heads {
                let shared = head * config.kv_heads / config.heads * c;
                let score = |key: &Vec<f64>| -> f64 {
                    (0..c)
                        .map(|i| {
                            let key = key[shared + i] + block.key_shift[head * c + i];
                            query[head * c + i] * key
                        })
                        .sum()
                };
                let scores: Vec<f64> = cache.keys.iter().map(score).collect();
                let total = log_sum_exp(&scores);
                for (score, value) in scores.iter().zip(&cache.values) {
                    (0..c).for_each(|i| {
                        mix[head * c + i] += (score - total).exp() * value[shared + i]
                    });
                }
            }
            add(&mut x, block.output.apply(&mix));
            let n = rms_norm(&x);
            let mut hidden = block.up.apply(&n);
            match &block.gate {
                None => hidden
                    .iter_mut()
                    .for_each(|h| *h = config.activation.apply(*h)),
                Some(gate) => hidden
                    .iter_mut()
                    .zip(gate.apply(&n))
                    .for_each(|(h, gate)| *h *= config.activation.apply(gate)),
            }
            add(&mut x, block.down.apply(&hidden));
        }
        self.model.head.apply(&rms_norm(&x))
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
