//! A device that runs the CUDA kernels on the host: the same sources, compiled as C++ under a thin shim.
//!
//! It computes with the same launch plans as a GPU, in memory of its own. A block's threads run one after the other from barrier to
//! barrier, blocks one after the other, in an order that a test chooses: a result that depends on it shows a race. New memory and shared
//! memory hold NaN, not zeros. For tests alone: it is slow, and shipped with nothing.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{CString, c_char, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use taciturn_cuda::{Device, DeviceError, Kernel, Launch};

unsafe extern "C" {
    fn taciturn_shim_kernel(name: *const c_char) -> i32;
    fn taciturn_shim_kernel_count() -> usize;
    fn taciturn_shim_params_size(kernel: i32) -> usize;
    fn taciturn_shim_launch(
        kernel: i32,
        grid: *const u32,
        threads: u32,
        shared: u32,
        params: *const c_void,
        order: u32,
    );
}

/// In which order threads and blocks run.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// From the first to the last.
    Ascending,
    /// From the last to the first.
    Descending,
    /// Shuffled by a seed.
    Shuffled(u16),
}

/// The device.
pub struct Shim {
    kernels: Vec<i32>,
    launches: AtomicU64,
    order: u32,
    name: &'static str,
}

impl Shim {
    /// A device whose threads and blocks run in this order.
    ///
    /// # Panics
    /// If the compiled kernels are not those that the backend knows.
    pub fn new(order: Order) -> Self {
        let kernels = Kernel::ALL.map(|kernel| {
            let name = CString::new(kernel.name()).expect("names have no zero bytes");
            // SAFETY: the name ends with zero, and the number is checked before it is used.
            let (number, size) = unsafe {
                let number = taciturn_shim_kernel(name.as_ptr());
                assert!(number >= 0, "kernel {}: not compiled", kernel.name());
                (number, taciturn_shim_params_size(number))
            };
            assert_eq!(
                size,
                kernel.params_size(),
                "kernel {}: parameters",
                kernel.name()
            );
            number
        });
        // SAFETY: it only counts.
        assert_eq!(
            unsafe { taciturn_shim_kernel_count() },
            kernels.len(),
            "kernels unknown to the backend"
        );
        let (order, name) = match order {
            Order::Ascending => (0, "cuda shim ascending"),
            Order::Descending => (1, "cuda shim descending"),
            Order::Shuffled(seed) => (2 + u32::from(seed), "cuda shim shuffled"),
        };
        Self {
            kernels: kernels.to_vec(),
            launches: AtomicU64::new(0),
            order,
            name,
        }
    }
}

impl Shim {
    /// Kernels launched so far.
    pub fn launches(&self) -> u64 {
        self.launches.load(Ordering::Relaxed)
    }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 256).expect("memory is smaller than the address space")
}

// SAFETY: addresses are those of host memory, alive from `allocate` to `free`.
unsafe impl Device for Shim {
    fn name(&self) -> &'static str {
        self.name
    }

    fn space(&self) -> u64 {
        // All shims share the host's memory.
        0
    }

    unsafe fn allocate(&self, bytes: usize) -> Result<u64, DeviceError> {
        // SAFETY: the size is not zero, and the memory is written before it is handed out.
        let start = unsafe {
            let start = alloc(layout(bytes));
            assert!(!start.is_null(), "out of host memory");
            start.write_bytes(0xff, bytes);
            start
        };
        Ok(start as u64)
    }

    unsafe fn free(&self, address: u64, bytes: usize) {
        // SAFETY: the caller's contract.
        unsafe { dealloc(address as *mut u8, layout(bytes)) }
    }

    unsafe fn write(&self, to: u64, from: &[u8]) -> Result<(), DeviceError> {
        // SAFETY: the caller's contract.
        unsafe { (to as *mut u8).copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }

    unsafe fn read(&self, to: &mut [u8], from: u64) -> Result<(), DeviceError> {
        // SAFETY: the caller's contract.
        unsafe {
            to.as_mut_ptr()
                .copy_from_nonoverlapping(from as *const u8, to.len())
        };
        Ok(())
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: the caller's contract.
        unsafe { (to as *mut u8).copy_from_nonoverlapping(from as *const u8, bytes) };
        Ok(())
    }

    unsafe fn zero(&self, address: u64, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: the caller's contract.
        unsafe { (address as *mut u8).write_bytes(0, bytes) };
        Ok(())
    }

    unsafe fn launch(&self, launch: &Launch, params: *const c_void) -> Result<(), DeviceError> {
        self.launches.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the parameters have the size that `new` compared, and name memory of this device.
        unsafe {
            taciturn_shim_launch(
                self.kernels[launch.kernel as usize],
                launch.grid.as_ptr(),
                launch.threads,
                launch.shared_bytes,
                params,
                self.order,
            );
        }
        Ok(())
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        Ok(())
    }
}
