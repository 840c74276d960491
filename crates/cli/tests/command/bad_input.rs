//! Bad input: a message that names the thing, what was expected, what came and what to do; exit code 1 or 2; no panic.

use crate::harness::{self, SMALL, demonstration_copy, failure, models, names, path};
use serde_json::Value;

fn generate(more: &[&str]) -> Vec<String> {
    let begin = ["generate", "--max-new-tokens", "1"];
    begin
        .iter()
        .chain(more)
        .chain(&SMALL)
        .map(|&a| a.to_owned())
        .collect()
}

fn refused(code: i32, more: &[&str]) -> String {
    let arguments = generate(more);
    failure(
        code,
        &arguments.iter().map(String::as_str).collect::<Vec<_>>(),
    )
}

/// The demonstration model with one file changed.
fn with_file(name: &str, change: impl Fn(Vec<u8>) -> Vec<u8>) -> String {
    let model = demonstration_copy();
    let file = model.path().join(name);
    let bytes = std::fs::read(&file).expect("the file");
    std::fs::write(&file, change(bytes)).expect("the changed file");
    refused(1, &["--prompt", "x", "--model", path(&model)])
}

/// The demonstration model with one field of its configuration changed.
fn with_config(field: &str, value: Value) -> String {
    with_file("config.json", |bytes| {
        let mut config: Value = serde_json::from_slice(&bytes).expect("a configuration");
        config[field] = value.clone();
        config.to_string().into_bytes()
    })
}

fn without_file(name: &str) -> String {
    let model = demonstration_copy();
    std::fs::remove_file(model.path().join(name)).expect("the file");
    refused(1, &["--prompt", "x", "--model", path(&model)])
}

#[test]
fn missing_files() {
    let message = refused(1, &["--prompt", "x", "--model", "no/such/folder"]);
    names(
        &message,
        &[
            "no/such/folder",
            "hint: --model takes a Hugging Face folder",
        ],
    );
    names(&without_file("config.json"), &["config.json", "hint:"]);
    names(
        &without_file("model.safetensors"),
        &["model.safetensors", "hint:"],
    );
    names(
        &without_file("tokenizer.json"),
        &["tokenizer.json", "hint:"],
    );
    let message = without_file("taciturn.calibration.json");
    names(
        &message,
        &["taciturn.calibration.json", "hint:", "taciturn calibrate"],
    );
}

#[test]
fn truncated_and_hostile_files() {
    let half = |bytes: Vec<u8>| bytes[..bytes.len() / 2].to_vec();
    names(
        &with_file("model.safetensors", half),
        &["model.safetensors", "expected", "cut off", "fetch it again"],
    );
    names(&with_file("config.json", half), &["config.json", "line"]);
    names(
        &with_file("tokenizer.json", half),
        &["tokenizer.json", "expected"],
    );
    names(
        &with_file("taciturn.calibration.json", half),
        &["taciturn.calibration.json"],
    );
    // A header that claims to be longer than any file.
    let hostile = |mut bytes: Vec<u8>| {
        bytes[..8].copy_from_slice(&u64::MAX.to_le_bytes());
        bytes
    };
    names(
        &with_file("model.safetensors", hostile),
        &["model.safetensors", "expected"],
    );
    let deep = |_| vec![b'['; 100_000];
    names(&with_file("config.json", deep), &["config.json"]);
}

#[test]
fn shapes_and_kinds_that_do_not_fit() {
    let message = with_config("n_embd", 128.into());
    names(&message, &["tensor `", "expected shape", "got shape"]);
    let message = with_config("model_type", "mamba".into());
    names(&message, &["model_type", "expected `gpt2`", "got `mamba`"]);
    let message = with_config("activation_function", "relu6".into());
    names(
        &message,
        &["activation_function", "expected", "got `relu6`"],
    );
    let message = with_config("n_head", 3.into());
    names(&message, &["n_head", "divisor of n_embd", "got 3"]);
    let message = with_config("n_layer", Value::from(1u64 << 40));
    names(&message, &["n_layer", "expected a size"]);
}

#[test]
fn a_tokenizer_of_another_model() {
    let message = with_file("tokenizer.json", |bytes| {
        let mut tokenizer: Value = serde_json::from_slice(&bytes).expect("a tokenizer");
        tokenizer["model"]["vocab"]["beyond"] = 5000.into();
        tokenizer.to_string().into_bytes()
    });
    names(
        &message,
        &[
            "tokenizer.json",
            "below the model's vocab_size 1024",
            "got id 5000",
        ],
    );
}

#[test]
fn a_table_of_another_model() {
    let message = with_file("taciturn.calibration.json", |bytes| {
        let mut table: Value = serde_json::from_slice(&bytes).expect("a table");
        table["model_hash"] = "0123".into();
        table.to_string().into_bytes()
    });
    names(
        &message,
        &[
            "calibration table",
            "expected one for model",
            "got one for 0123",
        ],
    );
}

#[test]
fn a_table_with_numbers_that_no_run_can_take() {
    for (field, value) in [("context", 1), ("softmax_squarings", 40)] {
        let model = demonstration_copy();
        let file = model.path().join("taciturn.calibration.json");
        let mut table: Value =
            serde_json::from_slice(&std::fs::read(&file).expect("the table")).expect("a table");
        table[field] = value.into();
        std::fs::write(&file, table.to_string()).expect("the changed table");
        let text = models().join("heldout.txt");
        let text = text.to_str().expect("a path in UTF-8");
        let message = failure(
            1,
            &[
                "eval",
                "--mode",
                "clear",
                "--text",
                text,
                "--model",
                path(&model),
            ],
        );
        names(
            &message,
            &["calibration table", field, "expected at", "got"],
        );
    }
}

#[test]
fn kept_costs_that_cannot_be_taken_are_named() {
    let cache = tempfile::TempDir::new().expect("a temporary folder");
    let arguments = [&["plan", "--threads", "1"][..], &SMALL].concat();
    let folder = cache.path().join("taciturn");
    std::fs::create_dir(&folder).expect("a folder");
    let doctor = harness::json(&["doctor", "--json"]);
    let backend = doctor["backend"].as_str().expect("a name");
    let file = folder.join(format!("costs-insecure-n13-{backend}-1.json"));
    std::fs::write(file, "{}").expect("a file");
    let output = harness::taciturn_with_cache(cache.path(), &arguments);
    let message = harness::stderr(&output);
    assert!(output.status.success(), "{message}");
    names(
        &message,
        &[
            "warning:",
            "costs-insecure-n13-",
            "built-in",
            "plan --measure",
        ],
    );
}

#[test]
fn values_that_leave_their_interval_are_no_text() {
    // A table that claims narrower ranges than the model has, so that what is decrypted is nonsense.
    let message = with_file("taciturn.calibration.json", |bytes| {
        let mut table: Value = serde_json::from_slice(&bytes).expect("a table");
        let site = &mut table["sites"]["layer1.norm1.variance"];
        let high = site["max"][0].as_f64().expect("a number");
        site["min"][0] = (0.9 * high).into();
        table.to_string().into_bytes()
    });
    names(
        &message,
        &[
            "layer1.norm1",
            "calibrated interval",
            "expected [",
            "got [",
            "hint: recalibrate",
            "taciturn calibrate",
        ],
    );
}

/// Tokens that the demonstration model is calibrated for.
fn demonstration_context() -> usize {
    let file = models().join("gpt2-code-tiny/taciturn.calibration.json");
    let table: Value =
        serde_json::from_slice(&std::fs::read(file).expect("the table")).expect("a table");
    table["context"].as_u64().expect("a number") as usize
}

#[test]
fn prompts_that_cannot_be_continued() {
    names(
        &refused(2, &["--prompt", ""]),
        &["--prompt", "at least one token", "got none"],
    );
    // Beside the beginning-of-text token and the least that the other may be.
    let context = demonstration_context();
    let most = context - 2;
    let long = "x = 1\n".repeat(200);
    let message = refused(2, &["--prompt", &long]);
    names(
        &message,
        &[
            &format!("--prompt: expected at most {most} tokens"),
            "got ",
            "shorten",
            &format!("{context} tokens in all"),
            "calibrate --context",
        ],
    );
    let generate = |prompt: &str, new: usize| {
        let new = new.to_string();
        failure(
            2,
            &["generate", "--prompt", prompt, "--max-new-tokens", &new],
        )
    };
    let message = generate("x", 500);
    names(
        &message,
        &[
            &format!("--max-new-tokens: expected at most {most}"),
            "got 500",
            "fewer",
        ],
    );
    assert!(!message.contains("--prompt"), "{message}");
    names(
        &generate("def f(", most),
        &[
            &format!(
                "--prompt and --max-new-tokens: expected at most {} tokens together",
                context - 1
            ),
            &format!("and {most}"),
            "take --max-new-tokens",
        ],
    );
    names(&failure(2, &["generate"]), &["--prompt"]);
}

#[test]
fn parameters_that_do_not_exist_or_protect_nothing() {
    let message = failure(2, &["generate", "--prompt", "x", "--params", "n99"]);
    names(&message, &["--params", "'n99'", "expected one of n16-128"]);
    let message = failure(
        2,
        &["generate", "--prompt", "x", "--params", "insecure-n13"],
    );
    names(&message, &["--params", "insecure-n13", "--allow-insecure"]);
}

#[test]
fn numbers_out_of_range() {
    let words = "expected a whole number of at least 1";
    for flag in ["--max-new-tokens", "--threads"] {
        for value in ["0", "-1", "many", "1.5"] {
            let flag_and_value = format!("{flag}={value}");
            let message = failure(2, &["generate", "--prompt", "x", &flag_and_value]);
            names(&message, &[flag, words]);
        }
    }
    for (flag, value) in [
        ("--temperature", "-1"),
        ("--temperature", "NaN"),
        ("--top-p", "0"),
        ("--top-p", "1.5"),
    ] {
        let message = refused(2, &["--prompt", "x", flag, value]);
        names(&message, &[&format!("{flag}: expected"), "got"]);
    }
    let message = failure(2, &["doctor", "--threads", "100000"]);
    names(
        &message,
        &["--threads: expected at most", "cores", "got 100000"],
    );
    let message = failure(2, &["plan", "--context", "4000"]);
    names(&message, &["--context", "got 4000"]);
    let bench = [
        "bench",
        "bootstrap",
        "--params",
        "insecure-n11",
        "--allow-insecure",
    ];
    let message = failure(2, &[&bench[..], &["--slots", "15"]].concat());
    names(&message, &["--slots", "at most 10", "got 15"]);
    let message = failure(2, &[&bench[..], &["--levels", "1,40"]].concat());
    names(&message, &["--levels", "at most 16", "got 40"]);
    let message = failure(2, &[&bench[..], &["--level", "40"]].concat());
    names(&message, &["--level", "at most 16", "got 40"]);
}

#[test]
fn devices_that_are_not_there() {
    for device in ["gpu", "cuda:", "cuda:x"] {
        let message = failure(2, &["bench", "kernels", "--device", device]);
        names(&message, &["--device", "cuda:N", device]);
    }
    // In a build without GPU support, and where so many GPUs are not.
    let message = failure(2, &["bench", "kernels", "--device", "cuda:99"]);
    names(&message, &["--device: "]);
    // No GPU was measured: nothing is predicted for one, and the way to measure is named.
    let message = failure(2, &["plan", "--device", "b200"]);
    names(&message, &["b200", "no costs", "--measure --device cuda"]);
    // Of one GPU there is an estimate, for one parameter set.
    let small = ["--params", "insecure-n11", "--allow-insecure"];
    let message = failure(2, &[&["plan", "--device", "h200"][..], &small].concat());
    names(&message, &["--device h200", "n16-128", "insecure-n11"]);
}

#[test]
fn too_little_memory_is_found_before_the_work() {
    let message = failure(1, &["generate", "--prompt", "x", "--memory-limit", "1GB"]);
    names(
        &message,
        &[
            "memory: the plan needs",
            "--memory-limit",
            "1.0 GB",
            "(1000000000 bytes)",
        ],
    );
    let output = harness::taciturn(&["plan", "--context", "16", "--memory-limit", "1000000000"]);
    assert_eq!(output.status.code(), Some(1));
    names(
        &harness::stderr(&output),
        &["memory: the plan needs", "--memory-limit"],
    );
    let message = failure(2, &["plan", "--memory-limit", "much"]);
    names(&message, &["--memory-limit", "expected a size as 12GB"]);
}

#[test]
fn texts_that_cannot_be_read() {
    let message = failure(1, &["eval", "--mode", "clear", "--text", "no/such.txt"]);
    names(
        &message,
        &["--text no/such.txt", "expected a readable UTF-8 file"],
    );
    let model = demonstration_copy();
    let text = model.path().join("short.txt");
    std::fs::write(&text, "x").expect("a text");
    let text = text.to_str().expect("a path in UTF-8");
    let message = failure(2, &["eval", "--mode", "clear", "--text", text]);
    names(&message, &["at least two tokens", "got 1"]);
    let heldout = models().join("heldout.txt");
    let message = failure(
        2,
        &[
            "eval",
            "--mode",
            "clear",
            "--positions",
            "10000000",
            "--text",
            heldout.to_str().expect("a path in UTF-8"),
        ],
    );
    names(
        &message,
        &[
            "--positions: expected at most",
            "heldout.txt",
            "got 10000000",
        ],
    );
    let message = failure(1, &["calibrate", "--model", path(&model), "--text", text]);
    names(&message, &["expected at least two windows", "got 1 tokens"]);
}

#[test]
fn products_that_the_parameters_have_no_room_for() {
    let product = |more: &[&str]| failure(2, &[&["bench", "product"][..], more].concat());
    names(
        &product(&["--width", "32768"]),
        &["--width", "2 to 16384", "32768"],
    );
    names(
        &product(&["--level", "0"]),
        &["--level", "expected 1 to", "got 0"],
    );
    names(
        &product(&["--level", "99"]),
        &["--level", "expected 1 to", "got 99"],
    );
    names(&product(&["--longest", "nan"]), &["--longest", "seconds"]);
}
