//! A device that runs the CUDA kernels on the host: the same sources, compiled as C++ under a thin shim.
//!
//! It computes with the same launch plans as a GPU, in memory of its own. A block's threads run one after the other from barrier to
//! barrier, blocks one after the other, in an order that a test chooses: a result that depends on it shows a race. New memory and shared
//! memory hold NaN, not zeros. For tests alone: it is slow, and shipped with nothing.
//!
//! Orders but the ascending one are also as hostile as a GPU may be to what is queued: kernels wait until somebody has to have their
//! results, copies from the host overtake them unless they are told to wait, and a graph's kernels run in any order that its edges permit.

mod queue;

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{CString, c_char, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use queue::{Pending, Queued};
use taciturn_cuda::{Device, DeviceError, Graph, Kernel, Launch, Mark, Probe, Step};

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

/// In which order threads, blocks and kernels run.
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
    queue: Mutex<Pending>,
    /// Bytes that may be allocated, if there is a limit.
    memory: Option<u64>,
    allocated: AtomicU64,
    space: u64,
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
            queue: Mutex::default(),
            memory: None,
            allocated: AtomicU64::new(0),
            space: SPACES.fetch_add(1, Ordering::Relaxed),
            order,
            name,
        }
    }

    /// The same with so many bytes of memory.
    #[must_use]
    pub fn with_memory(self, bytes: u64) -> Self {
        Self {
            memory: Some(bytes),
            ..self
        }
    }

    /// Kernels launched so far, those of graphs included.
    pub fn launches(&self) -> u64 {
        self.launches.load(Ordering::Relaxed)
    }

    /// Queues work; runs it at once in the ascending order.
    fn queue(&self, work: Queued) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push(work);
        if self.order == 0 {
            queue.run_to(u64::MAX, |work| self.execute(work));
        }
    }

    /// Runs what is queued, up to a place.
    fn run_to(&self, place: u64) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.run_to(place, |work| self.execute(work));
    }

    fn execute(&self, work: &Queued) {
        match work {
            Queued::Kernel(launch, params) => {
                // SAFETY: the parameters have the size that `new` compared, and name memory of this device.
                unsafe {
                    taciturn_shim_launch(
                        self.kernels[launch.kernel as usize],
                        launch.grid.as_ptr(),
                        launch.threads,
                        launch.shared_bytes,
                        params.as_ptr().cast(),
                        self.order,
                    );
                }
            }
            Queued::Zero(address, bytes) => {
                // SAFETY: the caller's contract when it was queued.
                unsafe { (*address as *mut u8).write_bytes(0, *bytes) };
            }
        }
    }
}

static SPACES: AtomicU64 = AtomicU64::new(1);

/// Kernels with the numbers of those that they wait for.
struct ShimGraph(Vec<(Queued, Vec<usize>)>);

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 256).expect("memory is smaller than the address space")
}

// SAFETY: addresses are those of host memory, alive from `allocate` to `free`.
unsafe impl Device for Shim {
    fn name(&self) -> &'static str {
        self.name
    }

    fn space(&self) -> u64 {
        self.space
    }

    unsafe fn allocate(&self, bytes: usize) -> Result<u64, DeviceError> {
        let before = self.allocated.fetch_add(bytes as u64, Ordering::Relaxed);
        if self.memory.is_some_and(|most| before + bytes as u64 > most) {
            self.allocated.fetch_sub(bytes as u64, Ordering::Relaxed);
            return Err(DeviceError::OutOfMemory { asked: 0, held: 0 });
        }
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
        self.run_to(u64::MAX);
        self.allocated.fetch_sub(bytes as u64, Ordering::Relaxed);
        // SAFETY: the caller's contract.
        unsafe { dealloc(address as *mut u8, layout(bytes)) }
    }

    unsafe fn write(&self, to: u64, from: &[u8], after: Option<&Mark>) -> Result<(), DeviceError> {
        if let Some(mark) = after {
            self.run_to(*mark.get::<u64>());
        }
        // SAFETY: the caller's contract.
        unsafe { (to as *mut u8).copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }

    unsafe fn read(&self, to: &mut [u8], from: u64) -> Result<(), DeviceError> {
        self.run_to(u64::MAX);
        // SAFETY: the caller's contract.
        unsafe {
            to.as_mut_ptr()
                .copy_from_nonoverlapping(from as *const u8, to.len())
        };
        Ok(())
    }

    unsafe fn zero(&self, address: u64, bytes: usize) -> Result<(), DeviceError> {
        self.queue(Queued::Zero(address, bytes));
        Ok(())
    }

    unsafe fn launch(&self, launch: &Launch, params: *const c_void) -> Result<(), DeviceError> {
        self.launches.fetch_add(1, Ordering::Relaxed);
        let words = launch.kernel.params_size() / size_of::<u64>();
        // SAFETY: the caller's contract: the kernel's struct, which is made of words.
        let params = unsafe { std::slice::from_raw_parts(params.cast::<u64>(), words) };
        self.queue(Queued::Kernel(*launch, params.into()));
        Ok(())
    }

    unsafe fn prepare(&self, steps: &[Step<'_>]) -> Result<Graph, DeviceError> {
        let step = |step: &Step<'_>| {
            let work = Queued::Kernel(step.launch, step.params.into());
            (work, step.after.to_vec())
        };
        Ok(Graph::new(ShimGraph(steps.iter().map(step).collect())))
    }

    unsafe fn run(&self, graph: &Graph) -> Result<(), DeviceError> {
        let ShimGraph(steps) = graph.get();
        self.launches
            .fetch_add(steps.len() as u64, Ordering::Relaxed);
        let after: Vec<&[usize]> = steps.iter().map(|step| &step.1[..]).collect();
        for step in queue::permitted_order(&after, self.order) {
            self.queue(steps[step].0.clone());
        }
        Ok(())
    }

    fn mark(&self) -> Result<Mark, DeviceError> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Mark::new(queue.end()))
    }

    fn timed_mark(&self) -> Result<Mark, DeviceError> {
        self.run_to(u64::MAX);
        Ok(Mark::new(Instant::now()))
    }

    fn elapsed_ms(&self, from: &Mark, to: &Mark) -> Result<f64, DeviceError> {
        let (from, to) = (from.get::<Instant>(), to.get::<Instant>());
        Ok(to.duration_since(*from).as_secs_f64() * 1e3)
    }

    fn probe(&self) -> Probe {
        Probe {
            copy_bytes: 1 << 16,
            blocks: 2,
            rounds: 16,
        }
    }

    fn memory(&self) -> Result<(usize, usize), DeviceError> {
        let all = self.memory.unwrap_or(1 << 40);
        let free = all.saturating_sub(self.allocated.load(Ordering::Relaxed));
        Ok((free as usize, all as usize))
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.run_to(u64::MAX);
        Ok(())
    }
}
