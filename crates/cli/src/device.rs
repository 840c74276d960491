//! What computes on ciphertexts: this processor, or a GPU.

use std::str::FromStr;

use anyhow::{Result, ensure};
use clap::ValueEnum;
use serde::Serialize;
use taciturn_ckks::Parameters;

use crate::args::DeviceArgs;
use crate::failure::usage;
use crate::memory::Prediction;
use crate::system;

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
    /// Bytes of it that nobody used when it was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_free_bytes: Option<u64>,
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

/// Refuses a plan that the GPU has too little free memory for.
pub fn check_memory(
    gpu: Option<&GpuReport>,
    prediction: &Prediction,
    halves: KeyHalves,
) -> Result<()> {
    let Some((gpu, free)) = gpu.and_then(|gpu| Some((gpu, gpu.memory_free_bytes?))) else {
        return Ok(());
    };
    let keys = match halves {
        KeyHalves::EachTime => prediction.keys / 2,
        KeyHalves::Copied | KeyHalves::Expanded => prediction.keys,
    };
    let needed = prediction.weights + keys + prediction.cache + prediction.scratch;
    ensure!(
        needed <= free,
        "memory of {}: the plan needs {} there ({needed} bytes), {} are free ({free} bytes); shorten the context, take a smaller model, \
         or halve the keys with --key-halves each-time",
        gpu.name,
        system::gigabytes(needed),
        system::gigabytes(free)
    );
    Ok(())
}

/// Runs a command. A device that fails in the midst of a computation ends it with the device's error.
#[cfg(any(feature = "cuda", feature = "shim"))]
pub fn with_errors(command: impl FnOnce() -> Result<()>) -> Result<()> {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
    use taciturn_cuda::DeviceError;

    let hook = take_hook();
    set_hook(Box::new(move |info| {
        if !info.payload().is::<DeviceError>() {
            hook(info);
        }
    }));
    // Nothing that the command worked on is looked at again.
    match catch_unwind(AssertUnwindSafe(command)) {
        Ok(outcome) => outcome,
        Err(payload) => match payload.downcast::<DeviceError>() {
            Ok(error) => Err(anyhow::Error::new(*error)),
            Err(other) => resume_unwind(other),
        },
    }
}

/// Runs a command.
#[cfg(not(any(feature = "cuda", feature = "shim")))]
pub fn with_errors(command: impl FnOnce() -> Result<()>) -> Result<()> {
    command()
}

#[cfg(feature = "cuda")]
fn on_gpu(
    params: &Parameters,
    ordinal: usize,
    halves: KeyHalves,
) -> Result<(Parameters, GpuReport)> {
    let gpu =
        taciturn_cuda::Gpu::open(ordinal).map_err(|error| usage(format!("--device: {error}")))?;
    let (free, _) =
        taciturn_cuda::Device::memory(&gpu).map_err(|error| usage(format!("--device: {error}")))?;
    let report = GpuReport {
        memory_free_bytes: Some(free as u64),
        ..report(gpu.info())
    };
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
        memory_free_bytes: None,
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

/// The same parameters on a model of a GPU, which computes nothing and estimates times.
#[cfg(any(feature = "cuda", feature = "shim"))]
pub fn modelled(params: &Parameters) -> Result<Parameters> {
    use taciturn_cuda::{Model, Modelled};

    let device = std::sync::Arc::new(Modelled::new(Model::H200));
    on_device(params, device, KeyHalves::default())
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
        memory_free_bytes: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_free_memory_is_refused_with_what_is_needed() {
        let prediction = Prediction {
            weights_encoded_per_token: 0,
            encoded: 0,
            weights: 10,
            keys: 40,
            cache: 5,
            scratch: 5,
            peak: 1000,
        };
        let gpu = |free| GpuReport {
            name: "a GPU".to_owned(),
            capability: "9.0".to_owned(),
            multiprocessors: 1,
            memory_bytes: 100,
            memory_free_bytes: Some(free),
        };
        let check = |free, halves| {
            check_memory(Some(&gpu(free)), &prediction, halves).map_err(|e| e.to_string())
        };
        assert_eq!(check(60, KeyHalves::Copied), Ok(()));
        assert_eq!(check(40, KeyHalves::EachTime), Ok(()));
        let error = check(59, KeyHalves::Expanded).unwrap_err();
        for part in ["a GPU", "60 bytes", "59 bytes", "--key-halves each-time"] {
            assert!(error.contains(part), "{error}");
        }
        assert!(check_memory(None, &prediction, KeyHalves::Copied).is_ok());
    }

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
