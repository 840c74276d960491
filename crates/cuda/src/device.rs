//! What the launch plans need of a device.

use std::any::Any;
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
    /// The driver does not know this program's kernels.
    #[error(
        "{operation}: {reason}; the driver is too old for this program or does not fit the GPU: install NVIDIA's driver 580 or newer"
    )]
    OldDriver {
        /// What was asked of it.
        operation: &'static str,
        /// What it says.
        reason: String,
    },
    /// Whatever lay in the device's memory is gone.
    #[error(
        "{operation}: {reason}; the GPU is lost to this process with what it held. Start again: files and what was sent are not affected; \
         nvidia-smi tells whether the GPU is still there"
    )]
    Lost {
        /// What was asked of it.
        operation: &'static str,
        /// What it says.
        reason: String,
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

/// A place in the queue, in a device's own form.
pub struct Mark(Box<dyn Any + Send + Sync>);

/// A sequence made ready to be queued as one, in a device's own form.
pub struct Graph(Box<dyn Any + Send + Sync>);

macro_rules! opaque {
    ($name:ident) => {
        impl $name {
            /// Wraps what a device made.
            pub fn new<T: Any + Send + Sync>(value: T) -> Self {
                Self(Box::new(value))
            }

            /// What [`new`](Self::new) wrapped. Contract: it is asked of the device that made it.
            pub fn get<T: Any>(&self) -> &T {
                self.0.downcast_ref().expect("of the device that made it")
            }
        }
    };
}

opaque!(Mark);
opaque!(Graph);

/// A kernel in a sequence.
pub struct Step<'a> {
    /// What to run.
    pub launch: Launch,
    /// The kernel's struct.
    pub params: &'a [u64],
    /// Steps, by number, that must be done before.
    pub after: &'a [usize],
}

/// How much work measures a device's limits.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// Bytes to copy: more than caches hold.
    pub copy_bytes: usize,
    /// Blocks of threads that fill the device.
    pub blocks: u32,
    /// Rounds of each thread.
    pub rounds: u64,
}

/// Memory and a queue of work.
///
/// Calls take effect in the order they are made, across threads too, but for [`write`](Self::write). Only [`read`](Self::read),
/// [`elapsed_ms`](Self::elapsed_ms) and [`synchronize`](Self::synchronize) wait.
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

    /// Copies from the host, whose bytes may be used again on return. Before what is queued later; after what was queued before a mark, or
    /// at any time.
    ///
    /// # Safety
    /// So many bytes lie at `to`, and nothing queued after the mark, or at all without one, uses them yet.
    unsafe fn write(&self, to: u64, from: &[u8], after: Option<&Mark>) -> Result<(), DeviceError>;

    /// Copies to the host, after all work queued so far.
    ///
    /// # Safety
    /// So many bytes lie at `from`.
    unsafe fn read(&self, to: &mut [u8], from: u64) -> Result<(), DeviceError>;

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

    /// Makes a sequence ready to be queued as one; an error where it has to be queued step by step.
    ///
    /// # Safety
    /// As for [`launch`](Self::launch), for as long as the graph is there; steps that do not wait for each other share no words that one of
    /// them writes.
    unsafe fn prepare(&self, steps: &[Step<'_>]) -> Result<Graph, DeviceError>;

    /// Queues a sequence.
    ///
    /// # Safety
    /// The memory that it names is this sequence's while it runs.
    unsafe fn run(&self, graph: &Graph) -> Result<(), DeviceError>;

    /// The place in the queue behind everything queued so far.
    fn mark(&self) -> Result<Mark, DeviceError>;

    /// As [`mark`](Self::mark), with the time at which the device comes there.
    fn timed_mark(&self) -> Result<Mark, DeviceError>;

    /// Milliseconds between two timed marks, when the device has come to the second.
    fn elapsed_ms(&self, from: &Mark, to: &Mark) -> Result<f64, DeviceError>;

    /// What measures its limits.
    fn probe(&self) -> Probe;

    /// Bytes of memory that are free, and all.
    fn memory(&self) -> Result<(usize, usize), DeviceError>;

    /// Waits for all work queued so far.
    fn synchronize(&self) -> Result<(), DeviceError>;
}
