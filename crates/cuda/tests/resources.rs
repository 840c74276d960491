//! What the kernels take of a multiprocessor, as the assembler reports it.

/// `ptxas -v`, for each target of the build.
const REPORT: &str = include_str!(concat!(env!("OUT_DIR"), "/ptxas.txt"));

/// Targets with machine code.
const TARGETS: usize = 2;

/// Registers of a thread: what lets a multiprocessor hold so many blocks as each kernel asks for.
fn limit(kernel: &str) -> u32 {
    match kernel {
        _ if kernel.contains("ntt_") && kernel.ends_with("_16") => 64,
        _ if kernel.contains("ntt_") => 128,
        "convert" => 64,
        "seeded_product" => 128,
        _ => 40,
    }
}

/// The number before a word.
fn number_before(line: &str, word: &str) -> Option<u32> {
    let (before, _) = line.split_once(word)?;
    before.split_whitespace().last()?.parse().ok()
}

#[test]
fn kernels_stay_within_their_registers() {
    let mut kernel = "";
    let mut seen = 0;
    for line in REPORT.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            kernel = rest.split('\'').next().unwrap_or_default();
            continue;
        }
        for word in [
            "bytes stack frame",
            "bytes spill stores",
            "bytes spill loads",
        ] {
            if let Some(bytes) = number_before(line, word) {
                assert_eq!(bytes, 0, "{kernel}: {line}");
            }
        }
        if let Some(registers) = number_before(line, "registers") {
            println!("{kernel:26} {registers}");
            assert!(
                registers <= limit(kernel),
                "{kernel}: {registers} registers"
            );
            seen += 1;
        }
    }
    assert_eq!(seen, TARGETS * taciturn_cuda::Kernel::ALL.len());
}
