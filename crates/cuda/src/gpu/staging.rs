//! Copies from the host, through memory that the device can read while the processor goes on.

use std::ffi::c_void;

use cudarc::driver::result;
use cudarc::driver::sys;

use super::driver;
use super::event::Event;
use crate::DeviceError;

/// Bytes of a buffer. Two of them: one is filled while the other is on its way.
const BYTES: usize = 16 << 20;
const BUFFERS: usize = 2;

/// Buffers of page-locked host memory.
pub(super) struct Staging {
    context: sys::CUcontext,
    buffers: Vec<Buffer>,
    next: usize,
}

struct Buffer {
    start: *mut c_void,
    /// When its last copy is done.
    done: Option<Event>,
}

// SAFETY: the buffers are this value's own.
unsafe impl Send for Staging {}

impl Staging {
    /// Contract: the context is the thread's.
    pub(super) fn new(context: sys::CUcontext) -> Result<Self, DeviceError> {
        let mut staging = Self {
            context,
            buffers: Vec::with_capacity(BUFFERS),
            next: 0,
        };
        for _ in 0..BUFFERS {
            // SAFETY: the bytes are written before they are read.
            let start = driver("page-locked host memory", unsafe {
                result::malloc_host(BYTES, 0)
            })?;
            staging.buffers.push(Buffer { start, done: None });
        }
        Ok(staging)
    }

    /// Copies; returns when the bytes have left their place.
    ///
    /// # Safety
    /// So many bytes lie at `to`, on the device, and the stream is one of the context.
    pub(super) unsafe fn copy(
        &mut self,
        to: u64,
        from: &[u8],
        stream: sys::CUstream,
    ) -> Result<(), DeviceError> {
        for (i, part) in from.chunks(BYTES).enumerate() {
            let buffer = &mut self.buffers[self.next];
            self.next = (self.next + 1) % BUFFERS;
            if let Some(done) = buffer.done.take() {
                done.wait()?;
            }
            // SAFETY: the buffer is as long, ours, and no copy reads it any more.
            let staged = unsafe {
                let start: *mut u8 = buffer.start.cast();
                start.copy_from_nonoverlapping(part.as_ptr(), part.len());
                std::slice::from_raw_parts(start.cast_const(), part.len())
            };
            // SAFETY: the caller's contract; the buffer stays as it is until the event that is recorded next.
            driver("upload", unsafe {
                result::memcpy_htod_async(to + (i * BYTES) as u64, staged, stream)
            })?;
            buffer.done = Some(Event::record(self.context, stream, false)?);
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: the buffers are ours, and no copy reads them any more. Errors leave nothing to do.
        unsafe {
            let _ = result::ctx::set_current(self.context);
            for buffer in &mut self.buffers {
                if let Some(done) = buffer.done.take() {
                    let _ = done.wait();
                }
                let _ = result::free_host(buffer.start);
            }
        }
    }
}
