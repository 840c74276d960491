//! A GPU through the CUDA driver, which is loaded when it is first asked for.

mod event;
mod graph;
mod queue;
mod staging;

use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use cudarc::driver::result::{self, DriverError, stream::StreamKind};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, cudaError_enum as Code};

use crate::{DeviceError, Kernel};
use staging::Staging;

/// Bytes where a driver may read words.
#[repr(C, align(64))]
struct Aligned<T: ?Sized>(T);

/// Machine code for sm_80 and sm_90, and PTX.
static IMAGE: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/kernels.fatbin")));

/// The CUDA release that the kernels are compiled for, as drivers count.
const DRIVER_VERSION: i32 = 13_000;

/// What one GPU of this machine offers.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuInfo {
    /// Its number.
    pub ordinal: usize,
    /// As its maker calls it.
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: (u32, u32),
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of its memory.
    pub memory: usize,
}

/// The GPUs of this machine. No driver, and a driver that sees none, are errors that say so.
pub fn gpus() -> Result<Vec<GpuInfo>, DeviceError> {
    initialize()?;
    let count = driver("device count", result::device::get_count())?;
    (0..count).map(info).collect()
}

fn info(ordinal: i32) -> Result<GpuInfo, DeviceError> {
    let device = driver("device", result::device::get(ordinal))?;
    let attribute = |attribute| {
        // SAFETY: the device is one that the driver gave.
        let value = unsafe { result::device::get_attribute(device, attribute) };
        driver("device attribute", value).map(|value| value as u32)
    };
    Ok(GpuInfo {
        ordinal: ordinal as usize,
        name: driver("device name", result::device::get_name(device))?,
        capability: (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        // SAFETY: as above.
        memory: driver("device memory", unsafe {
            result::device::total_mem(device)
        })?,
    })
}

fn initialize() -> Result<(), DeviceError> {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    // cudarc panics at the first call where there is no library, so it is asked first.
    // SAFETY: loading the driver runs its initialisers, which it is made for.
    if !PRESENT.get_or_init(|| unsafe { sys::is_culib_present() }) {
        return Err(DeviceError::Driver {
            operation: "CUDA driver",
            reason: "libcuda.so.1 is not on this machine; install NVIDIA's driver 580 or newer"
                .into(),
        });
    }
    // Asked before anything else: an older driver lacks functions that are called later.
    let mut version = 0;
    // SAFETY: it writes a number.
    driver(
        "CUDA driver",
        unsafe { sys::cuDriverGetVersion(&mut version) }.result(),
    )?;
    if version < DRIVER_VERSION {
        return Err(DeviceError::OldDriver {
            operation: "CUDA driver",
            reason: format!(
                "expected one for CUDA {}.{} or newer, got one for {}.{}",
                DRIVER_VERSION / 1000,
                DRIVER_VERSION % 1000 / 10,
                version / 1000,
                version % 1000 / 10
            ),
        });
    }
    driver("CUDA driver", result::init())
}

fn driver<T>(operation: &'static str, result: Result<T, DriverError>) -> Result<T, DeviceError> {
    result.map_err(|error| {
        let reason = match error.error_string() {
            Ok(text) => text.to_string_lossy().into_owned(),
            Err(_) => format!("error {:?}", error.0),
        };
        explained(operation, error.0, reason)
    })
}

/// What a user can do about an error, where that is known.
fn explained(operation: &'static str, code: Code, reason: String) -> DeviceError {
    match code {
        Code::CUDA_ERROR_OUT_OF_MEMORY => DeviceError::OutOfMemory { asked: 0, held: 0 },
        Code::CUDA_ERROR_NO_BINARY_FOR_GPU
        | Code::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
        | Code::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => DeviceError::OldDriver { operation, reason },
        // The context is lost with these: nothing on the device can be read any more.
        Code::CUDA_ERROR_ILLEGAL_ADDRESS
        | Code::CUDA_ERROR_LAUNCH_FAILED
        | Code::CUDA_ERROR_LAUNCH_TIMEOUT
        | Code::CUDA_ERROR_HARDWARE_STACK_ERROR
        | Code::CUDA_ERROR_ILLEGAL_INSTRUCTION
        | Code::CUDA_ERROR_MISALIGNED_ADDRESS
        | Code::CUDA_ERROR_INVALID_PC
        | Code::CUDA_ERROR_ECC_UNCORRECTABLE
        | Code::CUDA_ERROR_NVLINK_UNCORRECTABLE
        | Code::CUDA_ERROR_CONTEXT_IS_DESTROYED
        | Code::CUDA_ERROR_DEVICE_UNAVAILABLE
        | Code::CUDA_ERROR_UNKNOWN => DeviceError::Lost { operation, reason },
        _ => DeviceError::Driver { operation, reason },
    }
}

/// One GPU, two streams on it, and the kernels.
pub struct Gpu {
    info: GpuInfo,
    /// Streams order work within themselves only, so each has polynomials of its own.
    space: u64,
    device: sys::CUdevice,
    context: sys::CUcontext,
    /// Kernels and what is read.
    stream: sys::CUstream,
    /// What comes from the host.
    copies: sys::CUstream,
    staging: Mutex<Option<Staging>>,
    module: sys::CUmodule,
    functions: Vec<sys::CUfunction>,
}

// SAFETY: driver handles may be used from any thread that has set the context.
unsafe impl Send for Gpu {}
// SAFETY: as above; the driver orders the calls.
unsafe impl Sync for Gpu {}

impl Gpu {
    /// Opens the GPU of this number and loads the kernels.
    pub fn open(ordinal: usize) -> Result<Self, DeviceError> {
        static OPENED: AtomicU64 = AtomicU64::new(1);
        let all = gpus()?;
        let missing = || DeviceError::Driver {
            operation: "CUDA device",
            reason: format!("expected a number below {}, got {ordinal}", all.len()),
        };
        let info = all.get(ordinal).cloned().ok_or_else(missing)?;
        if info.capability < (8, 0) {
            return Err(DeviceError::Driver {
                operation: "CUDA device",
                reason: format!(
                    "expected compute capability 8.0 or more, {} has {}.{}",
                    info.name, info.capability.0, info.capability.1
                ),
            });
        }
        // SAFETY: handles are used as the driver gave them, in its order: device, context, stream, module, functions.
        unsafe {
            let device = driver("device", result::device::get(ordinal as i32))?;
            let context = driver("context", result::primary_ctx::retain(device))?;
            driver("context", result::ctx::set_current(context))?;
            let stream = driver("stream", result::stream::create(StreamKind::NonBlocking))?;
            let copies = driver("stream", result::stream::create(StreamKind::NonBlocking))?;
            let module = driver(
                "kernels",
                result::module::load_data(IMAGE.0.as_ptr().cast()),
            )?;
            let mut functions = Vec::with_capacity(Kernel::ALL.len());
            for kernel in Kernel::ALL {
                let name = CString::new(kernel.name()).expect("names have no zero bytes");
                functions.push(driver(
                    "kernel",
                    result::module::get_function(module, name),
                )?);
            }
            Ok(Self {
                info,
                space: OPENED.fetch_add(1, Ordering::Relaxed),
                device,
                context,
                stream,
                copies,
                staging: Mutex::default(),
                module,
                functions,
            })
        }
    }

    /// What it is.
    pub fn info(&self) -> &GpuInfo {
        &self.info
    }

    /// Every thread that calls the driver names the context first.
    fn enter(&self) -> Result<(), DeviceError> {
        // SAFETY: the context lives as long as we do.
        driver("context", unsafe { result::ctx::set_current(self.context) })
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        if self.enter().is_err() {
            return;
        }
        // SAFETY: each handle is ours and released once. Errors leave nothing to do.
        unsafe {
            let _ = result::stream::synchronize(self.copies);
            let _ = result::stream::synchronize(self.stream);
            if let Ok(staging) = self.staging.get_mut() {
                staging.take();
            }
            let _ = result::module::unload(self.module);
            let _ = result::stream::destroy(self.copies);
            let _ = result::stream::destroy(self.stream);
            let _ = result::primary_ctx::release(self.device);
        }
    }
}
