//! The real binary, run on folders of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use taciturn_models::random::RandomSpec;
use tempfile::TempDir;

/// A parameter set for tests, small enough for seconds.
pub const SMALL: [&str; 3] = ["--params", "insecure-n13", "--allow-insecure"];

/// The repository's models.
pub fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models")
}

/// Runs `taciturn` with these arguments, away from the user's cache.
pub fn taciturn(arguments: &[&str]) -> Output {
    let cache = TempDir::new().expect("a temporary folder");
    taciturn_with_cache(cache.path(), arguments)
}

/// Runs `taciturn` with these arguments on a cache folder.
pub fn taciturn_with_cache(cache: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_taciturn"))
        .args(arguments)
        .env("XDG_CACHE_HOME", cache)
        .output()
        .expect("the binary runs")
}

/// Its standard error.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The one JSON object of a run that succeeds.
pub fn json(arguments: &[&str]) -> Value {
    let output = taciturn(arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        stderr(&output)
    );
    serde_json::from_slice(&output.stdout).expect("one JSON object on stdout")
}

/// A run that fails with this code, without a panic; its message.
pub fn failure(code: i32, arguments: &[&str]) -> String {
    let output = taciturn(arguments);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
    assert!(!message.contains("panicked"), "{arguments:?}: {message}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed something");
    message
}

/// Asserts that a message names all of these.
pub fn names(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "no `{part}` in: {message}");
    }
}

/// The demonstration model in a folder that a test may change.
pub fn demonstration_copy() -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    let source = models().join("gpt2-code-tiny");
    for file in std::fs::read_dir(source).expect("the demonstration model") {
        let file = file.expect("an entry");
        std::fs::copy(file.path(), folder.path().join(file.file_name())).expect("a copy");
    }
    folder
}

/// A random model, calibrated by the command on `text`.
pub fn random_model(spec: &RandomSpec, context: usize) -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    spec.write(folder.path()).expect("a random checkpoint");
    let text = folder.path().join("sample.txt");
    std::fs::write(&text, sample_text()).expect("a sample text");
    let output = taciturn(&[
        "calibrate",
        "--model",
        path(&folder),
        "--text",
        text.to_str().expect("a path in UTF-8"),
        "--context",
        &context.to_string(),
        "--margin",
        "0.4",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    folder
}

/// A folder's path as an argument.
pub fn path(folder: &TempDir) -> &str {
    folder.path().to_str().expect("a path in UTF-8")
}

/// Text with many different bytes.
fn sample_text() -> String {
    let mut x = 1u64;
    (0..6000)
        .map(|_| {
            x = x
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            char::from(b' ' + (x >> 33) as u8 % 95)
        })
        .collect()
}
