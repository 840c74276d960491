//! Broken, hostile and mismatched checkpoint folders are typed errors, never a panic and never a model.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use taciturn_models::random::RandomSpec;
use taciturn_models::{Checkpoint, ModelConfig, ModelError, TextTokenizer};
use tempfile::TempDir;

fn small() -> RandomSpec {
    RandomSpec {
        width: 8,
        heads: 2,
        layers: 1,
        hidden: 12,
        positions: 4,
        vocabulary: 257,
        ..RandomSpec::default()
    }
}

fn folder(spec: &RandomSpec) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    spec.write(folder.path()).unwrap();
    folder
}

fn weights(folder: &TempDir) -> (PathBuf, Vec<u8>) {
    let path = folder.path().join("model.safetensors");
    let bytes = fs::read(&path).unwrap();
    (path, bytes)
}

/// The file's header and body, to be changed and put together again.
fn split(bytes: &[u8]) -> (Value, Vec<u8>) {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    (
        serde_json::from_slice(&bytes[8..8 + length]).unwrap(),
        bytes[8 + length..].to_vec(),
    )
}

fn join(header: &Value, body: &[u8]) -> Vec<u8> {
    let text = header.to_string();
    [&(text.len() as u64).to_le_bytes(), text.as_bytes(), body].concat()
}

#[test]
fn truncated_and_corrupted_weights_are_errors() {
    let folder = folder(&small());
    let (path, bytes) = weights(&folder);
    for length in [0, 1, 7, 8, 9, 100, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&path, &bytes[..length]).unwrap();
        assert!(
            matches!(
                Checkpoint::load(folder.path()),
                Err(ModelError::Weights { .. })
            ),
            "{length} bytes"
        );
    }
    for length in [u64::MAX, 1 << 40, bytes.len() as u64, 2] {
        let mut bad = bytes.clone();
        bad[..8].copy_from_slice(&length.to_le_bytes());
        fs::write(&path, &bad).unwrap();
        assert!(
            matches!(
                Checkpoint::load(folder.path()),
                Err(ModelError::Weights { .. })
            ),
            "header of {length}"
        );
    }
    // Any byte of the header may be wrong: the result is an error or the same shapes, never a panic.
    for at in (8..700).step_by(3) {
        let mut bad = bytes.clone();
        bad[at] ^= 0x15;
        fs::write(&path, &bad).unwrap();
        let _ = Checkpoint::load(folder.path());
    }
}

#[test]
fn headers_that_lie_are_errors() {
    let folder = folder(&small());
    let (path, bytes) = weights(&folder);
    let name = "transformer.ln_f.bias";
    type Change = fn(&mut Value);
    let changes: [Change; 8] = [
        |t| t["dtype"] = json!("I32"),
        |t| t["dtype"] = json!("F64"),
        |t| t["shape"] = json!([9]),
        |t| t["shape"] = json!([2, 4]),
        |t| t["shape"] = json!([u64::MAX, u64::MAX]),
        |t| t["data_offsets"] = json!([0, 1u64 << 60]),
        |t| t["data_offsets"] = json!([8, 0]),
        |t| *t = json!("nothing"),
    ];
    for (k, change) in changes.iter().enumerate() {
        let (mut header, body) = split(&bytes);
        change(&mut header[name]);
        fs::write(&path, join(&header, &body)).unwrap();
        let error = Checkpoint::load(folder.path()).expect_err(&format!("change {k}"));
        assert!(
            matches!(
                error,
                ModelError::Weights { .. } | ModelError::Tensor { .. }
            ),
            "{k}: {error}"
        );
    }
}

#[test]
fn weights_that_are_not_finite_are_errors() {
    let folder = folder(&small());
    let (path, bytes) = weights(&folder);
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut bad = bytes.clone();
        let end = bad.len();
        bad[end - 4..].copy_from_slice(&value.to_le_bytes());
        fs::write(&path, &bad).unwrap();
        let error = Checkpoint::load(folder.path()).unwrap_err();
        assert!(error.to_string().contains("finite"), "{error}");
    }
}

/// Rewrites one field of config.json.
fn with_field(folder: &Path, field: &str, value: Value) -> Result<Checkpoint, ModelError> {
    let path = folder.join("config.json");
    let original = fs::read(&path).unwrap();
    let mut config: Value = serde_json::from_slice(&original).unwrap();
    match value.is_null() {
        true => _ = config.as_object_mut().unwrap().remove(field),
        false => config[field] = value,
    }
    fs::write(&path, config.to_string()).unwrap();
    let result = Checkpoint::load(folder);
    fs::write(&path, original).unwrap();
    result
}

#[test]
fn configurations_are_checked_field_by_field() {
    let folder = folder(&small());
    for (field, value) in [
        ("model_type", json!("mamba")),
        ("model_type", Value::Null),
        ("n_embd", json!(0)),
        ("n_embd", Value::Null),
        ("n_layer", json!(1_000_000)),
        ("n_head", json!(3)),
        ("n_head", json!(0)),
        ("n_inner", json!(0)),
        ("n_positions", Value::Null),
        ("vocab_size", json!(1u64 << 40)),
        ("activation_function", json!("relu")),
        ("layer_norm_epsilon", json!(0.0)),
        ("layer_norm_epsilon", json!(2.0)),
        ("bos_token_id", json!(257)),
        ("bos_token_id", Value::Null),
        ("eos_token_id", json!(1u64 << 33)),
        ("scale_attn_weights", json!(false)),
        ("scale_attn_by_inverse_layer_idx", json!(true)),
        ("add_cross_attention", json!(true)),
    ] {
        let result = with_field(folder.path(), field, value.clone());
        let Err(ModelError::Config { field: named, .. }) = &result else {
            panic!("{field} = {value}: {result:?}")
        };
        assert_eq!(*named, field);
    }
    for (field, value) in [
        ("n_embd", json!(-1)),
        ("n_embd", json!(8.5)),
        ("n_layer", json!("1")),
        ("bos_token_id", json!([0])),
    ] {
        assert!(
            matches!(
                with_field(folder.path(), field, value),
                Err(ModelError::Json { .. })
            ),
            "{field}"
        );
    }
    for text in ["", "[]", "{", "\u{0}", "{\"n_embd\": 1e999}"] {
        assert!(
            ModelConfig::parse(text.as_bytes(), Path::new("config.json")).is_err(),
            "{text:?}"
        );
    }
    assert!(with_field(folder.path(), "n_inner", json!(12)).is_ok());
}

#[test]
fn a_configuration_for_other_weights_is_an_error() {
    let folder = folder(&RandomSpec {
        layers: 2,
        ..small()
    });
    for (field, value) in [
        ("n_layer", json!(3)),
        ("n_layer", json!(1)),
        ("n_inner", Value::Null),
        ("n_embd", json!(16)),
        ("vocab_size", json!(256)),
        ("n_positions", json!(5)),
        ("tie_word_embeddings", json!(false)),
    ] {
        let result = with_field(folder.path(), field, value.clone());
        assert!(
            matches!(result, Err(ModelError::Tensor { .. })),
            "{field} = {value}: {result:?}"
        );
    }
}

#[test]
fn a_tied_head_may_be_stored_twice_but_not_differ() {
    let folder = folder(&RandomSpec {
        tied_head: false,
        ..small()
    });
    let result = with_field(folder.path(), "tie_word_embeddings", json!(true));
    assert!(matches!(result, Err(ModelError::Tensor { .. })));

    let (path, bytes) = weights(&folder);
    let (mut header, body) = split(&bytes);
    header["lm_head.weight"]["data_offsets"].take();
    let offsets = header["transformer.wte.weight"]["data_offsets"].clone();
    let (from, to) = (
        offsets[0].as_u64().unwrap() as usize,
        offsets[1].as_u64().unwrap() as usize,
    );
    // Puts a copy of the embedding behind everything else and drops the head's own values by rebuilding the body.
    let mut rebuilt = Vec::new();
    let mut entries: Vec<(String, Value)> =
        header.as_object().unwrap().clone().into_iter().collect();
    for (name, entry) in &mut entries {
        let source = if name == "lm_head.weight" {
            (from, to)
        } else {
            let old = &entry["data_offsets"];
            (
                old[0].as_u64().unwrap() as usize,
                old[1].as_u64().unwrap() as usize,
            )
        };
        let start = rebuilt.len();
        rebuilt.extend_from_slice(&body[source.0..source.1]);
        entry["data_offsets"] = json!([start, rebuilt.len()]);
    }
    fs::write(
        &path,
        join(&Value::Object(entries.into_iter().collect()), &rebuilt),
    )
    .unwrap();
    let checkpoint = with_field(folder.path(), "tie_word_embeddings", json!(true)).unwrap();
    assert!(checkpoint.weights.head.is_none());
}

#[test]
fn old_mask_buffers_are_ignored_and_other_extras_are_not() {
    let folder = folder(&small());
    let (path, bytes) = weights(&folder);
    for (name, accepted) in [
        ("transformer.h.0.attn.bias", true),
        ("transformer.h.0.attn.masked_bias", true),
        ("extra", false),
    ] {
        let (mut header, mut body) = split(&bytes);
        header[name] =
            json!({"dtype": "U8", "shape": [4], "data_offsets": [body.len(), body.len() + 4]});
        body.extend([1; 4]);
        fs::write(&path, join(&header, &body)).unwrap();
        assert_eq!(Checkpoint::load(folder.path()).is_ok(), accepted, "{name}");
    }
}

#[test]
fn shard_indices_open_no_file_outside_the_folder() {
    let folder = folder(&small());
    let (path, bytes) = weights(&folder);
    let names: Vec<String> = split(&bytes)
        .0
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    let index = |file: &str, names: &[String]| {
        let map: serde_json::Map<String, Value> =
            names.iter().map(|n| (n.clone(), json!(file))).collect();
        fs::write(
            folder.path().join("model.safetensors.index.json"),
            json!({"weight_map": map}).to_string(),
        )
        .unwrap();
        Checkpoint::load(folder.path())
    };
    fs::rename(&path, folder.path().join("part.safetensors")).unwrap();
    for file in [
        "../part.safetensors",
        "/etc/passwd",
        "a/../part.safetensors",
        "..\\part.safetensors",
        "config.json",
    ] {
        assert!(
            matches!(
                index(file, &names),
                Err(ModelError::Config {
                    field: "weight_map",
                    ..
                })
            ),
            "{file}"
        );
    }
    assert!(matches!(
        index("absent.safetensors", &names),
        Err(ModelError::Io { .. })
    ));
    assert!(matches!(
        index("part.safetensors", &names[1..]),
        Err(ModelError::Weights { .. })
    ));
    let more: Vec<String> = names.iter().cloned().chain(["another".into()]).collect();
    assert!(matches!(
        index("part.safetensors", &more),
        Err(ModelError::Weights { .. })
    ));
    assert!(index("part.safetensors", &names).is_ok());
}

#[test]
fn missing_files_are_named() {
    let folder = folder(&small());
    for file in ["model.safetensors", "config.json"] {
        fs::remove_file(folder.path().join(file)).unwrap();
        let error = Checkpoint::load(folder.path()).unwrap_err();
        assert!(
            matches!(error, ModelError::Io { .. }) && error.to_string().contains(file),
            "{error}"
        );
    }
}

#[test]
fn a_tokenizer_with_larger_ids_than_the_model_is_an_error() {
    let folder = folder(&small());
    let config = ModelConfig::load(&folder.path().join("config.json")).unwrap();
    assert!(TextTokenizer::load(folder.path(), &config).is_ok());
    let smaller = ModelConfig {
        vocabulary: 256,
        ..config.clone()
    };
    assert!(matches!(
        TextTokenizer::load(folder.path(), &smaller),
        Err(ModelError::Tokenizer { .. })
    ));
    for text in ["", "{}", "{\"version\": \"1.0\"}", "\u{0}\u{0}"] {
        fs::write(folder.path().join("tokenizer.json"), text).unwrap();
        assert!(
            matches!(
                TextTokenizer::load(folder.path(), &config),
                Err(ModelError::Tokenizer { .. })
            ),
            "{text:?}"
        );
    }
}
