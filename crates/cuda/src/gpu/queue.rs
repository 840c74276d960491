//! The GPU as the launch plans see it.

use std::ffi::c_void;
use std::sync::PoisonError;

use cudarc::driver::result;

use super::event::Event;
use super::staging::Staging;
use super::{Gpu, driver, graph};
use crate::{Device, DeviceError, Graph, Launch, Mark, Probe, Step};

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
            // The driver does not promise to wait for the work queued before. Copies from the host are waited for with what was queued
            // after them.
            let _ = self.synchronize();
            // SAFETY: the caller's contract. An error leaves nothing to do.
            let _ = unsafe { result::free_sync(address) };
        }
    }

    unsafe fn write(&self, to: u64, from: &[u8], after: Option<&Mark>) -> Result<(), DeviceError> {
        self.enter()?;
        if let Some(mark) = after {
            mark.get::<Event>().precede(self.copies)?;
        }
        let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        let staging = match &mut *staging {
            Some(staging) => staging,
            empty => empty.insert(Staging::new(self.context)?),
        };
        // SAFETY: the caller's contract.
        unsafe { staging.copy(to, from, self.copies) }?;
        Event::record(self.context, self.copies, false)?.precede(self.stream)
    }

    unsafe fn read(&self, to: &mut [u8], from: u64) -> Result<(), DeviceError> {
        self.enter()?;
        // SAFETY: the caller's contract; the bytes are there after the wait.
        driver("download", unsafe {
            result::memcpy_dtoh_async(to, from, self.stream)
        })?;
        self.synchronize()
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

    unsafe fn prepare(&self, steps: &[Step<'_>]) -> Result<Graph, DeviceError> {
        self.enter()?;
        // SAFETY: the caller's contract; the functions are in the order of the kernels' numbers.
        unsafe { graph::build(self.context, &self.functions, steps, self.stream) }.map(Graph::new)
    }

    unsafe fn run(&self, graph: &Graph) -> Result<(), DeviceError> {
        self.enter()?;
        // SAFETY: the caller's contract.
        unsafe { graph.get::<graph::Executable>().launch(self.stream) }
    }

    fn mark(&self) -> Result<Mark, DeviceError> {
        self.enter()?;
        Event::record(self.context, self.stream, false).map(Mark::new)
    }

    fn timed_mark(&self) -> Result<Mark, DeviceError> {
        self.enter()?;
        Event::record(self.context, self.stream, true).map(Mark::new)
    }

    fn elapsed_ms(&self, from: &Mark, to: &Mark) -> Result<f64, DeviceError> {
        self.enter()?;
        from.get::<Event>().elapsed_ms(to.get::<Event>())
    }

    fn probe(&self) -> Probe {
        Probe {
            copy_bytes: 1 << 29,
            // Enough waves that the last one does not count.
            blocks: self.info.multiprocessors * 64,
            rounds: 2048,
        }
    }

    fn memory(&self) -> Result<(usize, usize), DeviceError> {
        self.enter()?;
        driver("device memory", result::mem_get_info())
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.enter()?;
        // SAFETY: the stream is ours.
        driver("kernels", unsafe {
            result::stream::synchronize(self.stream)
        })
    }
}
