//! Sequences of launches that are kept and queued again.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;

use taciturn_ring::{
    Basis, Clock, DeviceLimits, Form, KernelTime, Poly, Queue, Recorded, Recording, Submitted, Work,
};

use crate::abi::{CopyJob, Operand, PeakParams};
use crate::backend::{CudaBackend, copies};
use crate::device::{Graph, Mark, Step};
use crate::memory::Memory;
use crate::pool::{Block, Kind, Pool, done};
use crate::recorder::{self, ANOTHER_THREAD, RecordedLaunch};
use crate::sequence::dependencies;
use crate::{DeviceError, Kernel, Launch};

/// Measurements of a limit, of which the best counts.
const LIMIT_RUNS: usize = 5;
/// Threads of a block and chains of a thread in the kernels that measure the arithmetic; see `kernels/peak.cuh`.
const PEAK_THREADS: u32 = 256;
const PEAK_CHAINS: f64 = 8.0;

impl Queue for CudaBackend {
    fn record(&self, inputs: &[&Poly], work: &mut Work<'_>) -> Recorded {
        let pool = self.pool();
        if recorder::is_active(pool) {
            let inputs: Vec<Poly> = inputs.iter().map(|&input| input.clone()).collect();
            return Recorded {
                results: work(&inputs),
                recording: Err("the work is part of another sequence"),
            };
        }
        let _turn = pool.turn();
        for input in inputs {
            self.operand(input);
        }
        let used_before = pool.numbers().1;
        pool.take_foreign();
        let guard = recorder::begin(pool);
        // On the device already, so these are copies there, in the arena.
        let fixed: Vec<Poly> = inputs.iter().map(|&input| input.clone()).collect();
        recorder::open(pool);
        let results = work(&fixed);
        let recorder = recorder::finish(guard).expect("it began here");
        let foreign = pool.take_foreign();
        let Some(outputs) = results else {
            return Recorded {
                results: None,
                recording: Err("the work failed"),
            };
        };
        let results = outputs.clone();
        let kept = fixed.len() + outputs.len();
        let reason = if let Some(reason) = recorder.spoiled {
            Some(reason)
        } else if foreign {
            Some(ANOTHER_THREAD)
        } else if !outputs.iter().all(|output| self.is_in_arena(output)) {
            Some("a result was not computed by the work")
        } else if pool.numbers().1 != used_before + kept {
            Some("the work keeps what it computes")
        } else {
            None
        };
        if let Some(reason) = reason {
            return Recorded {
                results: Some(results),
                recording: Err(reason),
            };
        }
        pool.add_recording();
        let mut sequence = Sequence {
            graph: None,
            no_graph: None,
            pool: pool.clone(),
            launches: recorder.launches,
            _pins: recorder.pins.into_values().collect(),
            inputs: fixed.iter().map(Place::of).collect(),
            outputs: outputs.iter().map(Place::of).collect(),
        };
        sequence.prepare();
        Recorded {
            results: Some(results),
            recording: Ok(Box::new(sequence)),
        }
    }

    fn is_recording(&self) -> bool {
        recorder::is_active(self.pool())
    }

    fn submitted(&self) -> Submitted {
        self.pool().submitted()
    }

    fn start_clock(&self) -> Box<dyn Clock> {
        let pool = self.pool().clone();
        Box::new(DeviceClock {
            start: done(pool.device().timed_mark()),
            pool,
        })
    }

    fn limits(&self) -> DeviceLimits {
        let pool = self.pool();
        let probe = pool.device().probe();
        let words = probe.copy_bytes / size_of::<u64>();
        let (source, target) = (
            pool.allocate(probe.copy_bytes),
            pool.allocate(probe.copy_bytes),
        );
        let copy = best(pool, || {
            // SAFETY: both are as large.
            unsafe { pool.copy_words(target.address(), source.address(), words) };
        });
        let out = pool.allocate((probe.blocks * PEAK_THREADS) as usize * size_of::<u64>());
        let peak = |kernel| {
            let launch = Launch {
                kernel,
                grid: [probe.blocks, 1, 1],
                threads: PEAK_THREADS,
                shared_bytes: 0,
            };
            let params = PeakParams {
                out: out.address(),
                rounds: probe.rounds,
            };
            // SAFETY: a word for each thread.
            let ms = best(pool, || unsafe { pool.launch(launch, &params) });
            let threads = f64::from(probe.blocks) * f64::from(PEAK_THREADS);
            threads * probe.rounds as f64 * PEAK_CHAINS / ms * 1e3
        };
        DeviceLimits {
            bytes_per_second: 2.0 * probe.copy_bytes as f64 / copy * 1e3,
            fp64_per_second: peak(Kernel::PeakFp64),
            integer_per_second: peak(Kernel::PeakInteger),
        }
    }
}

/// The shortest time in milliseconds, after one call that does not count.
fn best(pool: &Pool, mut f: impl FnMut()) -> f64 {
    f();
    let times = (0..LIMIT_RUNS).map(|_| timed(pool, &mut f));
    times.fold(f64::INFINITY, f64::min)
}

/// Milliseconds on the device.
fn timed(pool: &Pool, f: impl FnOnce()) -> f64 {
    let start = done(pool.device().timed_mark());
    f();
    let end = done(pool.device().timed_mark());
    done(pool.device().elapsed_ms(&start, &end))
}

struct DeviceClock {
    /// Dropped before the device may be.
    start: Mark,
    pool: Arc<Pool>,
}

impl Clock for DeviceClock {
    fn elapsed_ms(&self) -> f64 {
        let end = done(self.pool.device().timed_mark());
        done(self.pool.device().elapsed_ms(&self.start, &end))
    }
}

/// A sequence, with all memory that its launches name.
struct Sequence {
    /// Where the device makes none, launches are queued one by one.
    graph: Option<Graph>,
    /// Why it makes none.
    no_graph: Option<DeviceError>,
    pool: Arc<Pool>,
    launches: Vec<RecordedLaunch>,
    _pins: Vec<Arc<Block>>,
    /// In the arena, where other sequences have theirs: each is written, and read, by every replay.
    inputs: Vec<Place>,
    outputs: Vec<Place>,
}

/// Where a polynomial of a sequence lies.
struct Place {
    n: usize,
    basis: Basis,
    form: Form,
    words: u64,
}

impl Place {
    fn of(poly: &Poly) -> Self {
        let memory: &Memory = poly.device_or(|| unreachable!("computed on the device"));
        Self {
            n: poly.n(),
            basis: poly.basis(),
            form: poly.form(),
            words: memory.address(),
        }
    }

    fn log_n(&self) -> u32 {
        self.n.trailing_zeros()
    }

    fn operand(&self) -> Operand {
        Operand {
            words: self.words,
            basis: self.basis.mask(),
        }
    }
}

impl Sequence {
    fn prepare(&mut self) {
        let accesses = self.launches.iter().map(|launch| &launch.accesses[..]);
        let after = dependencies(accesses);
        let params: Vec<Vec<u64>> = self.launches.iter().map(RecordedLaunch::params).collect();
        let steps: Vec<Step<'_>> = self
            .launches
            .iter()
            .zip(&params)
            .zip(&after)
            .map(|((launch, params), after)| Step {
                launch: launch.launch,
                params,
                after,
            })
            .collect();
        // SAFETY: the sequence keeps the memory that its parameters name, and the dependencies order all that use the same words.
        match unsafe { self.pool.device().prepare(&steps) } {
            Ok(graph) => self.graph = Some(graph),
            Err(error) => self.no_graph = Some(error),
        }
        // There are many sequences.
        for launch in &mut self.launches {
            launch.accesses = Vec::new();
        }
    }

    fn queue(&self) {
        match &self.graph {
            // SAFETY: as in `prepare`.
            Some(graph) => unsafe { self.pool.run(graph, self.launches.len()) },
            None => self.launches.iter().for_each(|launch| self.single(launch)),
        }
    }

    /// One launch for sixteen polynomials.
    fn copies(&self, one: Option<&Place>, jobs: &[CopyJob]) {
        if let Some(one) = one {
            // SAFETY: both places of a job are memory in use, as large as the polynomial.
            unsafe { copies(&self.pool, one.log_n(), jobs) };
        }
    }

    fn single(&self, launch: &RecordedLaunch) {
        let params = launch.params();
        let params: *const c_void = params.as_ptr().cast();
        // SAFETY: the kernel's parameters as they were recorded, and the memory that they name is kept.
        unsafe { self.pool.launch_untyped(&launch.launch, params) };
    }
}

impl Recording for Sequence {
    fn replay(&self, inputs: &[&Poly]) -> Vec<Poly> {
        assert_eq!(inputs.len(), self.inputs.len(), "replay: inputs");
        let _turn = self.pool.turn();
        let jobs = inputs.iter().zip(&self.inputs).map(|(&input, place)| {
            let same = input.n() == place.n && input.basis() == place.basis;
            assert!(
                same && input.form() == place.form,
                "replay: an input's shape"
            );
            let memory: &Memory = input.device(|words| self.pool.upload(words));
            self.pool.check(memory);
            let source = Operand {
                words: memory.address(),
                basis: place.basis.mask(),
            };
            CopyJob::whole(place.operand(), source)
        });
        self.copies(self.inputs.first(), &jobs.collect::<Vec<_>>());
        self.queue();
        let results: Vec<(Memory, CopyJob)> = self
            .outputs
            .iter()
            .map(|place| {
                let memory = self
                    .pool
                    .allocate(place.n * place.basis.len() * size_of::<u64>());
                let target = Operand {
                    words: memory.address(),
                    basis: place.basis.mask(),
                };
                (memory, CopyJob::whole(target, place.operand()))
            })
            .collect();
        let jobs: Vec<CopyJob> = results.iter().map(|result| result.1).collect();
        self.copies(self.outputs.first(), &jobs);
        let polys = results
            .into_iter()
            .zip(&self.outputs)
            .map(|((memory, _), place)| {
                Poly::in_device_memory(place.n, place.basis, place.form, Box::new(memory))
            });
        polys.collect()
    }

    fn launches(&self) -> usize {
        self.launches.len()
    }

    fn host_bytes(&self) -> usize {
        self.launches.iter().map(RecordedLaunch::bytes).sum()
    }

    fn queued_singly(&self) -> Option<String> {
        self.no_graph.as_ref().map(ToString::to_string)
    }

    fn profile(&self, repeats: u32) -> Vec<KernelTime> {
        let _turn = self.pool.turn();
        let mut kernels: BTreeMap<usize, KernelTime> = BTreeMap::new();
        for launch in &self.launches {
            let ms = timed(&self.pool, || {
                (0..repeats).for_each(|_| self.single(launch));
            });
            let kernel = launch.launch.kernel;
            let sum = kernels.entry(kernel as usize).or_insert(KernelTime {
                kernel: kernel.name(),
                launches: 0,
                ms: 0.0,
                bytes: 0.0,
                fp64: 0.0,
                integer: 0.0,
            });
            sum.launches += 1;
            sum.ms += ms / f64::from(repeats.max(1));
            sum.bytes += launch.cost.bytes;
            sum.fp64 += launch.cost.fp64;
            sum.integer += launch.cost.integer;
        }
        kernels.into_values().collect()
    }
}

impl Drop for Sequence {
    fn drop(&mut self) {
        self.graph = None;
        self.pool.remove_recording();
    }
}

impl CudaBackend {
    fn is_in_arena(&self, poly: &Poly) -> bool {
        poly.has_device_copy() && {
            let memory: &Memory = poly.device_or(|| unreachable!("there is a copy"));
            memory.block().kind == Kind::Arena
        }
    }
}
