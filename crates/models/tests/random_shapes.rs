//! Random checkpoints of every shape: clear and prepared agree, and the residual stream's scale does not show.

mod common;

use common::PreparedRunner;
use taciturn_models::random::RandomSpec;
use taciturn_models::{Checkpoint, ClearModel, Prepared, TextTokenizer};

fn load(spec: &RandomSpec) -> Checkpoint {
    let folder = tempfile::tempdir().unwrap();
    spec.write(folder.path()).unwrap();
    Checkpoint::load(folder.path()).unwrap()
}

const TOKENS: [u32; 6] = [0, 17, 250, 3, 3, 99];

fn clear_logits(checkpoint: &Checkpoint) -> Vec<Vec<f64>> {
    let model = ClearModel::new(checkpoint);
    let mut cache = model.cache();
    TOKENS
        .iter()
        .map(|&token| model.step(&mut cache, token).unwrap())
        .collect()
}

#[test]
fn clear_and_prepared_agree_on_every_shape() {
    for (width, heads, layers, tied_head, bias, activation) in [
        (96, 3, 1, true, 0.0, "gelu_new"),
        (96, 3, 2, false, 1.0, "gelu"),
        (192, 6, 3, true, 0.1, "gelu_new"),
        (192, 1, 1, false, 0.01, "gelu"),
    ] {
        let spec = RandomSpec {
            width,
            heads,
            layers,
            tied_head,
            bias,
            activation,
            hidden: 3 * width,
            ..RandomSpec::default()
        };
        let checkpoint = load(&spec);
        let prepared = Prepared::new(&checkpoint);
        let mut runner = PreparedRunner::new(&prepared, &ClearModel::new(&checkpoint).cache());
        for (token, expected) in TOKENS.iter().zip(clear_logits(&checkpoint)) {
            common::assert_close(&runner.step(*token), &expected, 2e-5, &format!("{spec:?}"));
        }
    }
}

#[test]
fn the_scale_of_the_residual_stream_does_not_show() {
    for tied_head in [true, false] {
        let plain = RandomSpec {
            tied_head,
            ..RandomSpec::default()
        };
        let expected = clear_logits(&load(&plain));
        for residual_scale in [30.0, 1.0 / 30.0] {
            let scaled = clear_logits(&load(&RandomSpec {
                residual_scale,
                ..plain.clone()
            }));
            for (got, expected) in scaled.iter().zip(&expected) {
                common::assert_close(
                    got,
                    expected,
                    1e-5,
                    &format!("scale {residual_scale}, tied {tied_head}"),
                );
            }
        }
    }
}

#[test]
fn seeds_decide_the_weights_and_the_hash() {
    let spec = RandomSpec {
        layers: 1,
        ..RandomSpec::default()
    };
    let (a, b) = (load(&spec), load(&spec));
    assert_eq!((&a.hash, &a.weights), (&b.hash, &b.weights));
    assert_ne!(a.hash, load(&RandomSpec { seed: 2, ..spec }).hash);
}

#[test]
fn a_known_prefix_enters_the_cache_in_the_clear() {
    let checkpoint = load(&RandomSpec::default());
    let prepared = Prepared::new(&checkpoint);
    let model = ClearModel::new(&checkpoint);
    let mut cache = model.cache();
    model.step(&mut cache, TOKENS[0]).unwrap();
    let mut runner = PreparedRunner::new(&prepared, &cache);
    for &token in &TOKENS[1..] {
        let expected = model.step(&mut cache, token).unwrap();
        common::assert_close(&runner.step(token), &expected, 2e-5, "after a prefix");
    }
}

#[test]
fn the_byte_tokenizer_round_trips() {
    let folder = tempfile::tempdir().unwrap();
    RandomSpec::default().write(folder.path()).unwrap();
    let checkpoint = Checkpoint::load(folder.path()).unwrap();
    let tokenizer = TextTokenizer::load(folder.path(), &checkpoint.config).unwrap();
    let text = "def f(x):\n\treturn 'ä€' # \u{1}";
    let ids = tokenizer.encode(text).unwrap();
    assert_eq!(ids.len(), text.len());
    assert!(
        ids.iter()
            .zip(text.bytes())
            .all(|(&id, byte)| id == u32::from(byte) + 1)
    );
    assert_eq!(tokenizer.decode(&ids).unwrap(), text);
}
