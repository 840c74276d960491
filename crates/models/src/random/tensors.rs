//! Which tensors a random checkpoint has, and how their entries are distributed.

use crate::config::{Architecture, LlamaTensors, ModelConfig};

/// What is common to all tensors.
pub(super) struct Statistics {
    /// Standard deviation of biases.
    pub(super) bias: f64,
    /// Factor on everything that writes the residual stream.
    pub(super) residual_scale: f64,
}

/// A tensor with entries `factor * (mean + deviation * normal)`.
pub(super) struct RandomTensor {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
    pub(super) mean: f64,
    pub(super) deviation: f64,
    pub(super) factor: f64,
}

impl Default for Statistics {
    fn default() -> Self {
        Self {
            bias: 0.1,
            residual_scale: 1.0,
        }
    }
}

/// All tensors of a model. Writers of the residual stream are small enough to keep its size from layer to layer.
pub(super) fn tensors(config: &ModelConfig, statistics: &Statistics) -> Vec<RandomTensor> {
    let mut list = List {
        tensors: Vec::new(),
        bias: statistics.bias,
    };
    match config.architecture {
        Architecture::Gpt2 => list.gpt2(config, statistics.residual_scale),
        Architecture::Llama(tensors) => list.llama(config, tensors, statistics.residual_scale),
    }
    if !config.tied_head {
        list.matrix(
            "lm_head.weight",
            [config.vocabulary, config.width],
            config.width,
            2.0,
            1.0,
        );
    }
    list.tensors
}

/// Share of a writer's deviation.
const WRITER: f64 = 0.2;

struct List {
    tensors: Vec<RandomTensor>,
    bias: f64,
}

impl List {
    fn push(&mut self, name: &str, shape: &[usize], mean: f64, deviation: f64, factor: f64) {
        self.tensors.push(RandomTensor {
            name: name.into(),
            shape: shape.to_vec(),
            mean,
            deviation,
            factor,
        });
    }

    /// Entries such that a normal input of `inputs` entries gives outputs of deviation `gain`.
    fn matrix(&mut self, name: &str, shape: [usize; 2], inputs: usize, gain: f64, factor: f64) {
        self.push(name, &shape, 0.0, gain / (inputs as f64).sqrt(), factor);
    }

    fn gain(&mut self, name: &str, width: usize, factor: f64) {
        self.push(name, &[width], 1.0, 0.1, factor);
    }

    fn bias(&mut self, name: &str, width: usize, factor: f64) {
        self.push(name, &[width], 0.0, self.bias, factor);
    }

    fn gpt2(&mut self, config: &ModelConfig, f: f64) {
        let (d, hidden) = (config.width, config.hidden);
        self.matrix("transformer.wte.weight", [config.vocabulary, d], d, 2.0, f);
        self.matrix("transformer.wpe.weight", [config.positions, d], d, 1.0, f);
        for layer in 0..config.layers {
            let name = |part: &str| format!("transformer.h.{layer}.{part}");
            for norm in ["ln_1", "ln_2"] {
                self.gain(&name(&format!("{norm}.weight")), d, 1.0);
                self.bias(&name(&format!("{norm}.bias")), d, 1.0);
            }
            for (part, rows, cols, gain, factor) in [
                ("attn.c_attn", d, 3 * d, 1.0, 1.0),
                ("attn.c_proj", d, d, WRITER, f),
                ("mlp.c_fc", d, hidden, 1.0, 1.0),
                ("mlp.c_proj", hidden, d, WRITER, f),
            ] {
                self.matrix(
                    &name(&format!("{part}.weight")),
                    [rows, cols],
                    rows,
                    gain,
                    factor,
                );
                self.bias(&name(&format!("{part}.bias")), cols, factor);
            }
        }
        let undo = if config.tied_head { 1.0 / f } else { 1.0 };
        self.gain("transformer.ln_f.weight", d, undo);
        self.bias("transformer.ln_f.bias", d, undo);
    }

    fn llama(&mut self, config: &ModelConfig, tensors: LlamaTensors, f: f64) {
        let (d, hidden) = (config.width, config.hidden);
        let (queries, keys) = (config.query_width(), config.kv_width());
        let LlamaTensors {
            qkv_bias,
            output_bias,
            mlp_bias,
            head_norms,
        } = tensors;
        self.matrix(
            "model.embed_tokens.weight",
            [config.vocabulary, d],
            d,
            2.0,
            f,
        );
        for layer in 0..config.layers {
            let name = |part: &str| format!("model.layers.{layer}.{part}");
            self.gain(&name("input_layernorm.weight"), d, 1.0);
            self.gain(&name("post_attention_layernorm.weight"), d, 1.0);
            for (part, rows, cols, gain, factor, bias) in [
                ("self_attn.q_proj", d, queries, 1.0, 1.0, qkv_bias),
                ("self_attn.k_proj", d, keys, 1.0, 1.0, qkv_bias),
                ("self_attn.v_proj", d, keys, 1.0, 1.0, qkv_bias),
                ("self_attn.o_proj", queries, d, WRITER, f, output_bias),
                ("mlp.gate_proj", d, hidden, 1.0, 1.0, mlp_bias),
                ("mlp.up_proj", d, hidden, 1.0, 1.0, mlp_bias),
                ("mlp.down_proj", hidden, d, WRITER, f, mlp_bias),
            ] {
                self.matrix(
                    &name(&format!("{part}.weight")),
                    [cols, rows],
                    rows,
                    gain,
                    factor,
                );
                if bias {
                    self.bias(&name(&format!("{part}.bias")), cols, factor);
                }
            }
            if head_norms {
                for part in ["q", "k"] {
                    let name = name(&format!("self_attn.{part}_norm.weight"));
                    self.gain(&name, config.head_width, 1.0);
                }
            }
        }
        let undo = if config.tied_head { 1.0 / f } else { 1.0 };
        self.gain("model.norm.weight", d, undo);
    }
}
