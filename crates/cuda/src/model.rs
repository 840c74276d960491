//! A device that computes nothing and tells how long a GPU might take: an estimate, from bytes and instructions, for planning without one.
//!
//! A kernel takes as long as the longest of three: its bytes over the bandwidth, its FP64 instructions over their rate, its integer
//! multiply-adds over theirs; the rates are shares of what the data sheet says, smaller where the grid does not fill the GPU. Kernels of a
//! stream come one after the other, each at least `latency` after the one before. A graph takes as long as all its work, or as its longest
//! chain of kernels that wait for each other. What caches hold and what instructions are not counted, and contention, is left out.

use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Device, DeviceError, Graph, Launch, Mark, Probe, Step};

/// A GPU as its data sheet describes it.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// As its maker calls it.
    pub name: &'static str,
    /// Bytes of its memory.
    pub memory: u64,
    /// Bytes per second of it.
    pub bandwidth: f64,
    /// Multiprocessors.
    pub multiprocessors: f64,
    /// Cycles per second.
    pub clock: f64,
    /// FP64 instructions of a multiprocessor per cycle, and integer multiply-adds.
    pub per_cycle: f64,
    /// Shares of bandwidth, FP64 and integer rate that kernels reach which fill the GPU: assumptions.
    pub reached: [f64; 3],
    /// Threads that fill a multiprocessor.
    pub threads: f64,
    /// Milliseconds between the beginnings of two kernels of a stream, and of two in a graph that wait for each other: assumptions.
    pub latency: [f64; 2],
}

impl Model {
    /// NVIDIA H200 SXM: 132 multiprocessors, 1.98 GHz, 4.8 TB/s, 141 GB.
    pub const H200: Self = Self {
        name: "NVIDIA H200",
        memory: 141_000_000_000,
        bandwidth: 4.8e12,
        multiprocessors: 132.0,
        clock: 1.98e9,
        per_cycle: 64.0,
        reached: [0.85, 0.7, 0.5],
        threads: 512.0,
        latency: [0.0035, 0.002],
    };

    /// Milliseconds of a kernel's work.
    ///
    /// # Safety
    /// `params` points to the struct that the kernel takes.
    unsafe fn work(&self, launch: &Launch, params: *const c_void) -> f64 {
        // SAFETY: the caller's contract.
        let cost = unsafe { launch.kernel.cost(params) };
        let threads: f64 = launch
            .grid
            .iter()
            .map(|&blocks| f64::from(blocks))
            .product::<f64>()
            * f64::from(launch.threads);
        let fill = (threads / (self.threads * self.multiprocessors)).min(1.0);
        let rate = self.per_cycle * self.clock * self.multiprocessors;
        let [bandwidth, fp64, integer] = self.reached;
        let seconds = (cost.bytes / (self.bandwidth * bandwidth))
            .max(cost.fp64 / (rate * fp64))
            .max(cost.integer / (rate * integer));
        seconds / fill * 1e3
    }
}

/// The device. Words that are read from it are zero.
pub struct Modelled {
    model: Model,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Milliseconds of everything queued so far.
    clock: f64,
    held: u64,
    next: u64,
}

/// Milliseconds.
struct GraphTime(f64);

impl Modelled {
    /// A device with nothing queued.
    pub fn new(model: Model) -> Self {
        Self {
            model,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: there is no memory: addresses are only counted, and kernels do not run.
unsafe impl Device for Modelled {
    fn name(&self) -> &'static str {
        "model of a GPU"
    }

    fn space(&self) -> u64 {
        std::ptr::from_ref(self) as u64
    }

    unsafe fn allocate(&self, bytes: usize) -> Result<u64, DeviceError> {
        let mut state = self.state();
        if state.held + bytes as u64 > self.model.memory {
            return Err(DeviceError::OutOfMemory { asked: 0, held: 0 });
        }
        state.held += bytes as u64;
        // Zero is no address.
        state.next += 256;
        let address = state.next;
        state.next += bytes as u64;
        Ok(address)
    }

    unsafe fn free(&self, _: u64, bytes: usize) {
        self.state().held -= bytes as u64;
    }

    unsafe fn write(&self, _: u64, _: &[u8], _: Option<&Mark>) -> Result<(), DeviceError> {
        Ok(())
    }

    unsafe fn read(&self, to: &mut [u8], _: u64) -> Result<(), DeviceError> {
        to.fill(0);
        Ok(())
    }

    unsafe fn zero(&self, _: u64, _: usize) -> Result<(), DeviceError> {
        Ok(())
    }

    unsafe fn launch(&self, launch: &Launch, params: *const c_void) -> Result<(), DeviceError> {
        // SAFETY: the caller's contract.
        let work = unsafe { self.model.work(launch, params) };
        self.state().clock += work.max(self.model.latency[0]);
        Ok(())
    }

    unsafe fn prepare(&self, steps: &[Step<'_>]) -> Result<Graph, DeviceError> {
        let mut all = 0.0;
        let mut ends: Vec<f64> = Vec::with_capacity(steps.len());
        for step in steps {
            // SAFETY: the caller's contract.
            let work = unsafe { self.model.work(&step.launch, step.params.as_ptr().cast()) };
            all += work;
            let start = step.after.iter().map(|&k| ends[k]).fold(0.0, f64::max);
            ends.push(start + work.max(self.model.latency[1]));
        }
        let longest = ends.into_iter().fold(0.0, f64::max);
        Ok(Graph::new(GraphTime(
            longest.max(all) + self.model.latency[0],
        )))
    }

    unsafe fn run(&self, graph: &Graph) -> Result<(), DeviceError> {
        self.state().clock += graph.get::<GraphTime>().0;
        Ok(())
    }

    fn mark(&self) -> Result<Mark, DeviceError> {
        Ok(Mark::new(()))
    }

    fn timed_mark(&self) -> Result<Mark, DeviceError> {
        Ok(Mark::new(self.state().clock))
    }

    fn elapsed_ms(&self, from: &Mark, to: &Mark) -> Result<f64, DeviceError> {
        Ok(to.get::<f64>() - from.get::<f64>())
    }

    fn probe(&self) -> Probe {
        Probe {
            copy_bytes: 1 << 29,
            blocks: self.model.multiprocessors as u32 * 64,
            rounds: 2048,
        }
    }

    fn memory(&self) -> Result<(usize, usize), DeviceError> {
        let free = self.model.memory - self.state().held;
        Ok((free as usize, self.model.memory as usize))
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use taciturn_ring::{Queue, Ring, primes_near};

    use super::*;
    use crate::CudaBackend;

    #[test]
    fn time_is_that_of_bytes_or_instructions_and_more_limbs_take_longer() {
        let primes = primes_near(2f64.powi(45), 16, 24, &[]).unwrap();
        let backend = Arc::new(CudaBackend::new(Arc::new(Modelled::new(Model::H200))));
        let ring = Ring::from_backend(16, &primes, backend.clone()).unwrap();
        let ms = |limbs: usize| {
            let mut a = ring.uniform(&[1; 32], taciturn_ring::Basis::range(0..limbs));
            let other = a.clone();
            ring.add_assign(&mut a, &other);
            let clock = backend.start_clock();
            ring.intt(&mut a);
            clock.elapsed_ms()
        };
        assert!(ms(24) > ms(12), "{} {}", ms(24), ms(12));
        // Two passes that read and write all words.
        let least = 24.0 * 32.0 * 65536.0 / Model::H200.bandwidth * 1e3;
        assert!(ms(24) > least && ms(24) < 3.0 * least, "{} {least}", ms(24));
    }
}
