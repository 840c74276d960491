//! The fields that other tools rely on.

use crate::harness::{self, SMALL, failure, json, models, names, taciturn};
use serde_json::Value;

fn positive(report: &Value, fields: &[&str]) {
    for field in fields {
        let value = report[field].as_f64();
        assert!(value.is_some_and(|v| v > 0.0), "{field} in {report}");
    }
}

#[test]
fn a_plan_adds_up() {
    let report = json(&[&["plan", "--context", "16", "--json"][..], &SMALL].concat());
    positive(
        &report,
        &[
            "bootstraps",
            "seconds",
            "setup_seconds",
            "keys",
            "key_bytes",
        ],
    );
    let bytes = |value: &Value| value.as_u64().expect("bytes");
    // As sent, a key is half of what it is in memory, and a seed.
    let (sent, resident) = (
        bytes(&report["key_bytes"]),
        bytes(&report["memory_bytes"]["keys"]),
    );
    assert!(
        resident < 2 * sent && 2 * sent < resident + (1 << 20),
        "{sent} {resident}"
    );
    positive(
        &report["memory_bytes"],
        &["weights", "keys", "cache", "scratch", "peak"],
    );
    let modules = report["modules"].as_array().expect("modules");
    let sum = |field: &str| {
        modules
            .iter()
            .map(|m| m[field].as_f64().expect("a number"))
            .sum::<f64>()
    };
    assert_eq!(
        sum("bootstraps"),
        report["bootstraps"].as_f64().expect("a number")
    );
    assert!((sum("seconds") - report["seconds"].as_f64().expect("seconds")).abs() < 1e-3);
    assert!(
        modules
            .iter()
            .any(|module| module["name"] == "layer0.attention")
    );
    assert!(
        modules
            .iter()
            .all(|m| m["level_in"].is_u64() && m["level_out"].is_u64())
    );
}

#[test]
fn placements_are_compared() {
    let report = json(
        &[
            &["plan", "--context", "16", "--compare", "--json"][..],
            &SMALL,
        ]
        .concat(),
    );
    assert_eq!(report["placement"], "optimal");
    let compared = report["compare"].as_array().expect("a list");
    let names: Vec<_> = (compared.iter())
        .map(|c| c["strategy"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["optimal", "cachemir", "orion", "nothing-left"]);
    let seconds = |compared: &Value| compared["seconds"].as_f64();
    let best = seconds(&compared[0]).expect("a plan");
    assert_eq!(report["seconds"].as_f64(), Some(best));
    for other in compared {
        match seconds(other) {
            Some(seconds) => assert!(seconds >= best && other["bootstraps"].is_u64(), "{other}"),
            None => assert!(other["error"].is_string(), "{other}"),
        }
    }
    let other = json(
        &[
            &[
                "plan",
                "--context",
                "16",
                "--placement",
                "nothing-left",
                "--json",
            ][..],
            &SMALL,
        ]
        .concat(),
    );
    assert_eq!(other["placement"], "nothing-left");
    assert_eq!(other["seconds"], compared[3]["seconds"]);
}

#[test]
fn a_plan_of_the_built_in_costs_is_always_the_same() {
    let home = tempfile::TempDir::new().expect("a temporary folder");
    let hash = || {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_taciturn"))
            .args(["plan", "--context", "16", "--json", "--threads", "1"])
            .env("XDG_CACHE_HOME", home.path())
            .output()
            .expect("the binary runs");
        let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        assert_eq!(report["costs"], "built-in");
        report["hash"].clone()
    };
    assert_eq!(hash(), hash());
}

#[test]
fn primitives_and_bootstraps_are_measured() {
    let small = [
        "--params",
        "insecure-n11",
        "--allow-insecure",
        "--json",
        "--threads",
        "1",
    ];
    let report = json(&[&["bench", "primitives"][..], &small].concat());
    positive(
        &report,
        &[
            "threads",
            "limbs_q",
            "limbs_p",
            "log_qp",
            "ntt_ms",
            "intt_ms",
            "ntt_limbs",
            "ntt_all_ms",
            "intt_all_ms",
            "level_bits",
        ],
    );
    assert_eq!(report["threads"], 1);
    assert!(report["backend"].is_string());
    let levels = report["levels"].as_array().expect("levels");
    let of: Vec<u64> = levels.iter().filter_map(|l| l["level"].as_u64()).collect();
    // The last row is of all limbs, those of a bootstrap included.
    assert_eq!(of, [1, 4, 7, 10, 13, 16, 27]);
    for level in levels {
        positive(
            level,
            &[
                "digits",
                "rotate_ms",
                "product_rescale_ms",
                "plain_product_ms",
                "add_ms",
                "rescale_ms",
                "encode_ms",
            ],
        );
        // What one more of the rotations takes that share a decomposition: a difference, which noise can take to zero.
        let hoisted = level["hoisted_rotate_ms"].as_f64();
        assert!(hoisted.is_some_and(|ms| ms >= 0.0), "{level}");
    }
    let report = json(
        &[
            &[
                "bench",
                "bootstrap",
                "--slots",
                "4",
                "--runs",
                "1",
                "--levels",
                "1,4",
            ][..],
            &small,
        ]
        .concat(),
    );
    positive(
        &report,
        &[
            "bootstrap_ms",
            "output_level",
            "bits_min",
            "bits_mean",
            "key_bytes",
            "log_qp",
            "peak_rss_bytes",
        ],
    );
    assert_eq!(report["log_slots"], 4);
    let levels = report["levels"].as_array().expect("levels");
    let of: Vec<u64> = levels.iter().filter_map(|l| l["level"].as_u64()).collect();
    assert_eq!(of, [1, 4]);
    levels
        .iter()
        .for_each(|level| positive(level, &["bootstrap_ms"]));
    assert!(report["plain_ms"].is_null() && report["limits"].is_null());
    assert!(report["bits_mean"].as_f64() >= Some(16.0), "{report}");
}

#[test]
fn products_are_counted_and_measured() {
    let report = json(&[
        "bench",
        "product",
        "--params",
        "insecure-n11",
        "--allow-insecure",
        "--json",
        "--width",
        "48,128",
        "--level",
        "1,4",
        "--measure",
        "--runs",
        "1",
    ]);
    let rows = report["products"].as_array().expect("rows");
    assert_eq!(rows.len(), 2 * 2 * 8);
    for row in rows {
        positive(
            row,
            &[
                "width",
                "padded_width",
                "depth",
                "rotations",
                "plain_products",
            ],
        );
        let runs = row["layout"] != "nexus" && row["level"].as_u64() >= row["depth"].as_u64();
        assert_eq!(row["measured_ms"].is_f64(), runs, "{row}");
        assert_eq!(row["not_measured"].is_null(), runs, "{row}");
        if runs {
            assert!(row["worst_error"].as_f64() < Some(1e-4), "{row}");
            positive(row, &["predicted_ms", "rotation_keys", "key_bytes"]);
        }
    }
    let output = taciturn(&["bench", "product", "--width", "768", "--level", "4"]);
    names(
        &String::from_utf8_lossy(&output.stdout),
        &["padded to 1024", "interleaved", "nexus", "predicted s"],
    );
}

#[test]
fn approximations_are_compared() {
    let report = json(&["bench", "approximation", "--bits", "12", "--json"]);
    let rows = report["approximations"].as_array().expect("rows");
    assert_eq!(rows.len(), 22);
    for row in rows {
        assert!(row["name"].is_string() && row["source"].is_string());
        positive(row, &["worst_error_grid", "worst_error_random"]);
        // A constant takes nothing.
        if row["name"] != "constant" {
            positive(row, &["depth", "products"]);
        }
        let predicted = row["predicted_ms"].as_f64();
        assert_eq!(predicted.is_some(), row["reason"].is_null(), "{row}");
        assert!(predicted.is_none_or(|ms| ms > 0.0), "{row}");
    }
    let site = ["bench", "approximation", "--site", "layer1.norm2.variance"];
    let report = json(&[&site[..], &["--json"]].concat());
    let rows = report["approximations"].as_array().expect("rows");
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row["function"] == "1/sqrt(x)"));
    names(
        &String::from_utf8_lossy(&taciturn(&site).stdout),
        &["minimax-newton", "EncryptedLLM", "predicted ms"],
    );
    names(
        &failure(2, &["bench", "approximation", "--site", "layer0.keys"]),
        &["--site", "layer0.exponents", "layer0.keys"],
    );
    names(
        &failure(2, &["bench", "approximation", "--bits", "nan"]),
        &["--bits", "positive"],
    );
}

#[test]
fn the_roofline_has_work_and_shares_of_the_limits() {
    let folder = tempfile::tempdir().expect("a folder");
    let picture = folder.path().join("roofline.svg");
    let small = ["--params", "insecure-n11", "--allow-insecure"];
    let roofline = [
        "bench",
        "roofline",
        "--json",
        "--threads",
        "1",
        "--svg",
        picture.to_str().expect("a path in UTF-8"),
    ];
    let report = json(&[&roofline[..], &small].concat());
    let limits = report["limits"].as_array().expect("limits");
    assert_eq!(limits.len(), 1, "one thread is all");
    positive(
        &limits[0],
        &["threads", "bytes_per_second", "multiply_adds_per_second"],
    );
    assert!(report["processor"]["name"].is_string());
    let rows = report["primitives"].as_array().expect("primitives");
    for row in rows {
        positive(row, &["limbs", "multiply_adds", "bytes"]);
        positive(
            &row["measured"][0],
            &["ms", "bandwidth_share", "multiply_add_share", "limit_share"],
        );
    }
    // N/2 log N butterflies of three multiply-adds; words read and written, and a root for each.
    assert_eq!(rows[0]["name"], "NTT");
    assert_eq!(rows[0]["multiply_adds"], 3.0 * 11.0 * 1024.0);
    assert_eq!(rows[0]["bytes"], 3.0 * 8.0 * 2048.0);
    let picture = std::fs::read_to_string(picture).expect("the picture");
    assert_eq!(picture.matches("<circle").count(), rows.len());
    let unwritable = folder.path().join("absent/roofline.svg");
    let unwritable = unwritable.to_str().expect("a path in UTF-8");
    let message = failure(
        1,
        &[&["bench", "roofline", "--svg", unwritable][..], &small].concat(),
    );
    names(&message, &["--svg", "absent", "can be written"]);
}

#[test]
fn kernels_are_measured() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let rows = folder.path().join("rows");
    let report = json(&[
        "bench",
        "kernels",
        "--params",
        "insecure-n11",
        "--allow-insecure",
        "--device",
        "cpu",
        "--rows",
        rows.to_str().expect("UTF-8"),
        "--json",
    ]);
    assert!(report["gpu"].is_null() && report["limits"].is_null());
    let operations = report["operations"].as_array().expect("operations");
    let names: Vec<&str> = operations
        .iter()
        .filter_map(|op| op["name"].as_str())
        .collect();
    for name in ["ntt", "key_product", "mod_up", "mod_down"] {
        assert!(names.contains(&name), "{names:?}");
    }
    for operation in operations {
        positive(operation, &["ms", "bytes", "gb_per_s", "share_of_copy"]);
    }
    // The same, as they came.
    let rows = std::fs::read_to_string(rows).expect("the rows");
    let rows: Vec<Value> = rows
        .lines()
        .map(|row| serde_json::from_str(row).expect("a line of JSON"))
        .collect();
    assert_eq!(rows.len(), operations.len());
    for (row, operation) in rows.iter().zip(operations) {
        assert_eq!(row["row"], "operation");
        assert!(row["name"] == operation["name"] && row["ms"] == operation["ms"]);
    }
}

#[test]
fn the_doctor_says_what_will_run() {
    let report = json(&["doctor", "--json"]);
    assert_eq!(
        report["gpu"].as_bool(),
        report["gpus"].as_array().map(|gpus| !gpus.is_empty())
    );
    positive(&report, &["threads"]);
    positive(&report["memory_bytes"], &["total", "available"]);
    let sets = report["params"].as_array().expect("parameter sets");
    let default = sets
        .iter()
        .find(|set| set["name"] == "n16-128")
        .expect("the default set");
    assert_eq!(default["security_bits"], 128);
    assert!(
        default["demonstration_bytes"].as_u64() > Some(1 << 30),
        "{default}"
    );
    let output = taciturn(&["doctor"]);
    names(
        &String::from_utf8_lossy(&output.stdout),
        &["arithmetic", "GPU", "memory", "n16-128"],
    );
}

#[test]
fn the_doctor_says_why_the_demonstration_cannot_be_planned() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = folder.path().join("models/gpt2-code-tiny");
    std::fs::create_dir_all(&model).expect("a folder");
    let doctor = |arguments: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_taciturn"))
            .args(arguments)
            .current_dir(folder.path())
            .env("XDG_CACHE_HOME", folder.path())
            .output()
            .expect("the binary runs");
        assert!(output.status.success(), "{}", harness::stderr(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    names(
        &doctor(&["doctor"]),
        &["demonstration model cannot be planned", "config.json"],
    );
    let report: Value = serde_json::from_str(&doctor(&["doctor", "--json"])).expect("JSON");
    let set = &report["params"][0];
    assert!(set["demonstration_bytes"].is_null() && set["fits"].is_null());
    names(
        set["demonstration_error"].as_str().expect("a reason"),
        &["config.json"],
    );
}

#[test]
fn calibration_writes_the_table_that_generation_reads() {
    let model = harness::demonstration_copy();
    std::fs::remove_file(model.path().join("taciturn.calibration.json")).expect("the table");
    let text = models().join("calibration.txt");
    let report = json(&[
        "calibrate",
        "--model",
        harness::path(&model),
        "--text",
        text.to_str().expect("a path in UTF-8"),
        "--context",
        "16",
        "--windows",
        "40",
        "--held-out",
        models()
            .join("heldout.txt")
            .to_str()
            .expect("a path in UTF-8"),
        "--json",
    ]);
    assert_eq!(report["context"], 16);
    // Forty windows of sixteen tokens do not show everything.
    let outside = report["outside"].as_object().expect("places");
    assert!(outside.values().all(|share| share.as_f64() > Some(0.0)));
    assert!(!outside.is_empty());
    positive(&report, &["sites", "bounds", "tokens"]);
    let plan = [
        &[
            "plan",
            "--model",
            harness::path(&model),
            "--context",
            "16",
            "--json",
        ][..],
        &SMALL,
    ];
    assert!(json(&plan.concat())["bootstraps"].as_u64() > Some(0));
}

#[test]
fn a_random_model_of_a_published_shape_is_written_once() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let out = folder.path().join("model");
    let out = out.to_str().expect("a path in UTF-8");
    let arguments = [
        "random-model",
        "--shape",
        "smollm2-135m",
        "--layers",
        "1",
        "--out",
        out,
    ];
    let report = json(&[&arguments[..], &["--json"]].concat());
    let weights = std::fs::metadata(folder.path().join("model/model.safetensors"));
    let bytes = weights.expect("the weights").len();
    let count = report["weights"].as_u64().expect("how many");
    // Two bytes each, and a header.
    assert!(count > 31_000_000 && (bytes - 2 * count) < 4096);
    names(&failure(2, &arguments), &["--out", "config.json"]);
    names(
        &failure(2, &["random-model", "--shape", "gpt5", "--out", out]),
        &["--shape", "llama-3-8b"],
    );
}
