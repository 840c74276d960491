//! Device memory: a pool of blocks, and polynomials' words in them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use taciturn_ring::DeviceMemory;

use crate::abi::{self, Plain};
use crate::{Device, DeviceError};

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

/// A device and its free blocks, by size.
pub(crate) struct Pool {
    device: Arc<dyn Device>,
    free: Mutex<Free>,
    uploaded: AtomicU64,
    downloaded: AtomicU64,
}

#[derive(Default)]
struct Free {
    blocks: BTreeMap<usize, Vec<u64>>,
    /// Bytes of all blocks, free or in use.
    held: usize,
}

impl Pool {
    pub(crate) fn new(device: Arc<dyn Device>) -> Self {
        Self {
            device,
            free: Mutex::default(),
            uploaded: AtomicU64::new(0),
            downloaded: AtomicU64::new(0),
        }
    }

    pub(crate) fn device(&self) -> &dyn Device {
        &*self.device
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

    fn lock(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory that may hold old data. Where the device has none left, free blocks of other sizes go back to it first.
    pub(crate) fn allocate(self: &Arc<Self>, bytes: usize) -> Memory {
        let bytes = bytes.next_multiple_of(UNIT).max(UNIT);
        let mut free = self.lock();
        let address = match free.take(bytes) {
            Some(address) => address,
            None => {
                // SAFETY: not zero bytes.
                let first = unsafe { self.device.allocate(bytes) };
                let address = first.or_else(|_| {
                    self.release(&mut free);
                    // SAFETY: as above.
                    unsafe { self.device.allocate(bytes) }
                });
                let held = free.held;
                free.held += bytes;
                done(address.map_err(|_| DeviceError::OutOfMemory { asked: bytes, held }))
            }
        };
        Memory {
            pool: self.clone(),
            address,
            bytes,
        }
    }

    /// New memory with these values.
    pub(crate) fn upload<T: Plain>(self: &Arc<Self>, values: &[T]) -> Memory {
        let memory = self.allocate(size_of_val(values));
        let bytes = abi::bytes(values);
        self.uploaded
            .fetch_add(bytes.len() as u64, Ordering::Relaxed);
        // SAFETY: the memory is as large as the values.
        done(unsafe { self.device.write(memory.address, bytes) });
        memory
    }

    fn release(&self, free: &mut Free) {
        for (bytes, blocks) in std::mem::take(&mut free.blocks) {
            free.held -= bytes * blocks.len();
            for address in blocks {
                // SAFETY: allocated with this size, and in nobody's use.
                unsafe { self.device.free(address, bytes) };
            }
        }
    }
}

impl Free {
    fn take(&mut self, bytes: usize) -> Option<u64> {
        let blocks = self.blocks.get_mut(&bytes)?;
        let address = blocks.pop();
        if blocks.is_empty() {
            self.blocks.remove(&bytes);
        }
        address
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut free = std::mem::take(&mut *self.lock());
        self.release(&mut free);
    }
}

/// A result of the device, where there is nobody to hand an error to: a computation in its midst has no other way out than running
/// out of host memory has.
pub(crate) fn done<T>(result: Result<T, DeviceError>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}

/// A block in use; back in the pool when dropped.
pub(crate) struct Memory {
    pool: Arc<Pool>,
    address: u64,
    bytes: usize,
}

impl Memory {
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// The number of its device's memory.
    pub(crate) fn space(&self) -> u64 {
        self.pool.device.space()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let mut free = self.pool.lock();
        free.blocks
            .entry(self.bytes)
            .or_default()
            .push(self.address);
    }
}

impl DeviceMemory for Memory {
    fn download(&self, out: &mut [u64]) {
        let bytes = abi::bytes_mut(out);
        assert!(bytes.len() <= self.bytes, "a download beyond the memory");
        let count = bytes.len() as u64;
        self.pool.downloaded.fetch_add(count, Ordering::Relaxed);
        // SAFETY: within the memory, as asserted.
        done(unsafe { self.pool.device.read(bytes, self.address) });
    }

    fn duplicate(&self, words: usize) -> Box<dyn DeviceMemory> {
        let bytes = words * size_of::<u64>();
        assert!(bytes <= self.bytes, "a copy beyond the memory");
        let copy = self.pool.allocate(bytes);
        // SAFETY: within both, as asserted and allocated.
        done(unsafe { self.pool.device.copy(copy.address, self.address, bytes) });
        Box::new(copy)
    }

    fn wipe(&mut self) {
        // SAFETY: all of the memory.
        done(unsafe { self.pool.device.zero(self.address, self.bytes) });
    }
}
