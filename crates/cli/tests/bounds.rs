//! A refreshed value past its bound comes out wrong: that is an error, never text.

mod common;

use common::{SMALL, failure, models, names, path};
use serde_json::Value;

#[test]
fn a_value_past_the_bound_of_its_refresh_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = models().join("gpt2-code-tiny");
    for file in ["config.json", "model.safetensors", "tokenizer.json"] {
        std::fs::copy(source.join(file), folder.path().join(file)).expect("the file is there");
    }
    let table = "taciturn.calibration.json";
    let text = std::fs::read_to_string(source.join(table)).expect("the table is there");
    let mut calibration: Value = serde_json::from_str(&text).expect("a table");
    for (_, bound) in calibration["bounds"].as_object_mut().expect("bounds") {
        *bound = (bound.as_f64().expect("a number") * 0.02).into();
    }
    std::fs::write(folder.path().join(table), calibration.to_string()).expect("written");

    let arguments = [
        &[
            "generate",
            "--model",
            path(&folder),
            "--prompt",
            "def f(",
            "--max-new-tokens",
            "1",
        ][..],
        &SMALL,
    ]
    .concat();
    let message = failure(1, &arguments);
    names(&message, &["(refresh)", "expected", "got", "calibrate"]);
}
