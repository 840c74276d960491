//! A GPU through the CUDA driver, which is loaded when it is first asked for.

use std::ffi::{CString, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use cudarc::driver::result::{self, DriverError, stream::StreamKind};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};

use crate::{Device, DeviceError, Kernel, Launch};

/// Machine code for sm_80 and sm_90, and PTX.
static IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kernels.fatbin"));

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

/// The GPUs of this machine. No driver is an error that says so; a driver without GPUs is an empty list.
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
    driver("CUDA driver", result::init())
}

fn driver<T>(operation: &'static str, result: Result<T, DriverError>) -> Result<T, DeviceError> {
    result.map_err(|error| DeviceError::Driver {
        operation,
        reason: match error.error_string() {
            Ok(text) => text.to_string_lossy().into_owned(),
            Err(_) => format!("error {:?}", error.0),
        },
    })
}

/// One GPU, a stream on it, and the kernels.
pub struct Gpu {
    info: GpuInfo,
    /// Streams order work within themselves only, so each has polynomials of its own.
    space: u64,
    device: sys::CUdevice,
    context: sys::CUcontext,
    stream: sys::CUstream,
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
            let module = driver("kernels", result::module::load_data(IMAGE.as_ptr().cast()))?;
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
            let _ = result::stream::synchronize(self.stream);
            let _ = result::module::unload(self.module);
            let _ = result::stream::destroy(self.stream);
            let _ = result::primary_ctx::release(self.device);
        }
    }
}

// SAFETY: the driver's addresses are valid from allocation to release, and one stream keeps the order of the calls.
unsafe impl Device for Gpu {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn space(&self) -> u64 {
        self.space
    }

    unsafe fn allocate(&self, bytes: usize) -> Result<u64, DeviceError> {
        self.enter()?;
        // SAFETY: not zero, by the caller's contract.
        driver("allocation", unsafe { result::malloc_sync(bytes) })
    }

    unsafe fn free(&self, address: u64, _bytes: usize) {
        if self.enter().is_ok() {
            // SAFETY: the caller's contract. It waits for the work queued before; an error leaves nothing to do.
            let _ = unsafe { result::free_sync(address) };
        }
    }

    unsafe fn write(&self, to: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.enter()?;
        // SAFETY: the caller's contract. From pageable memory the driver returns when it has staged the bytes.
        driver("upload", unsafe {
            result::memcpy_htod_async(to, from, self.stream)
        })
    }

    unsafe fn read(&self, to: &mut [u8], from: u64) -> Result<(), DeviceError> {
        self.enter()?;
        // SAFETY: the caller's contract; the bytes are there after the wait.
        driver("download", unsafe {
            result::memcpy_dtoh_async(to, from, self.stream)
        })?;
        self.synchronize()
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<(), DeviceError> {
        self.enter()?;
        // SAFETY: the caller's contract.
        driver("copy", unsafe {
            result::memcpy_dtod_async(to, from, bytes, self.stream)
        })
    }

    unsafe fn zero(&self, address: u64, bytes: usize) -> Result<(), DeviceError> {
        self.enter()?;
        // SAFETY: the caller's contract.
        driver("memset", unsafe {
            result::memset_d8_async(address, 0, bytes, self.stream)
        })
    }

    unsafe fn launch(&self, launch: &Launch, params: *const c_void) -> Result<(), DeviceError> {
        self.enter()?;
        let [x, y, z] = launch.grid;
        // SAFETY: the caller's contract: the kernel's own struct, copied before the call returns.
        let launched = unsafe {
            result::launch_kernel(
                self.functions[launch.kernel as usize],
                (x, y, z),
                (launch.threads, 1, 1),
                launch.shared_bytes,
                self.stream,
                &mut [params.cast_mut()],
            )
        };
        driver(launch.kernel.name(), launched)
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.enter()?;
        // SAFETY: the stream is ours.
        driver("kernels", unsafe {
            result::stream::synchronize(self.stream)
        })
    }
}
