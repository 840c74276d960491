//! Places in a stream.

use cudarc::driver::result;
use cudarc::driver::sys::{self, CUevent_flags, CUevent_wait_flags};

use super::driver;
use crate::DeviceError;

/// An event that was recorded once.
pub(super) struct Event {
    context: sys::CUcontext,
    event: sys::CUevent,
}

// SAFETY: driver handles may be used from any thread that has set the context.
unsafe impl Send for Event {}
// SAFETY: as above; after it was recorded it is only waited for.
unsafe impl Sync for Event {}

impl Event {
    /// Behind everything that is queued on the stream. Contract: the context is the thread's, and the stream is one of it.
    pub(super) fn record(
        context: sys::CUcontext,
        stream: sys::CUstream,
        timed: bool,
    ) -> Result<Self, DeviceError> {
        let flags = if timed {
            CUevent_flags::CU_EVENT_DEFAULT
        } else {
            CUevent_flags::CU_EVENT_DISABLE_TIMING
        };
        let event = driver("event", result::event::create(flags))?;
        let event = Self { context, event };
        // SAFETY: both are alive.
        driver("event", unsafe {
            result::event::record(event.event, stream)
        })?;
        Ok(event)
    }

    /// What is queued on the stream from now on waits for this event.
    pub(super) fn precede(&self, stream: sys::CUstream) -> Result<(), DeviceError> {
        let flags = CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: both are alive.
        driver("event", unsafe {
            result::stream::wait_event(stream, self.event, flags)
        })
    }

    /// The calling thread waits for it.
    pub(super) fn wait(&self) -> Result<(), DeviceError> {
        // SAFETY: it was recorded.
        driver("event", unsafe { result::event::synchronize(self.event) })
    }

    /// Between two timed events of one stream, when the later one has come.
    pub(super) fn elapsed_ms(&self, later: &Self) -> Result<f64, DeviceError> {
        later.wait()?;
        // SAFETY: both were recorded with times, and the later one waited for.
        let ms = unsafe { result::event::elapsed(self.event, later.event) };
        driver("event", ms).map(f64::from)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: it is ours and destroyed once, after it has come. Errors leave nothing to do.
        unsafe {
            let _ = result::ctx::set_current(self.context);
            let _ = result::event::destroy(self.event);
        }
    }
}
