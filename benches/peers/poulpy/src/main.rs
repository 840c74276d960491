//! Measures poulpy-ckks on this machine, one thread, one JSON object per run, so that a ratio can be taken side by side.
//!
//! `poulpy-peer primitives`: rotation and product at several widths, N = 2^16. `poulpy-peer bootstrap RUNS`: one bootstrap of 2^15 slots.
//! Ciphertexts are not RNS: a width in bits takes the place of limbs. Times are medians in milliseconds.

use std::collections::HashMap;
use std::time::Instant;

use poulpy_ckks::api::{
    CKKSEncodingHostOps, CKKSEncryptOps, CKKSModuleInfos, CKKSMulOps, CKKSRotateOps,
};
use poulpy_ckks::layouts::CKKSPlaintextAlloc;
use poulpy_ckks::presets::bootstrapping::n16_d35_k636_p20_c2s;
use poulpy_ckks::test_suite::CKKSTestParams;
use poulpy_ckks::test_suite::helpers::{
    alloc_ct, alloc_scratch, gen_atk, gen_sk_with_raw, gen_tsk,
};
use poulpy_ckks::test_suite::presets::{BootstrappingPresetRun, CIBackend, preset_for_backend};
use poulpy_ckks::{GLWEPlaintextMeta, Scale, SlotsKind};
use poulpy_cpu_avx512::NTT3x42Ifma;
use poulpy_hal::api::{ScratchOwnedAlloc, ScratchOwnedBorrow};
use poulpy_hal::layouts::{HostBytesBackend, Module, ScratchOwned};
use poulpy_hal::source::Source;
use serde_json::{Value, json};

const N: usize = 1 << 16;
const SCALE_BITS: usize = 40;
/// Four limbs of 52 bits: key moduli of 1,680 bits, within the library's bound of 1,707 for this secret.
const DIGIT: usize = 4 * 52;
/// Ciphertext widths in bits: all of them, then about where our levels 13, 7, 4 and 1 are.
const WIDTHS: [usize; 5] = [1400, 570, 330, 210, 90];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let mut report = match arguments.get(1).map(String::as_str) {
        Some("primitives") => primitives(),
        Some("bootstrap") => bootstrap(arguments.get(2).and_then(|n| n.parse().ok()).unwrap_or(3)),
        _ => {
            eprintln!("usage: poulpy-peer primitives | bootstrap [RUNS]");
            std::process::exit(2);
        }
    };
    report["library"] = json!("poulpy-ckks 0.10.0");
    report["threads"] = json!(1);
    report["peak_rss_bytes"] = json!(peak_rss_bytes());
    println!("{report}");
}

/// One call to warm up, then the median of `runs`.
fn median(runs: usize, mut call: impl FnMut()) -> f64 {
    call();
    let mut times: Vec<f64> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            call();
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[runs / 2]
}

fn primitives() -> Value {
    let meta = GLWEPlaintextMeta {
        scale: Scale::Log(SCALE_BITS),
        slots: SlotsKind::Complex,
        log_sparsity: 0,
    };
    let params = CKKSTestParams {
        n: N,
        base2k: 52,
        k: WIDTHS[0],
        prec_meta: meta,
        prec_log_budget: 12,
        hw: 1024,
        dsize: DIGIT / 52,
        rank: 1,
    };
    let module = Module::<NTT3x42Ifma>::new(N as u64);
    let host = Module::<HostBytesBackend>::new(N as u64);
    let (raw, secret) = gen_sk_with_raw(&params, &module, &host, [7; 32]);
    let mut scratch = alloc_scratch(&params, &module);
    let galois = module.ckks_galois_element(1);
    let rotation = gen_atk(&params, &module, galois, &raw, &mut scratch.borrow());
    let rotations = HashMap::from([(galois, rotation)]);
    let relinearization = gen_tsk(&params, &module, &raw, &mut scratch.borrow());

    let slots = N / 2;
    let wave = |step: usize| {
        (0..slots)
            .map(|i| (i % step) as f64 / step as f64)
            .collect::<Vec<_>>()
    };
    let mut plaintext =
        module.ckks_plaintext_alloc_from_slots(slots, 52usize.into(), (SCALE_BITS + 12).into());
    plaintext
        .set_meta_checked(meta)
        .expect("the plaintext has room for the scale");
    let mut encoding = ScratchOwned::<NTT3x42Ifma>::alloc(
        CKKSEncodingHostOps::<NTT3x42Ifma, f64>::ckks_encoding_host_tmp_bytes(&module, slots),
    );
    module
        .ckks_encode_slots_host_into(&mut plaintext, &wave(17), &wave(13), &mut encoding.borrow())
        .expect("values fit the plaintext");

    let levels: Vec<Value> = WIDTHS
        .iter()
        .map(|&width| {
            let mut ct = alloc_ct(&params, &module, width);
            let (mut errors, mut masks) = (Source::new([3; 32]), Source::new([4; 32]));
            module
                .ckks_encrypt_sk(&mut ct, &plaintext, &secret, &mut errors, &mut masks, &mut scratch.borrow())
                .expect("the ciphertext has room for the plaintext");
            let mut out = alloc_ct(&params, &module, width);
            let rotate = median(11, || {
                module.ckks_rotate_into(1, &mut out, &ct, &rotations, &mut scratch.borrow()).expect("the key is there");
            });
            let mut out = alloc_ct(&params, &module, width);
            let product = median(11, || {
                module.ckks_mul_into(&mut out, &ct, &ct, &relinearization, &mut scratch.borrow()).expect("the key is there");
            });
            json!({"bits": width, "digits": width.div_ceil(DIGIT), "rotate_ms": rotate, "product_rescale_ms": product})
        })
        .collect();
    // A key has a digit's width and log N bits more than its digits.
    json!({"log_qp": WIDTHS[0].div_ceil(DIGIT) * DIGIT + DIGIT + 16, "levels": levels})
}

fn bootstrap(runs: usize) -> Value {
    let preset = n16_d35_k636_p20_c2s().expect("a preset of the library");
    let preset = preset_for_backend::<NTT3x42Ifma, CIBackend<NTT3x42Ifma>>(&preset)
        .expect("a preset of the library");
    let mut run = BootstrappingPresetRun::<NTT3x42Ifma>::setup(preset.clone());
    let ms = median(runs, || run.bootstrap());
    let (re, im) = run.precision();
    json!({
        "log_slots": 15,
        "complex": true,
        "preset": preset.name(),
        "bootstrap_ms": ms,
        "bits_left": preset.output_k() - preset.input_k(),
        "level_bits": preset.log_delta(),
        "bits_min": re.min_log2_prec.min(im.min_log2_prec),
        "bits_mean": re.avg_log2_prec.min(im.avg_log2_prec),
    })
}

/// Peak resident memory of this process; 0 where the system does not tell.
fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| {
        line.strip_prefix("VmHWM:")?
            .trim()
            .strip_suffix("kB")?
            .trim()
            .parse::<u64>()
            .ok()
    });
    kib.unwrap_or(0) * 1024
}
