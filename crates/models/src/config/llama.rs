//! `config.json` of the Llama family: Llama, TinyLlama and SmolLM2 (`llama`), Qwen2 and Qwen2.5 (`qwen2`), Qwen3 (`qwen3`).

use serde::Deserialize;

use super::{Architecture, Fields, LlamaTensors, ModelConfig, TokenIds};
use crate::error::ModelError;
use crate::rope::{Rope, RopeScaling};

/// Whose defaults hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Llama,
    Qwen2,
    Qwen3,
}

/// The fields as they stand in the file; defaults are those of Hugging Face's `LlamaConfig`, `Qwen2Config` and `Qwen3Config`.
#[derive(Deserialize)]
struct RawConfig {
    hidden_size: Option<u64>,
    intermediate_size: Option<u64>,
    num_hidden_layers: Option<u64>,
    num_attention_heads: Option<u64>,
    num_key_value_heads: Option<u64>,
    head_dim: Option<u64>,
    max_position_embeddings: Option<u64>,
    vocab_size: Option<u64>,
    hidden_act: Option<String>,
    rms_norm_eps: Option<f64>,
    rope_theta: Option<f64>,
    rope_scaling: Option<RawRope>,
    /// Where newer files put all that concerns positions.
    rope_parameters: Option<RawRope>,
    partial_rotary_factor: Option<f64>,
    tie_word_embeddings: Option<bool>,
    attention_bias: Option<bool>,
    mlp_bias: Option<bool>,
    use_sliding_window: Option<bool>,
    bos_token_id: Option<u64>,
    eos_token_id: Option<TokenIds>,
}

#[derive(Deserialize)]
struct RawRope {
    rope_theta: Option<f64>,
    /// Older files call it `type`.
    #[serde(alias = "type")]
    rope_type: Option<String>,
    factor: Option<f64>,
    low_freq_factor: Option<f64>,
    high_freq_factor: Option<f64>,
    original_max_position_embeddings: Option<f64>,
}

pub(super) fn parse(
    json: &[u8],
    fields: Fields<'_>,
    family: Family,
) -> Result<ModelConfig, ModelError> {
    let raw: RawConfig = fields.read(json)?;
    let width = fields.size("hidden_size", raw.hidden_size, 1 << 16)?;
    let hidden = fields.size("intermediate_size", raw.intermediate_size, 1 << 20)?;
    let layers = fields.size("num_hidden_layers", raw.num_hidden_layers, 1 << 10)?;
    let heads = fields.size("num_attention_heads", raw.num_attention_heads, 1 << 10)?;
    let kv_heads = raw.num_key_value_heads.or(Some(heads as u64));
    let kv_heads = fields.size("num_key_value_heads", kv_heads, 1 << 10)?;
    if !heads.is_multiple_of(kv_heads) {
        let expected = format!("a divisor of num_attention_heads = {heads}");
        return Err(fields.bad("num_key_value_heads", &expected, kv_heads.to_string()));
    }
    let head_width = match raw.head_dim {
        None if !width.is_multiple_of(heads) => {
            let expected = format!("a divisor of hidden_size = {width}, or a head_dim");
            return Err(fields.bad("num_attention_heads", &expected, heads.to_string()));
        }
        None if family == Family::Qwen3 => 128,
        None => width / heads,
        head_dim => fields.size("head_dim", head_dim, 1 << 12)?,
    };
    if !head_width.is_multiple_of(2) {
        let expected = "an even number of channels per head, which the rotary embedding pairs";
        return Err(fields.bad("head_dim", expected, head_width.to_string()));
    }
    let vocabulary = fields.size("vocab_size", raw.vocab_size, 1 << 22)?;
    let positions = raw.max_position_embeddings;
    let positions = fields.size("max_position_embeddings", positions, 1 << 22)?;
    let activation = raw.hidden_act.as_deref().unwrap_or("silu");
    let epsilon = raw.rms_norm_eps.unwrap_or(1e-6);
    fields.only("use_sliding_window", raw.use_sliding_window, false)?;
    if let Some(share) = raw.partial_rotary_factor.filter(|&share| share != 1.0) {
        return Err(fields.bad("partial_rotary_factor", "1", share.to_string()));
    }
    let rope = raw.rope_parameters.or(raw.rope_scaling);
    let theta = (rope.as_ref().and_then(|rope| rope.rope_theta))
        .or(raw.rope_theta)
        .unwrap_or(10_000.0);
    let theta = fields.number("rope_theta", theta, 1.0, 1e12)?;
    let scaling = scaling(rope.as_ref(), fields)?;
    let attention_bias = raw.attention_bias.unwrap_or(false);
    let tensors = LlamaTensors {
        qkv_bias: attention_bias || family == Family::Qwen2,
        output_bias: attention_bias && family != Family::Qwen2,
        mlp_bias: raw.mlp_bias.unwrap_or(false) && family == Family::Llama,
        head_norms: family == Family::Qwen3,
    };
    let eos = fields.tokens("eos_token_id", raw.eos_token_id, vocabulary)?;
    // Models without a token for it begin a text with what ended the one before.
    let bos = (raw.bos_token_id)
        .or(eos.first().map(|&id| u64::from(id)))
        .ok_or_else(|| fields.bad("bos_token_id", "a token id", "nothing".into()))?;
    Ok(ModelConfig {
        architecture: Architecture::Llama(tensors),
        width,
        layers,
        heads,
        kv_heads,
        head_width,
        hidden,
        positions,
        vocabulary,
        activation: fields.activation("hidden_act", activation)?,
        rope: Some(Rope::new(theta, head_width, scaling)),
        epsilon: fields.number("rms_norm_eps", epsilon, 0.0, 1.0)?,
        tied_head: raw.tie_word_embeddings.unwrap_or(false),
        bos: fields.token("bos_token_id", bos, vocabulary)?,
        eos,
    })
}

fn scaling(rope: Option<&RawRope>, fields: Fields<'_>) -> Result<RopeScaling, ModelError> {
    let Some(rope) = rope else {
        return Ok(RopeScaling::None);
    };
    let number = |value: Option<f64>, name: &str| match value {
        Some(value) if value > 0.0 && value.is_finite() => Ok(value),
        value => Err(fields.bad(
            "rope_scaling",
            &format!("a positive number as {name}"),
            value.map_or("nothing".into(), |value| value.to_string()),
        )),
    };
    match rope.rope_type.as_deref().unwrap_or("default") {
        "default" => Ok(RopeScaling::None),
        "linear" => Ok(RopeScaling::Linear {
            factor: number(rope.factor, "factor")?,
        }),
        "llama3" => {
            let low = number(rope.low_freq_factor, "low_freq_factor")?;
            let high = number(rope.high_freq_factor, "high_freq_factor")?;
            if high <= low {
                let expected = format!("a high_freq_factor above low_freq_factor = {low}");
                return Err(fields.bad("rope_scaling", &expected, high.to_string()));
            }
            Ok(RopeScaling::Llama3 {
                factor: number(rope.factor, "factor")?,
                low,
                high,
                trained: number(
                    rope.original_max_position_embeddings,
                    "original_max_position_embeddings",
                )?,
            })
        }
        other => Err(fields.bad(
            "rope_scaling",
            "rope_type `default`, `linear` or `llama3`",
            format!("`{other}`"),
        )),
    }
}
