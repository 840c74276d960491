//! A refreshed value past its bound comes out wrong: that is an error, never text.

use crate::harness::{SMALL, demonstration_copy, failure, names, path};
use serde_json::Value;

#[test]
fn a_value_past_the_bound_of_its_refresh_is_an_error() {
    let folder = demonstration_copy();
    let table = folder.path().join("taciturn.calibration.json");
    let text = std::fs::read_to_string(&table).expect("the table is there");
    let mut calibration: Value = serde_json::from_str(&text).expect("a table");
    for (_, bound) in calibration["bounds"].as_object_mut().expect("bounds") {
        *bound = (bound.as_f64().expect("a number") * 0.02).into();
    }
    std::fs::write(table, calibration.to_string()).expect("written");

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
