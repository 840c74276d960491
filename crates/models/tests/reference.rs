//! The clear and the prepared model against logits of an independent forward pass (tests/data/reference.py).

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

#[test]
fn logits_match_an_independent_forward_pass() {
    for name in ["tied_f32", "untied_f16", "sharded_bf16"] {
        let checkpoint = Checkpoint::load(&folder(name)).unwrap();
        let text = std::fs::read_to_string(folder(name).join("logits.json")).unwrap();
        let reference: Reference = serde_json::from_str(&text).unwrap();
        let prepared = Prepared::new(&checkpoint);
        let model = ClearModel::new(&checkpoint);
        let mut cache = model.cache();
        let mut runner = PreparedRunner::new(&prepared, &cache);
        for (&token, expected) in reference.tokens.iter().zip(&reference.logits) {
            let clear = model.step(&mut cache, token).unwrap();
            common::assert_close(&clear, expected, 1e-10, name);
            // Prepared weights are stored as f32.
            common::assert_close(&runner.step(token), expected, 2e-5, name);
        }
        assert_eq!(cache.position(), reference.tokens.len());
        assert!(model.step(&mut cache, 0).is_err(), "the context is full");
        assert!(
            model.step(&mut model.cache(), 17).is_err(),
            "17 is outside the vocabulary"
        );
        assert!(prepared.embed(17, 0).is_err() && prepared.embed(0, 9).is_err());
    }
}
