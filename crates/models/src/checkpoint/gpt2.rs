//! GPT-2's tensors.

use super::Source;
use crate::config::ModelConfig;
use crate::error::ModelError;
use crate::weights::{BlockWeights, LinearWeights, NormWeights, Weights};

pub(super) fn take(config: &ModelConfig, source: &mut Source) -> Result<Weights, ModelError> {
    let (d, hidden) = (config.width, config.hidden);
    source.set_prefix("transformer.", "wte.weight");
    let tokens = source.matrix("wte.weight", config.vocabulary, d)?;
    let positions = source.matrix("wpe.weight", config.positions, d)?;
    let blocks = (0..config.layers)
        .map(|layer| {
            let name = |part: &str| format!("h.{layer}.{part}");
            let norm1 = norm(source, &name("ln_1"), d)?;
            let qkv = linear(source, &name("attn.c_attn"), d, 3 * d)?;
            let part = |k: usize| LinearWeights {
                weight: qkv.weight.columns(k * d, d),
                bias: qkv.bias[k * d..(k + 1) * d].to_vec(),
            };
            Ok(BlockWeights {
                norm1,
                query: part(0),
                key: part(1),
                value: part(2),
                query_norm: None,
                key_norm: None,
                output: linear(source, &name("attn.c_proj"), d, d)?,
                norm2: norm(source, &name("ln_2"), d)?,
                up: linear(source, &name("mlp.c_fc"), d, hidden)?,
                gate: None,
                down: linear(source, &name("mlp.c_proj"), hidden, d)?,
            })
        })
        .collect::<Result<Vec<_>, ModelError>>()?;
    let final_norm = norm(source, "ln_f", d)?;
    let head = source.head(config, &tokens)?;
    Ok(Weights {
        tokens,
        positions: Some(positions),
        blocks,
        final_norm,
        head,
    })
}

fn norm(source: &mut Source, name: &str, width: usize) -> Result<NormWeights, ModelError> {
    let gamma = source.vector(&format!("{name}.weight"), width)?;
    Ok(NormWeights {
        gamma,
        beta: source.vector(&format!("{name}.bias"), width)?,
    })
}

/// GPT-2 stores its projections as `Conv1D`: input width x output width.
fn linear(
    source: &mut Source,
    name: &str,
    rows: usize,
    cols: usize,
) -> Result<LinearWeights, ModelError> {
    let weight = source.matrix(&format!("{name}.weight"), rows, cols)?;
    Ok(LinearWeights {
        weight,
        bias: source.vector(&format!("{name}.bias"), cols)?,
    })
}
