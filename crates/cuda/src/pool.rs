//! The blocks of a device's memory.
//!
//! Work is queued in order, so a block may be used again as soon as it is given back. Three kinds differ in who may use them next:
//! results of kernels; copies from the host, which are made beside the queue and therefore wait for the last use of their block; and the
//! arena, whose blocks only recorded sequences use, again at every replay.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use taciturn_ring::Submitted;

use crate::abi::{self, CopyWordsParams, Plain};
use crate::device::{Graph, Mark};
use crate::memory::Memory;
use crate::params::Params;
use crate::recorder;
use crate::{Device, DeviceError, Kernel, Launch};

/// Blocks are multiples of this.
const UNIT: usize = 256;

/// Bytes that went between host and device since the backend was made.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    /// From the host.
    pub uploaded: u64,
    /// To the host.
    pub downloaded: u64,
}

/// Who uses a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Results.
    Result,
    /// What was copied from the host.
    Upload,
    /// Sequences.
    Arena,
}

/// Memory of the device; back in the pool when dropped.
pub(crate) struct Block {
    pub(crate) pool: Arc<Pool>,
    pub(crate) address: u64,
    pub(crate) bytes: usize,
    pub(crate) kind: Kind,
    /// Blocks are numbered in the order they are handed out.
    pub(crate) number: u64,
}

/// A device and its free blocks, by size.
pub(crate) struct Pool {
    device: Arc<dyn Device>,
    blocks: Mutex<Blocks>,
    /// Sequences share the arena: one at a time is recorded or queued.
    turn: Mutex<()>,
    recordings: AtomicUsize,
    /// Somebody used the arena outside of a sequence.
    foreign: AtomicBool,
    uploaded: AtomicU64,
    downloaded: AtomicU64,
    kernels: AtomicU64,
    graphs: AtomicU64,
    in_graphs: AtomicU64,
}

#[derive(Default)]
struct Blocks {
    results: Free<u64>,
    uploads: Free<(u64, Mark)>,
    arena: Free<u64>,
    /// Blocks of the arena that are in use.
    arena_used: usize,
    /// Bytes of all blocks, free or in use.
    held: usize,
    numbered: u64,
}

impl Pool {
    pub(crate) fn new(device: Arc<dyn Device>) -> Self {
        Self {
            device,
            blocks: Mutex::default(),
            turn: Mutex::default(),
            recordings: AtomicUsize::new(0),
            foreign: AtomicBool::new(false),
            uploaded: AtomicU64::new(0),
            downloaded: AtomicU64::new(0),
            kernels: AtomicU64::new(0),
            graphs: AtomicU64::new(0),
            in_graphs: AtomicU64::new(0),
        }
    }

    pub(crate) fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Fails for another device's memory, whose addresses mean nothing here.
    pub(crate) fn check(&self, memory: &Memory) {
        assert_eq!(
            memory.space(),
            self.device.space(),
            "a polynomial stays with the device that computed it"
        );
    }

    pub(crate) fn transfers(&self) -> Transfers {
        Transfers {
            uploaded: self.uploaded.load(Ordering::Relaxed),
            downloaded: self.downloaded.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn held(&self) -> usize {
        self.lock().held
    }

    fn lock(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The right to record or to queue a sequence.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory that may hold old data.
    pub(crate) fn allocate(self: &Arc<Self>, bytes: usize) -> Memory {
        let bytes = rounded(bytes);
        let kind = if recorder::is_active(self) {
            Kind::Arena
        } else {
            Kind::Result
        };
        let mut blocks = self.lock();
        let free = match kind {
            Kind::Arena => blocks.arena.take(bytes),
            _ => None,
        };
        let free = free.or_else(|| blocks.results.take(bytes));
        let address = free.unwrap_or_else(|| self.new_block(&mut blocks, bytes));
        self.block(&mut blocks, address, bytes, kind)
    }

    /// New memory with these values. The copy does not wait for the queue, but the queue for the copy.
    pub(crate) fn upload<T: Plain>(self: &Arc<Self>, values: &[T]) -> Memory {
        let source = abi::bytes(values);
        let bytes = rounded(source.len());
        let (memory, after) = {
            let mut blocks = self.lock();
            let (address, after) = match blocks.uploads.take(bytes) {
                Some((address, last_use)) => (address, Some(last_use)),
                None => (self.new_block(&mut blocks, bytes), None),
            };
            (self.block(&mut blocks, address, bytes, Kind::Upload), after)
        };
        self.uploaded
            .fetch_add(source.len() as u64, Ordering::Relaxed);
        recorder::uploaded(self, memory.number());
        // SAFETY: the memory is as large as the values.
        done(unsafe { self.device.write(memory.address(), source, after.as_ref()) });
        memory
    }

    /// The host's copy of memory, which no sequence can depend on.
    pub(crate) fn download(&self, out: &mut [u8], from: u64) {
        recorder::spoil(self, "the work reads words on the host");
        self.downloaded
            .fetch_add(out.len() as u64, Ordering::Relaxed);
        // SAFETY: the caller names memory in use that is as large.
        done(unsafe { self.device.read(out, from) });
    }

    /// A block that the device gives; where it has no memory left, it gets back what is free first.
    fn new_block(&self, blocks: &mut Blocks, bytes: usize) -> u64 {
        // SAFETY: not zero bytes.
        let first = unsafe { self.device.allocate(bytes) };
        let address = first.or_else(|_| {
            self.release(blocks);
            // SAFETY: as above.
            unsafe { self.device.allocate(bytes) }
        });
        let held = blocks.held;
        let address = done(address.map_err(|error| match error {
            DeviceError::OutOfMemory { .. } => DeviceError::OutOfMemory { asked: bytes, held },
            other => other,
        }));
        blocks.held += bytes;
        address
    }

    fn block(
        self: &Arc<Self>,
        blocks: &mut Blocks,
        address: u64,
        bytes: usize,
        kind: Kind,
    ) -> Memory {
        blocks.numbered += 1;
        blocks.arena_used += usize::from(kind == Kind::Arena);
        Memory::new(Block {
            pool: self.clone(),
            address,
            bytes,
            kind,
            number: blocks.numbered,
        })
    }

    fn release(&self, blocks: &mut Blocks) {
        let results = std::mem::take(&mut blocks.results).into_blocks();
        let uploads = std::mem::take(&mut blocks.uploads).into_blocks();
        let uploads = uploads.map(|(bytes, (address, _))| (bytes, address));
        for (bytes, address) in results.chain(uploads) {
            blocks.held -= bytes;
            // SAFETY: allocated with this size, and in nobody's use.
            unsafe { self.device.free(address, bytes) };
        }
    }

    /// Queues a kernel.
    ///
    /// # Safety
    /// The parameters are the kernel's, and their addresses those of memory in use that is large enough.
    pub(crate) unsafe fn launch<P: Params>(&self, launch: Launch, params: &P) {
        assert_eq!(size_of::<P>(), launch.kernel.params_size());
        if launch.grid.contains(&0) {
            return;
        }
        recorder::launched(self, launch, params);
        let params: *const c_void = std::ptr::from_ref(params).cast();
        // SAFETY: the caller's contract; the size is asserted.
        unsafe { self.launch_untyped(&launch, params) };
    }

    /// Queues a kernel that was recorded.
    ///
    /// # Safety
    /// As for [`Device::launch`].
    pub(crate) unsafe fn launch_untyped(&self, launch: &Launch, params: *const c_void) {
        self.kernels.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract.
        done(unsafe { self.device.launch(launch, params) });
    }

    /// Queues a graph of so many kernels.
    ///
    /// # Safety
    /// As for [`Device::run`].
    pub(crate) unsafe fn run(&self, graph: &Graph, kernels: usize) {
        self.graphs.fetch_add(1, Ordering::Relaxed);
        self.in_graphs.fetch_add(kernels as u64, Ordering::Relaxed);
        // SAFETY: the caller's contract.
        done(unsafe { self.device.run(graph) });
    }

    pub(crate) fn submitted(&self) -> Submitted {
        Submitted {
            kernels: self.kernels.load(Ordering::Relaxed),
            graphs: self.graphs.load(Ordering::Relaxed),
            in_graphs: self.in_graphs.load(Ordering::Relaxed),
        }
    }

    /// Copies words within the device.
    ///
    /// # Safety
    /// So many words lie at both addresses.
    pub(crate) unsafe fn copy_words(&self, target: u64, source: u64, count: usize) {
        let launch = word_copy(count);
        let params = CopyWordsParams {
            target,
            source,
            count: count as u64,
        };
        // SAFETY: the caller's contract.
        unsafe { self.launch(launch, &params) };
    }

    /// Blocks handed out so far; those that sequences have in use.
    pub(crate) fn numbers(&self) -> (u64, usize) {
        let blocks = self.lock();
        (blocks.numbered, blocks.arena_used)
    }

    /// Notes that the arena was used outside of a sequence.
    pub(crate) fn set_foreign(&self) {
        self.foreign.store(true, Ordering::Relaxed);
    }

    /// Whether it was, since the last call.
    pub(crate) fn take_foreign(&self) -> bool {
        self.foreign.swap(false, Ordering::Relaxed)
    }

    /// A sequence is kept.
    pub(crate) fn add_recording(&self) {
        self.recordings.fetch_add(1, Ordering::Relaxed);
    }

    /// A sequence is dropped; with the last one the arena's blocks serve results again.
    pub(crate) fn remove_recording(&self) {
        if self.recordings.fetch_sub(1, Ordering::Relaxed) == 1 {
            // Whoever has the turn needs the arena.
            let Ok(_turn) = self.turn.try_lock() else {
                return;
            };
            let mut blocks = self.lock();
            for (bytes, address) in std::mem::take(&mut blocks.arena).into_blocks() {
                blocks.results.put(bytes, address);
            }
        }
    }
}

/// How words are copied: enough blocks to fill a device, whose threads take several words each where there are many.
pub(crate) fn word_copy(count: usize) -> Launch {
    const THREADS: u32 = 256;
    const MOST_BLOCKS: usize = 4096;
    Launch {
        kernel: Kernel::CopyWords,
        grid: [
            count.div_ceil(THREADS as usize).min(MOST_BLOCKS) as u32,
            1,
            1,
        ],
        threads: THREADS,
        shared_bytes: 0,
    }
}

fn rounded(bytes: usize) -> usize {
    bytes.next_multiple_of(UNIT).max(UNIT)
}

/// Free blocks by size.
struct Free<T>(BTreeMap<usize, Vec<T>>);

impl<T> Default for Free<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Free<T> {
    fn take(&mut self, bytes: usize) -> Option<T> {
        let blocks = self.0.get_mut(&bytes)?;
        let block = blocks.pop();
        if blocks.is_empty() {
            self.0.remove(&bytes);
        }
        block
    }

    fn put(&mut self, bytes: usize, block: T) {
        self.0.entry(bytes).or_default().push(block);
    }

    fn into_blocks(self) -> impl Iterator<Item = (usize, T)> {
        let sizes = self.0.into_iter();
        sizes.flat_map(|(bytes, blocks)| blocks.into_iter().map(move |block| (bytes, block)))
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // A copy from the host into this block has to wait for what is queued now. Without a mark the device gets the block back.
        let mark = (self.kind == Kind::Upload).then(|| self.pool.device.mark());
        let mut blocks = self.pool.lock();
        match (self.kind, mark) {
            (Kind::Upload, Some(Ok(mark))) => blocks.uploads.put(self.bytes, (self.address, mark)),
            (Kind::Upload, _) => {
                blocks.held -= self.bytes;
                // SAFETY: allocated with this size, and nobody names it any more.
                unsafe { self.pool.device.free(self.address, self.bytes) };
            }
            (Kind::Result, _) => blocks.results.put(self.bytes, self.address),
            (Kind::Arena, _) => {
                blocks.arena_used -= 1;
                blocks.arena.put(self.bytes, self.address);
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut blocks = std::mem::take(&mut *self.lock());
        for (bytes, address) in std::mem::take(&mut blocks.arena).into_blocks() {
            blocks.results.put(bytes, address);
        }
        self.release(&mut blocks);
    }
}

/// A result of the device, where there is nobody to hand an error to: a computation in its midst has no other way out than running
/// out of host memory has. The panic carries the [`DeviceError`], for whoever catches it.
pub(crate) fn done<T>(result: Result<T, DeviceError>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => std::panic::panic_any(error),
    }
}
