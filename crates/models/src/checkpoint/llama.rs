//! The tensors of the Llama family.

use super::Source;
use crate::config::{LlamaTensors, ModelConfig};
use crate::error::ModelError;
use crate::weights::{BlockWeights, LinearWeights, NormWeights, Weights};

pub(super) fn take(
    config: &ModelConfig,
    tensors: LlamaTensors,
    source: &mut Source,
) -> Result<Weights, ModelError> {
    let (d, hidden) = (config.width, config.hidden);
    let (queries, keys) = (config.query_width(), config.kv_width());
    source.set_prefix("model.", "embed_tokens.weight");
    let tokens = source.matrix("embed_tokens.weight", config.vocabulary, d)?;
    let blocks = (0..config.layers)
        .map(|layer| {
            let name = |part: &str| format!("layers.{layer}.{part}");
            let attention = |part: &str| name(&format!("self_attn.{part}_proj"));
            let mlp = |part: &str| name(&format!("mlp.{part}_proj"));
            let LlamaTensors {
                qkv_bias,
                output_bias,
                mlp_bias,
                head_norms,
            } = tensors;
            let mut head_norm = |part: &str| match head_norms {
                true => {
                    let name = name(&format!("self_attn.{part}_norm.weight"));
                    source.vector(&name, config.head_width).map(Some)
                }
                false => Ok(None),
            };
            Ok(BlockWeights {
                query_norm: head_norm("q")?,
                key_norm: head_norm("k")?,
                norm1: norm(source, &name("input_layernorm"), d)?,
                query: linear(source, &attention("q"), d, queries, qkv_bias)?,
                key: linear(source, &attention("k"), d, keys, qkv_bias)?,
                value: linear(source, &attention("v"), d, keys, qkv_bias)?,
                output: linear(source, &attention("o"), queries, d, output_bias)?,
                norm2: norm(source, &name("post_attention_layernorm"), d)?,
                up: linear(source, &mlp("up"), d, hidden, mlp_bias)?,
                gate: Some(linear(source, &mlp("gate"), d, hidden, mlp_bias)?),
                down: linear(source, &mlp("down"), hidden, d, mlp_bias)?,
            })
        })
        .collect::<Result<Vec<_>, ModelError>>()?;
    let final_norm = norm(source, "norm", d)?;
    let head = source.head(config, &tokens)?;
    Ok(Weights {
        tokens,
        positions: None,
        blocks,
        final_norm,
        head,
    })
}

fn norm(source: &mut Source, name: &str, width: usize) -> Result<NormWeights, ModelError> {
    Ok(NormWeights {
        gamma: source.vector(&format!("{name}.weight"), width)?,
        beta: vec![0.0; width],
    })
}

/// Stored as PyTorch's `Linear`: output width x input width.
fn linear(
    source: &mut Source,
    name: &str,
    rows: usize,
    cols: usize,
    bias: bool,
) -> Result<LinearWeights, ModelError> {
    let weight = source.matrix(&format!("{name}.weight"), cols, rows)?;
    let bias = match bias {
        true => source.vector(&format!("{name}.bias"), cols)?,
        false => vec![0.0; cols],
    };
    Ok(LinearWeights {
        weight: weight.transposed(),
        bias,
    })
}
