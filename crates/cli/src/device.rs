//! What computes on ciphertexts: this processor, or a GPU.

use std::str::FromStr;

use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;
use taciturn_ckks::Parameters;

use crate::args::DeviceArgs;
use crate::failure::usage;

/// What `--device` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// This processor.
    Cpu,
    /// The GPU of this number.
    Cuda(usize),
    /// The first GPU if there is one, else this processor.
    Auto,
    /// The GPU's kernels on this processor, for tests of what runs on a GPU.
    #[cfg(feature = "shim")]
    Shim,
}

/// What `--key-halves` asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum KeyHalves {
    /// Copied from the host at their first use, and kept.
    #[default]
    Copied,
    /// Expanded on the GPU at their first use, and kept.
    Expanded,
    /// Expanded by each key product, which saves half of the keys' memory.
    EachTime,
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected cpu, cuda, cuda:N or auto, got {text}");
        match text {
            "cpu" => Ok(Self::Cpu),
            "auto" => Ok(Self::Auto),
            "cuda" => Ok(Self::Cuda(0)),
            #[cfg(feature = "shim")]
            "shim" => Ok(Self::Shim),
            _ => {
                let number = text.strip_prefix("cuda:").ok_or_else(wrong)?;
                number.parse().map(Self::Cuda).map_err(|_| wrong())
            }
        }
    }
}

/// A GPU as reports show it.
#[derive(Clone, Debug, Serialize)]
pub struct GpuReport {
    /// As its maker calls it.
    pub name: String,
    /// Compute capability.
    pub capability: String,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of its memory.
    pub memory_bytes: u64,
}

/// The same parameters on the device asked for, and the GPU where it is one.
pub fn place(params: &Parameters, args: &DeviceArgs) -> Result<(Parameters, Option<GpuReport>)> {
    match args.device {
        Choice::Cpu => Ok((params.clone(), None)),
        Choice::Cuda(ordinal) => {
            let (params, gpu) = on_gpu(params, ordinal, args.key_halves)?;
            Ok((params, Some(gpu)))
        }
        Choice::Auto => Ok(match on_gpu(params, 0, args.key_halves) {
            Ok((params, gpu)) => (params, Some(gpu)),
            Err(_) => (params.clone(), None),
        }),
        #[cfg(feature = "shim")]
        Choice::Shim => {
            let (params, gpu) = on_shim(params, args.key_halves)?;
            Ok((params, Some(gpu)))
        }
    }
}

#[cfg(feature = "cuda")]
fn on_gpu(
    params: &Parameters,
    ordinal: usize,
    halves: KeyHalves,
) -> Result<(Parameters, GpuReport)> {
    let gpu =
        taciturn_cuda::Gpu::open(ordinal).map_err(|error| usage(format!("--device: {error}")))?;
    let report = report(gpu.info());
    Ok((on_device(params, std::sync::Arc::new(gpu), halves)?, report))
}

#[cfg(not(feature = "cuda"))]
fn on_gpu(_: &Parameters, _: usize, _: KeyHalves) -> Result<(Parameters, GpuReport)> {
    Err(usage(format!("--device: {NOT_BUILT}")))
}

#[cfg(feature = "shim")]
fn on_shim(params: &Parameters, halves: KeyHalves) -> Result<(Parameters, GpuReport)> {
    use taciturn_cuda_shim::{Order, Shim};

    let report = GpuReport {
        name: "kernels on this processor".to_owned(),
        capability: "none".to_owned(),
        multiprocessors: 0,
        memory_bytes: 0,
    };
    let shim = std::sync::Arc::new(Shim::new(Order::Ascending));
    Ok((on_device(params, shim, halves)?, report))
}

#[cfg(any(feature = "cuda", feature = "shim"))]
fn on_device(
    params: &Parameters,
    device: std::sync::Arc<dyn taciturn_cuda::Device>,
    halves: KeyHalves,
) -> Result<Parameters> {
    use taciturn_cuda::{CudaBackend, Seeded};

    let seeded = match halves {
        KeyHalves::Copied => Seeded::Copied,
        KeyHalves::Expanded => Seeded::Expanded,
        KeyHalves::EachTime => Seeded::EachTime,
    };
    let backend = CudaBackend::new(device).with_seeded(seeded);
    Ok(params.on_backend(std::sync::Arc::new(backend))?)
}

/// The GPUs of this machine, or why there are none.
#[cfg(feature = "cuda")]
pub fn gpus() -> Result<Vec<GpuReport>, String> {
    let gpus = taciturn_cuda::gpus().map_err(|error| error.to_string())?;
    Ok(gpus.iter().map(report).collect())
}

/// The GPUs of this machine, or why there are none.
#[cfg(not(feature = "cuda"))]
pub fn gpus() -> Result<Vec<GpuReport>, String> {
    Err(NOT_BUILT.to_owned())
}

#[cfg(not(feature = "cuda"))]
const NOT_BUILT: &str = "this program was built without GPU support; build it with --features cuda";

#[cfg(feature = "cuda")]
fn report(info: &taciturn_cuda::GpuInfo) -> GpuReport {
    GpuReport {
        name: info.name.clone(),
        capability: format!("{}.{}", info.capability.0, info.capability.1),
        multiprocessors: info.multiprocessors,
        memory_bytes: info.memory as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_names() {
        for (text, choice) in [
            ("cpu", Choice::Cpu),
            ("auto", Choice::Auto),
            ("cuda", Choice::Cuda(0)),
            ("cuda:3", Choice::Cuda(3)),
        ] {
            assert_eq!(text.parse(), Ok(choice));
        }
        for text in ["", "gpu", "cuda:", "cuda:-1", "cuda:x"] {
            let error = text.parse::<Choice>().unwrap_err();
            assert!(error.contains("cuda:N") && error.ends_with(text));
        }
    }
}
