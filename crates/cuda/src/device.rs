//! What the launch plans need of a device.

use std::ffi::c_void;

use thiserror::Error;

use crate::Kernel;

/// What a device can answer instead of a result.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// No memory is left.
    #[error(
        "device memory: {asked} more bytes were asked for, {held} are held; use smaller parameters or another device"
    )]
    OutOfMemory {
        /// Bytes asked for.
        asked: usize,
        /// Bytes that this process holds already.
        held: usize,
    },
    /// The device or its driver is not there or refused.
    #[error("{operation}: {reason}")]
    Driver {
        /// What was asked of it.
        operation: &'static str,
        /// What it says.
        reason: String,
    },
}

/// A kernel and the shape of its grid.
#[derive(Clone, Copy, Debug)]
pub struct Launch {
    /// What to run.
    pub kernel: Kernel,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub threads: u32,
    /// Dynamic shared memory of a block.
    pub shared_bytes: u32,
}

/// Memory and a queue of work.
///
/// Calls take effect in the order they are made, across threads too. Only [`read`](Self::read) and [`synchronize`](Self::synchronize) wait.
///
/// # Safety
/// Addresses stay valid from `allocate` to `free`, and name memory that nothing else uses.
pub unsafe trait Device: Send + Sync + 'static {
    /// For people and reports.
    fn name(&self) -> &'static str;

    /// Devices with one number share their memory and the order of their work.
    fn space(&self) -> u64;

    /// Memory aligned to 256 bytes.
    ///
    /// # Safety
    /// `bytes` is not zero.
    unsafe fn allocate(&self, bytes: usize) -> Result<u64, DeviceError>;

    /// Gives memory back, after all work queued so far.
    ///
    /// # Safety
    /// It came from [`allocate`](Self::allocate) with this size.
    unsafe fn free(&self, address: u64, bytes: usize);

    /// Copies from the host, whose bytes may be used again on return.
    ///
    /// # Safety
    /// So many bytes lie at `to`.
    unsafe fn write(&self, to: u64, from: &[u8]) -> Result<(), DeviceError>;

    /// Copies to the host, after all work queued so far.
    ///
    /// # Safety
    /// So many bytes lie at `from`.
    unsafe fn read(&self, to: &mut [u8], from: u64) -> Result<(), DeviceError>;

    /// Copies within the device.
    ///
    /// # Safety
    /// So many bytes lie at both addresses.
    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<(), DeviceError>;

    /// Writes zeros.
    ///
    /// # Safety
    /// So many bytes lie at the address.
    unsafe fn zero(&self, address: u64, bytes: usize) -> Result<(), DeviceError>;

    /// Queues a kernel.
    ///
    /// # Safety
    /// `params` points to the kernel's struct, and what the kernel then reads and writes is memory of this device.
    unsafe fn launch(&self, launch: &Launch, params: *const c_void) -> Result<(), DeviceError>;

    /// Waits for all work queued so far.
    fn synchronize(&self) -> Result<(), DeviceError>;
}
