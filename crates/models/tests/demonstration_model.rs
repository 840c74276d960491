//! The demonstration models that come with the sources: they load, predict as well as their README says, and their calibration tables
//! belong to them and hold on text that the models never saw.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use taciturn_graph::{CostTable, Level, Optimal, WhenNothingIsLeft};
use taciturn_models::{
    Checkpoint, ClearModel, StepModel, TextTokenizer, load_calibration, log_sum_exp, overshoot,
};

fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models")
}

const MODELS: [&str; 2] = ["gpt2-code-tiny", "llama-code-tiny"];

#[test]
fn the_demonstration_models_predict_held_out_code() {
    MODELS.into_iter().for_each(predicts_held_out_code);
}

fn predicts_held_out_code(name: &str) {
    let folder = models().join(name);
    let checkpoint = Checkpoint::load(&folder).unwrap();
    let tokenizer = TextTokenizer::load(&folder, &checkpoint.config).unwrap();
    let text = std::fs::read_to_string(models().join("heldout.txt")).unwrap();
    let tokens = tokenizer.encode(&text[..8000]).unwrap();
    assert_eq!(tokenizer.decode(&tokens).unwrap(), text[..8000]);

    let model = ClearModel::new(&checkpoint);
    let (mut loss, mut count) = (0.0, 0);
    for window in tokens.chunks_exact(127) {
        let mut cache = model.cache();
        let mut logits = model.step(&mut cache, checkpoint.config.bos).unwrap();
        for &token in window {
            loss += log_sum_exp(&logits) - logits[token as usize];
            logits = model.step(&mut cache, token).unwrap();
            count += 1;
        }
    }
    let perplexity = (loss / f64::from(count)).exp();
    assert!((10.0..20.0).contains(&perplexity), "{name}: {perplexity}");

    let table = load_calibration(&folder, &checkpoint).unwrap();
    let outside = overshoot(&checkpoint, &tokens, &table).unwrap();
    assert!(outside.is_empty(), "{name}: {outside:?}");
}

#[derive(Deserialize)]
struct Recorded {
    text: String,
    tokens: Vec<u32>,
    /// Every 97th logit.
    logits: Vec<Vec<f64>>,
    best: Vec<usize>,
}

/// What Hugging Face's transformers 5.23 (torch 2.15) computes in double precision, angles of the rotary embedding apart.
#[test]
fn the_llama_model_computes_what_transformers_computes() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/llama_code_tiny.json");
    let recorded: Recorded = serde_json::from_slice(&std::fs::read(data).unwrap()).unwrap();
    let folder = models().join("llama-code-tiny");
    let checkpoint = Checkpoint::load(&folder).unwrap();
    let tokenizer = TextTokenizer::load(&folder, &checkpoint.config).unwrap();
    assert_eq!(
        tokenizer.encode(&recorded.text).unwrap(),
        recorded.tokens[1..]
    );
    let model = ClearModel::new(&checkpoint);
    let mut cache = model.cache();
    let expected = recorded.logits.iter().zip(&recorded.best);
    for (&token, (expected, &best)) in recorded.tokens.iter().zip(expected) {
        let logits = model.step(&mut cache, token).unwrap();
        let some = logits.iter().step_by(97).zip(expected);
        some.for_each(|(got, want)| assert!((got - want).abs() < 1e-4, "{got}, not {want}"));
        assert!(logits.iter().all(|logit| *logit <= logits[best]));
    }
}

/// The tables beside the models plan a step for 128 tokens, by search and by the baseline that it is compared with.
#[test]
fn the_demonstration_models_can_be_planned() {
    MODELS.into_iter().for_each(can_be_planned);
}

fn can_be_planned(name: &str) {
    let folder = models().join(name);
    let checkpoint = Checkpoint::load(&folder).unwrap();
    let table = load_calibration(&folder, &checkpoint).unwrap();
    let slots = 1 << 15;
    let model = StepModel::new(&checkpoint, &table, slots, 128).unwrap();
    let costs = CostTable::reference(slots, Level(16));
    let baseline = model.plan(&costs, &WhenNothingIsLeft).unwrap();
    let search = Optimal::default();
    let found = model.plan(&costs, &search).unwrap();
    assert!(found.microseconds <= baseline.microseconds);
    // One token more than that for the public beginning of the text.
    assert!(StepModel::new(&checkpoint, &table, slots, 129).is_ok());
}
