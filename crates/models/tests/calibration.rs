//! Calibration tables: complete, tied to their weights, wide enough, and shifts that change no logit.

mod common;

use common::PreparedRunner;
use taciturn_models::random::RandomSpec;
use taciturn_models::{
    CALIBRATION_FILE, CalibrationOptions, Checkpoint, ClearModel, ModelError, Prepared, beta_name,
    calibrate, denominator_name, key_shift_name, load_calibration, overshoot, save_calibration,
};

const OPTIONS: CalibrationOptions = CalibrationOptions {
    context: 16,
    windows: 12,
    margin: 0.2,
    squarings: 2,
};

fn text(length: usize, seed: u64) -> Vec<u32> {
    (0..length as u64)
        .map(|k| ((k * k * 31 + k * 7 + seed * 1013) % 260) as u32)
        .collect()
}

#[test]
fn a_table_covers_every_site_and_round_trips() {
    let folder = tempfile::tempdir().unwrap();
    RandomSpec::default().write(folder.path()).unwrap();
    let checkpoint = Checkpoint::load(folder.path()).unwrap();
    let sample = text(12 * 15, 1);
    let table = calibrate(&checkpoint, &sample, &OPTIONS).unwrap();
    for layer in 0..2 {
        for part in [
            "norm1.variance",
            "norm2.variance",
            "hidden",
            "residual_middle",
            "residual",
        ] {
            assert_eq!(
                table
                    .site(&format!("layer{layer}.{part}"))
                    .unwrap()
                    .min
                    .len(),
                1,
                "{part}"
            );
        }
        for part in [
            "queries",
            "keys",
            "values",
            "scores",
            "exponents",
            "numerator",
            "attention",
        ] {
            assert_eq!(
                table
                    .site(&format!("layer{layer}.{part}"))
                    .unwrap()
                    .min
                    .len(),
                3,
                "{part}"
            );
        }
        for round in 0..=2 {
            let range = table.site(&denominator_name(layer, round)).unwrap();
            assert!(range.low() > 0.0 && range.samples == 12 * 15);
        }
        assert!((table.site(&denominator_name(layer, 0)).unwrap().high() - 1.0).abs() < 1e-6);
        table.constant(&key_shift_name(layer), 96).unwrap();
        table.constant(&beta_name(layer), 3 * 16).unwrap();
    }
    for part in ["embedding", "final.variance", "logits"] {
        table.site(part).unwrap();
    }
    assert_eq!(
        overshoot(&checkpoint, &sample, &table).unwrap().len(),
        0,
        "the sample itself lies inside"
    );

    assert!(matches!(
        load_calibration(folder.path(), &checkpoint),
        Err(ModelError::Io { .. })
    ));
    save_calibration(folder.path(), &table).unwrap();
    assert!(load_calibration(folder.path(), &checkpoint).unwrap() == table);
    let other = Checkpoint {
        hash: "other".into(),
        ..checkpoint.clone()
    };
    assert!(matches!(
        load_calibration(folder.path(), &other),
        Err(ModelError::Table(_))
    ));
    std::fs::write(folder.path().join(CALIBRATION_FILE), "{\"version\": 1}").unwrap();
    assert!(matches!(
        load_calibration(folder.path(), &checkpoint),
        Err(ModelError::Json { .. })
    ));
}

#[test]
fn shifted_keys_change_no_logit() {
    let folder = tempfile::tempdir().unwrap();
    RandomSpec {
        bias: 0.5,
        ..RandomSpec::default()
    }
    .write(folder.path())
    .unwrap();
    let checkpoint = Checkpoint::load(folder.path()).unwrap();
    let table = calibrate(&checkpoint, &text(400, 2), &OPTIONS).unwrap();
    let mut prepared = Prepared::new(&checkpoint);
    prepared.shift_keys(&table).unwrap();
    assert_ne!(
        prepared.blocks[0].key_shift,
        Prepared::new(&checkpoint).blocks[0].key_shift
    );

    let model = ClearModel::new(&checkpoint);
    let mut cache = model.cache();
    model.step(&mut cache, 0).unwrap();
    let mut runner = PreparedRunner::new(&prepared, &cache);
    for token in text(10, 3) {
        let expected = model.step(&mut cache, token).unwrap();
        common::assert_close(&runner.step(token), &expected, 3e-5, "shifted keys");
    }
}

#[test]
fn other_text_leaves_a_table_without_margin() {
    let folder = tempfile::tempdir().unwrap();
    RandomSpec {
        layers: 1,
        ..RandomSpec::default()
    }
    .write(folder.path())
    .unwrap();
    let checkpoint = Checkpoint::load(folder.path()).unwrap();
    let table = calibrate(
        &checkpoint,
        &text(60, 4),
        &CalibrationOptions {
            margin: 0.0,
            ..OPTIONS
        },
    )
    .unwrap();
    let outside = overshoot(&checkpoint, &text(600, 5), &table).unwrap();
    assert!(
        outside.contains_key("layer0.hidden") && outside.values().all(|share| *share > 0.0),
        "{outside:?}"
    );
}

#[test]
fn unusable_requests_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    RandomSpec {
        layers: 1,
        ..RandomSpec::default()
    }
    .write(folder.path())
    .unwrap();
    let checkpoint = Checkpoint::load(folder.path()).unwrap();
    let sample = text(100, 6);
    for options in [
        CalibrationOptions {
            context: 1,
            ..OPTIONS
        },
        CalibrationOptions {
            context: 65,
            ..OPTIONS
        },
        CalibrationOptions {
            context: 64,
            ..OPTIONS
        },
        CalibrationOptions {
            windows: 1,
            ..OPTIONS
        },
        CalibrationOptions {
            margin: f64::NAN,
            ..OPTIONS
        },
        CalibrationOptions {
            squarings: 9,
            ..OPTIONS
        },
    ] {
        let result = calibrate(&checkpoint, &sample, &options);
        assert!(
            matches!(result, Err(ModelError::Calibration { .. })),
            "{options:?}: {result:?}"
        );
    }
    assert!(matches!(
        calibrate(&checkpoint, &[9999; 100], &OPTIONS),
        Err(ModelError::Token { .. })
    ));
}
