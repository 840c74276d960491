//! With the feature `gpu`: compiles the kernels with nvcc, to machine code for sm_80 and sm_90 and to PTX for what comes after.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGETS: [&str; 3] = [
    "arch=compute_80,code=sm_80",
    "arch=compute_90,code=sm_90",
    "arch=compute_90,code=compute_90",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_GPU").is_none() {
        return;
    }
    println!("cargo::rerun-if-changed=kernels");
    for name in ["TACITURN_NVCC", "CUDA_HOME", "PATH"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    if let Err(error) = compile() {
        println!(
            "cargo::error={}",
            error.trim().replace('\n', "\ncargo::error=")
        );
    }
}

fn compile() -> Result<(), String> {
    let nvcc = find_nvcc()?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR: expected Cargo to set it")?);
    let mut command = Command::new(&nvcc);
    command.args(["-std=c++17", "-O3", "-fatbin", "-Xptxas", "-v"]);
    for target in TARGETS {
        command.args(["-gencode", target]);
    }
    command
        .arg("-o")
        .arg(out.join("kernels.fatbin"))
        .arg("kernels/kernels.cu");
    let output = command
        .output()
        .map_err(|error| format!("{}: {error}", nvcc.display()))?;
    let report = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!(
            "{} could not compile the kernels ({}); it needs its parts nvvm, crt and runtime of one release, and a host C++ compiler:\n{}\n{report}",
            nvcc.display(),
            output.status,
            String::from_utf8_lossy(&output.stdout)
        ));
    }
    // What the assembler says of registers and spills: tests/resources.rs holds it against limits.
    fs::write(out.join("ptxas.txt"), report.as_bytes()).map_err(|error| error.to_string())
}

fn find_nvcc() -> Result<PathBuf, String> {
    if let Some(given) = env::var_os("TACITURN_NVCC") {
        let path = PathBuf::from(given);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(format!(
                "TACITURN_NVCC: expected the path of nvcc, got {}",
                path.display()
            ))
        };
    }
    let home = env::var_os("CUDA_HOME").map(|home| Path::new(&home).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    home.into_iter()
        .chain(env::split_paths(&path))
        .map(|folder| folder.join("nvcc"))
        .find(|path| path.is_file())
        .ok_or_else(|| {
            "the feature `gpu` needs nvcc, which is neither in CUDA_HOME/bin nor in PATH; run \
             crates/cuda/toolkit.sh FOLDER and set TACITURN_NVCC to the path that it prints"
                .to_owned()
        })
}
