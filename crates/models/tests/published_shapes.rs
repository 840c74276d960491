//! Configuration files of published models: every one is understood, and gives as many weights as the model is known to have.

use std::path::Path;

use serde_json::{Value, json};
use taciturn_models::random::{PUBLISHED, write_published};
use taciturn_models::{Checkpoint, ModelConfig, ModelError};

fn config(name: &str) -> Value {
    let shape = PUBLISHED.iter().find(|shape| shape.name == name).unwrap();
    shape.config(None)
}

fn parse(config: &Value) -> Result<ModelConfig, ModelError> {
    ModelConfig::parse(config.to_string().as_bytes(), Path::new("config.json"))
}

/// Counts as their model cards have them; a tied head counts once.
#[test]
fn shapes_have_the_weights_of_their_models() {
    let known = [
        ("gpt2-small", 124_439_808),
        ("gpt2-medium", 354_823_168),
        ("tinyllama-1.1b", 1_100_048_384),
        ("smollm2-135m", 134_515_008),
        ("llama-2-7b", 6_738_415_616),
        ("llama-3-8b", 8_030_261_248),
        ("llama-3.2-1b", 1_235_814_400),
        ("qwen2.5-0.5b", 494_032_768),
        ("qwen3-0.6b", 596_049_920),
    ];
    assert_eq!(PUBLISHED.len(), known.len());
    for (name, weights) in known {
        let shape = PUBLISHED.iter().find(|shape| shape.name == name).unwrap();
        assert_eq!(shape.weights(None).unwrap(), weights, "{name}");
    }
}

#[test]
fn fields_mean_what_they_mean_to_transformers() {
    let llama3 = parse(&config("llama-3-8b")).unwrap();
    assert_eq!(
        (
            llama3.kv_heads,
            llama3.queries_per_head(),
            llama3.head_width
        ),
        (8, 4, 128)
    );
    assert_eq!((llama3.bos, llama3.eos), (128_000, vec![128_001]));
    let llama32 = parse(&config("llama-3.2-1b")).unwrap();
    assert_eq!(llama32.eos.len(), 3);
    let qwen3 = parse(&config("qwen3-0.6b")).unwrap();
    assert_eq!(
        (qwen3.width, qwen3.query_width(), qwen3.kv_width()),
        (1024, 2048, 1024)
    );

    // What newer files call `rope_parameters` and older ones `rope_scaling` beside `rope_theta`.
    let mut newer = config("llama-3.2-1b");
    let mut parameters = newer["rope_scaling"].take();
    parameters["rope_theta"] = newer["rope_theta"].take();
    newer["rope_parameters"] = parameters;
    assert_eq!(parse(&newer).unwrap(), llama32);
    let mut older = config("llama-3.2-1b");
    let kind = older["rope_scaling"]["rope_type"].take();
    older["rope_scaling"]
        .as_object_mut()
        .unwrap()
        .remove("rope_type");
    older["rope_scaling"]["type"] = kind;
    assert_eq!(parse(&older).unwrap(), llama32);
    let mut unscaled = config("llama-3.2-1b");
    unscaled["rope_scaling"] = Value::Null;
    assert_ne!(parse(&unscaled).unwrap(), llama32);
}

#[test]
fn what_would_change_the_result_and_is_not_understood_is_named() {
    for (name, field, value) in [
        ("llama-3-8b", "model_type", json!("mixtral")),
        ("llama-3-8b", "num_attention_heads", json!(0)),
        ("llama-3-8b", "num_key_value_heads", json!(5)),
        ("llama-3-8b", "num_key_value_heads", json!(0)),
        ("llama-3-8b", "head_dim", json!(127)),
        ("llama-3-8b", "hidden_size", json!(1u64 << 20)),
        ("llama-3-8b", "intermediate_size", Value::Null),
        ("llama-3-8b", "max_position_embeddings", json!(0)),
        ("llama-3-8b", "hidden_act", json!("relu")),
        ("llama-3-8b", "rms_norm_eps", json!(0.0)),
        ("llama-3-8b", "rope_theta", json!(-1.0)),
        (
            "llama-3-8b",
            "rope_scaling",
            json!({"type": "yarn", "factor": 4.0}),
        ),
        ("llama-3-8b", "rope_scaling", json!({"type": "linear"})),
        (
            "llama-3-8b",
            "rope_scaling",
            json!({"type": "linear", "factor": 0.0}),
        ),
        (
            "llama-3.2-1b",
            "rope_scaling",
            json!({"rope_type": "llama3", "factor": 8.0}),
        ),
        ("llama-3-8b", "partial_rotary_factor", json!(0.5)),
        ("llama-3-8b", "bos_token_id", json!(128_256)),
        ("llama-3-8b", "eos_token_id", json!([1, 128_256])),
        ("qwen2.5-0.5b", "use_sliding_window", json!(true)),
    ] {
        let mut config = config(name);
        config[field] = value.clone();
        match parse(&config) {
            Err(ModelError::Config { field: named, .. }) => assert_eq!(named, field, "{value}"),
            other => panic!("{field} = {value}: {other:?}"),
        }
    }
    // A text begins with what ended the one before, where a model has no token for it.
    let mut without = config("qwen2.5-0.5b");
    without["bos_token_id"] = Value::Null;
    assert_eq!(parse(&without).unwrap().bos, 151_643);
    without["eos_token_id"] = Value::Null;
    assert!(matches!(
        parse(&without),
        Err(ModelError::Config {
            field: "bos_token_id",
            ..
        })
    ));
}

#[test]
fn a_written_shape_loads() {
    let shape = PUBLISHED
        .iter()
        .find(|shape| shape.name == "smollm2-135m")
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    write_published(shape, Some(1), 7, &folder.path().join("new")).unwrap();
    let checkpoint = Checkpoint::load(&folder.path().join("new")).unwrap();
    assert_eq!(
        (checkpoint.config.layers, checkpoint.config.width),
        (1, 576)
    );
    assert!(checkpoint.weights.head.is_none());
}
