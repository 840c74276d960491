//! What a backend offers whose work waits in a queue of its own: sequences that are kept and queued again, and clocks on the device.

use crate::Poly;

/// Work on polynomials, named by the caller: a function of its inputs and of what stays as it is; none where it failed.
pub type Work<'a> = dyn FnMut(&[Poly]) -> Option<Vec<Poly>> + 'a;

/// A device's queue.
pub trait Queue: Send + Sync {
    /// Does the work and keeps what it queued.
    ///
    /// The work gets copies of the inputs and must not depend on anything that changes between replays: polynomials that it reads beside its
    /// inputs stay as they are, and it decides nothing by words that it reads on the host. Where a backend can tell that this does not
    /// hold, or cannot keep the sequence, there is no recording; the results are right in any case.
    fn record(&self, inputs: &[&Poly], work: &mut Work<'_>) -> Recorded;

    /// Whether this thread is in the midst of [`record`](Self::record): sequences within sequences are part of the outer one.
    fn is_recording(&self) -> bool;

    /// What was queued so far.
    fn submitted(&self) -> Submitted;

    /// Begins to measure time on the device, from here in the queue.
    fn start_clock(&self) -> Box<dyn Clock>;

    /// What the device can do at most, measured now.
    fn limits(&self) -> DeviceLimits;
}

/// What was queued since the backend was made: each kernel by itself and each graph is a call of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Submitted {
    /// Kernels by themselves.
    pub kernels: u64,
    /// Graphs.
    pub graphs: u64,
    /// Kernels in them.
    pub in_graphs: u64,
}

impl Submitted {
    /// What came after `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            kernels: self.kernels - before.kernels,
            graphs: self.graphs - before.graphs,
            in_graphs: self.in_graphs - before.in_graphs,
        }
    }
}

/// What [`Queue::record`] gives.
pub struct Recorded {
    /// Of the work; none where it gave none.
    pub results: Option<Vec<Poly>>,
    /// The sequence, or why it was not kept.
    pub recording: Result<Box<dyn Recording>, &'static str>,
}

/// A sequence of kernels, kept to be queued again for other inputs of the same shapes. It keeps all memory that it names.
pub trait Recording: Send + Sync {
    /// The results for these inputs: word for word those of the work. Contract: as many inputs as were recorded, of the same forms and bases.
    fn replay(&self, inputs: &[&Poly]) -> Vec<Poly>;

    /// Kernels in it.
    fn launches(&self) -> usize;

    /// Bytes of host memory that it takes.
    fn host_bytes(&self) -> usize;

    /// Why they are queued one by one; none where they are queued as one.
    fn queued_singly(&self) -> Option<String>;

    /// Time of each kernel by itself, each queued `repeats` times; the words that they leave are of no use.
    fn profile(&self, repeats: u32) -> Vec<KernelTime>;
}

/// Time between two places in a queue.
pub trait Clock {
    /// Milliseconds from the start to here in the queue, when the device has come here.
    fn elapsed_ms(&self) -> f64;
}

/// All launches of one kernel in a sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelTime {
    /// Its name.
    pub kernel: &'static str,
    /// How often it is launched.
    pub launches: usize,
    /// Of all launches.
    pub ms: f64,
    /// Operands read once and results written once.
    pub bytes: f64,
    /// FP64 instructions.
    pub fp64: f64,
    /// Integer multiply-adds of 32-bit factors and a 64-bit sum.
    pub integer: f64,
}

/// What a device can do at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceLimits {
    /// Of a copy of memory larger than the device's caches: words read and written.
    pub bytes_per_second: f64,
    /// FP64 fused multiply-adds.
    pub fp64_per_second: f64,
    /// Multiply-adds of 32-bit factors and a 64-bit sum.
    pub integer_per_second: f64,
}
