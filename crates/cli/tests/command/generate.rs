//! Generation through the real binary: encrypted and clear choose alike.

use crate::harness::{self, SMALL, json, models, path, random_model, taciturn};
use serde_json::Value;
use taciturn_models::random::{RandomFamily, RandomSpec};

fn numbers(report: &Value, field: &str) -> Vec<u64> {
    let values = report[field].as_array().expect("an array");
    values.iter().map(|v| v.as_u64().expect("an id")).collect()
}

/// Every token is the clear model's, unless the clear model itself was undecided within four times the error.
fn assert_close(report: &Value, kl: f64) {
    let steps = report["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), numbers(report, "tokens").len());
    for step in steps {
        let number = |field: &str| step[field].as_f64().expect("a number");
        if number("compare_margin") > 4.0 * number("max_abs_logit_error") {
            assert_eq!(step["token"], step["reference_token"], "{step}");
        }
        assert!(number("kl") < kl, "{step}");
        assert!(number("seconds") > 0.0 && number("bootstraps") > 0.0);
    }
}

#[test]
fn the_demonstration_model_generates_the_clear_models_tokens() {
    let arguments = [
        &[
            "generate",
            "--prompt",
            "def f(",
            "--max-new-tokens",
            "3",
            "--pass-size",
            "off",
            "--compare",
            "--json",
        ][..],
        &SMALL,
    ]
    .concat();
    let report = json(&arguments);
    assert_close(&report, 1e-3);
    assert_eq!(report["params"]["name"], "insecure-n13");
    assert_eq!(report["params"]["log_n"], 13);
    assert_eq!(report["params"]["security_bits"], 0);
    assert!(report["params"]["log_qp"].as_f64().expect("bits") > 1000.0);
    let prompt = numbers(&report, "prompt_tokens");
    assert_eq!(prompt[0], 0, "the beginning-of-text token");
    assert_eq!(
        report["prompt_steps"].as_array().expect("seconds").len(),
        prompt.len() - 2
    );
    assert!(!report["text"].as_str().expect("text").is_empty());
    let seconds = |field: &str| report[field].as_f64().expect("seconds");
    let parts = seconds("key_seconds") + seconds("encode_seconds");
    assert!(parts > 0.0 && parts < seconds("setup_seconds"));
    assert!(seconds("setup_seconds") < seconds("total_seconds"));
    let bytes = |field: &str| report[field].as_u64().expect("bytes");
    let (peak, predicted) = (bytes("peak_rss_bytes"), bytes("predicted_memory_bytes"));
    assert!(peak > 0 && peak < predicted, "{peak} of {predicted}");
    assert!(report["seed"].is_u64(), "a random seed is reported");
}

/// A public text and a prompt in passes: fewer steps, and what follows is as after one token at a time. Sizes that do not fit are refused.
#[test]
fn prompts_are_read_in_passes() {
    let arguments = |size: &'static str| {
        [
            &[
                "generate",
                "--public-prefix",
                "# text\n",
                "--prompt",
                "def read(path):\n    with",
                "--max-new-tokens",
                "2",
                "--compare",
                "--json",
                "--pass-size",
                size,
            ][..],
            &SMALL,
        ]
        .concat()
    };
    let report = json(&arguments("4"));
    assert_close(&report, 1e-3);
    let prompt = numbers(&report, "prompt_tokens").len();
    let steps = report["prompt_steps"].as_array().expect("seconds").len();
    assert_eq!(report["passes"]["tokens"], 4);
    assert!(
        steps < (prompt - 3) / 2,
        "{steps} passes for {prompt} tokens"
    );
    let auto = json(&arguments("auto"));
    assert_close(&auto, 1e-3);
    assert_eq!(report["tokens"], auto["tokens"]);
    assert!(auto["passes"]["tokens"].as_u64() >= Some(2), "{auto}");
    let refused = harness::failure(2, &arguments("3"));
    harness::names(&refused, &["--pass-size", "got 3"]);
    let long = "def ".repeat(200);
    let refused = harness::failure(2, &["generate", "--public-prefix", &long, "--prompt", "x"]);
    harness::names(&refused, &["--public-prefix", "expected at most"]);
}

/// Rotary embeddings differ from token to token, and queries share keys.
#[test]
fn prompts_of_the_llama_family_in_passes() {
    let spec = RandomSpec {
        family: RandomFamily::Llama,
        heads: 4,
        queries: 2,
        layers: 1,
        hidden: 176,
        tied_head: false,
        activation: "silu",
        ..RandomSpec::default()
    };
    let model = random_model(&spec, 12);
    let arguments = [
        &["generate", "--model", path(&model), "--prompt", "abcdef"][..],
        &["--max-new-tokens", "2", "--pass-size", "4"],
        &["--compare", "--json"],
        &SMALL,
    ]
    .concat();
    assert_close(&json(&arguments), 1e-2);
}

#[test]
fn text_goes_to_stdout_and_talk_to_stderr() {
    let arguments = [
        &[
            "generate",
            "--prompt",
            "x",
            "--max-new-tokens",
            "1",
            "--temperature",
            "0.8",
            "--seed",
            "3",
        ][..],
        &SMALL,
    ]
    .concat();
    let output = taciturn(&arguments);
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.ends_with('\n') && text.len() > 1, "{text:?}");
    let talk = harness::stderr(&output);
    harness::names(
        &talk,
        &[
            "warning: insecure-n13 is insecure",
            "setup",
            "keys",
            "encoding of weights",
            "prompt",
            "new tokens",
            "1 token in",
            "bootstraps each",
            "total",
            "seed 3",
        ],
    );
}

#[test]
fn a_vocabulary_larger_than_the_slots() {
    // 1,024 slots; three heads of 32 channels, three is not a power of two.
    let spec = RandomSpec {
        vocabulary: 2100,
        layers: 1,
        ..RandomSpec::default()
    };
    let model = random_model(&spec, 12);
    let arguments = [
        &[
            "generate",
            "--model",
            path(&model),
            "--prompt",
            "ab",
            "--max-new-tokens",
            "2",
        ][..],
        &[
            "--compare",
            "--json",
            "--params",
            "insecure-n11",
            "--allow-insecure",
        ],
    ]
    .concat();
    assert_close(&json(&arguments), 1e-2);
}

#[test]
fn other_shapes_and_scales() {
    for (seed, residual_scale, bias, tied_head) in
        [(2, 30.0, 0.1, false), (3, 1.0 / 30.0, 1.0, true)]
    {
        let spec = RandomSpec {
            seed,
            residual_scale,
            bias,
            tied_head,
            activation: "gelu",
            ..RandomSpec::default()
        };
        let model = random_model(&spec, 12);
        let arguments = [
            &[
                "generate",
                "--model",
                path(&model),
                "--prompt",
                "q",
                "--max-new-tokens",
                "2",
            ][..],
            &["--compare", "--json"],
            &SMALL,
        ]
        .concat();
        assert_close(&json(&arguments), 1e-2);
    }
}

/// Queries that share keys, six heads being padded to eight; biases, and norms of queries and keys.
#[test]
fn shapes_of_the_llama_family() {
    for (family, heads, queries) in [
        (RandomFamily::Llama, 6, 3),
        (RandomFamily::Qwen2, 6, 2),
        (RandomFamily::Qwen3, 2, 2),
    ] {
        let spec = RandomSpec {
            family,
            heads,
            queries,
            layers: 1,
            hidden: 176,
            tied_head: false,
            activation: "silu",
            ..RandomSpec::default()
        };
        let model = random_model(&spec, 12);
        let arguments = [
            &[
                "generate",
                "--model",
                path(&model),
                "--prompt",
                "ab",
                "--max-new-tokens",
                "1",
            ][..],
            &["--compare", "--json"],
            &SMALL,
        ]
        .concat();
        assert_close(&json(&arguments), 1e-2);
    }
}

#[test]
fn one_token_at_128_bit_security() {
    let report = json(&[
        "generate",
        "--prompt",
        "def",
        "--max-new-tokens",
        "1",
        "--compare",
        "--json",
    ]);
    assert_eq!(report["params"]["log_n"], 16);
    assert_eq!(report["params"]["security_bits"], 128);
    assert_close(&report, 1e-3);
}

#[test]
fn evaluation_in_all_modes() {
    let text = models().join("heldout.txt");
    let text = text.to_str().expect("a path in UTF-8");
    let clear = json(&[
        "eval",
        "--mode",
        "clear",
        "--text",
        text,
        "--positions",
        "100",
        "--json",
    ]);
    assert_eq!(clear["positions"], 100);
    assert_eq!(clear["perplexity"], clear["perplexity_clear"]);
    assert_eq!(clear["kl_max"], 0.0);
    assert_eq!(clear["top1_agreement"], 1.0);
    for (mode, positions) in [("simulated", "100"), ("encrypted", "2")] {
        let arguments = [
            &[
                "eval",
                "--mode",
                mode,
                "--text",
                text,
                "--positions",
                positions,
                "--json",
            ][..],
            &SMALL,
        ]
        .concat();
        let report = json(&arguments);
        assert_eq!(report["positions"].as_u64(), positions.parse().ok());
        let number = |field: &str| report[field].as_f64().expect("a number");
        assert!(
            number("kl_mean") <= number("kl_max") && number("kl_max") < 5e-3,
            "{report}"
        );
        assert!(
            (number("perplexity") / number("perplexity_clear") - 1.0).abs() < 0.01,
            "{report}"
        );
        assert!(number("top1_agreement") > 0.9, "{report}");
        assert_eq!(report["decided"], report["decided_agreed"], "{report}");
        let listed = report["listed"].as_array().expect("choices").len() as f64;
        assert_eq!(number("decided") + listed, number("positions"), "{report}");
        let simulation = &report["simulation"];
        assert_eq!(simulation.is_object(), mode == "encrypted");
        if let Some(difference) = simulation["max_abs_difference"].as_f64() {
            let noise = simulation["max_abs_noise"].as_f64().expect("a number");
            assert!(difference < 4.0 * noise, "{report}");
        }
    }
}
