//! The demonstration model that comes with the sources: it loads, predicts as well as its README says, and its calibration table
//! belongs to it and holds on text that the model never saw.

use std::path::{Path, PathBuf};

use taciturn_graph::{CostTable, Level, Optimal, WhenNothingIsLeft};
use taciturn_models::{
    Checkpoint, ClearModel, StepModel, TextTokenizer, load_calibration, log_sum_exp, overshoot,
};

fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models")
}

#[test]
fn the_demonstration_model_predicts_held_out_code() {
    let folder = models().join("gpt2-code-tiny");
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
    assert!((10.0..20.0).contains(&perplexity), "{perplexity}");

    let table = load_calibration(&folder, &checkpoint).unwrap();
    assert_eq!(overshoot(&checkpoint, &tokens, &table).unwrap().len(), 0);
}

/// The table beside the model plans a step for 128 tokens, by search and by the baseline that it is compared with.
#[test]
fn the_demonstration_model_can_be_planned() {
    let folder = models().join("gpt2-code-tiny");
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
