//! Compiles the kernels as C++ for the host.

use std::path::Path;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kernels = root.join("../cuda/kernels");
    println!("cargo::rerun-if-changed={}", kernels.display());
    println!("cargo::rerun-if-changed=shim");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .define("HOST_SHIM", None)
        .include("shim")
        .include(&kernels)
        // Every operation rounds once, as on the device.
        .flag("-ffp-contract=off")
        // Its longjmp takes a jump to another stack for an error.
        .flag("-U_FORTIFY_SOURCE")
        .opt_level(2)
        .debug(false)
        .warnings(true)
        .file("shim/shim.cpp")
        .compile("taciturn_cuda_shim");
}
