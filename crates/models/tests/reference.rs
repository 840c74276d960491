//! The clear and the prepared model against logits of others: a textbook forward pass for GPT-2 (tests/data/reference.py), Hugging Face's own
//! models for the Llama family (tests/data/reference_llama.py).

mod common;

use std::path::{Path, PathBuf};

use common::PreparedRunner;
use serde::Deserialize;
use taciturn_models::{Checkpoint, ClearModel, Prepared};

#[derive(Deserialize)]
struct Reference {
    tokens: Vec<u32>,
    logits: Vec<Vec<f64>>,
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

/// Hugging Face computes the angles of rotary embeddings in single precision.
const SINGLE: f64 = 3e-6;

#[test]
fn logits_match_another_implementation() {
    for (name, tolerance) in [
        ("tied_f32", 1e-10),
        ("untied_f16", 1e-10),
        ("sharded_bf16", 1e-10),
        ("llama_grouped", SINGLE),
        ("llama_biased_scaled", SINGLE),
        ("qwen2", SINGLE),
        ("qwen3", SINGLE),
    ] {
        let checkpoint = Checkpoint::load(&folder(name)).unwrap();
        let text = std::fs::read_to_string(folder(name).join("logits.json")).unwrap();
        let reference: Reference = serde_json::from_str(&text).unwrap();
        let prepared = Prepared::new(&checkpoint);
        let model = ClearModel::new(&checkpoint);
        let mut cache = model.cache();
        let mut runner = PreparedRunner::new(&prepared, &cache);
        for (&token, expected) in reference.tokens.iter().zip(&reference.logits) {
            let clear = model.step(&mut cache, token).unwrap();
            common::assert_close(&clear, expected, tolerance, name);
            common::assert_close(&runner.step(token), &clear, 1e-10, name);
        }
        assert_eq!(cache.position(), reference.tokens.len());
        assert!(model.step(&mut cache, 0).is_err(), "the context is full");
        assert!(
            model.step(&mut model.cache(), 17).is_err(),
            "17 is outside the vocabulary"
        );
        let positions = checkpoint.config.positions;
        assert!(prepared.embed(17, 0).is_err() && prepared.embed(0, positions).is_err());
    }
}
