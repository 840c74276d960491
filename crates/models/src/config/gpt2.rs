//! `config.json` of a GPT-2 model.

use serde::Deserialize;

use super::{Architecture, Fields, ModelConfig, TokenIds};
use crate::error::ModelError;

/// The fields as they stand in the file; defaults are those of Hugging Face's `GPT2Config`.
#[derive(Deserialize)]
struct RawConfig {
    n_embd: Option<u64>,
    n_layer: Option<u64>,
    n_head: Option<u64>,
    n_inner: Option<u64>,
    n_positions: Option<u64>,
    vocab_size: Option<u64>,
    activation_function: Option<String>,
    layer_norm_epsilon: Option<f64>,
    tie_word_embeddings: Option<bool>,
    bos_token_id: Option<u64>,
    eos_token_id: Option<TokenIds>,
    scale_attn_weights: Option<bool>,
    scale_attn_by_inverse_layer_idx: Option<bool>,
    add_cross_attention: Option<bool>,
}

pub(super) fn parse(json: &[u8], fields: Fields<'_>) -> Result<ModelConfig, ModelError> {
    let raw: RawConfig = fields.read(json)?;
    let width = fields.size("n_embd", raw.n_embd, 1 << 16)?;
    let layers = fields.size("n_layer", raw.n_layer, 1 << 10)?;
    let heads = fields.size("n_head", raw.n_head, 1 << 10)?;
    let hidden = fields.size("n_inner", raw.n_inner.or(Some(4 * width as u64)), 1 << 20)?;
    let positions = fields.size("n_positions", raw.n_positions, 1 << 20)?;
    let vocabulary = fields.size("vocab_size", raw.vocab_size, 1 << 22)?;
    if !width.is_multiple_of(heads) {
        let expected = format!("a divisor of n_embd = {width}");
        return Err(fields.bad("n_head", &expected, heads.to_string()));
    }
    let activation = raw.activation_function.as_deref().unwrap_or("gelu_new");
    let activation = fields.activation("activation_function", activation)?;
    let epsilon = raw.layer_norm_epsilon.unwrap_or(1e-5);
    let epsilon = fields.number("layer_norm_epsilon", epsilon, 0.0, 1.0)?;
    for (field, value, needed) in [
        ("scale_attn_weights", raw.scale_attn_weights, true),
        (
            "scale_attn_by_inverse_layer_idx",
            raw.scale_attn_by_inverse_layer_idx,
            false,
        ),
        ("add_cross_attention", raw.add_cross_attention, false),
    ] {
        fields.only(field, value, needed)?;
    }
    let bos = raw
        .bos_token_id
        .ok_or_else(|| fields.bad("bos_token_id", "a token id", "nothing".into()))?;
    Ok(ModelConfig {
        architecture: Architecture::Gpt2,
        width,
        layers,
        heads,
        kv_heads: heads,
        head_width: width / heads,
        hidden,
        positions,
        vocabulary,
        activation,
        rope: None,
        epsilon,
        tied_head: raw.tie_word_embeddings.unwrap_or(true),
        bos: fields.token("bos_token_id", bos, vocabulary)?,
        eos: fields.tokens("eos_token_id", raw.eos_token_id, vocabulary)?,
    })
}
