//! Aligned word buffers, recycled through one process-wide free list.
//!
//! A steady computation takes and drops buffers of the same few sizes; handing them back to the operating system would
//! cost a page fault per page each time. Buffers of 2 MiB and more sit on huge pages.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

const CACHE_LINE: usize = 64;
const HUGE_PAGE: usize = 2 << 20;
const DEFAULT_LIMIT: usize = 4 << 30;

/// An owned allocation: initialised memory of `bytes` bytes.
struct Block {
    start: NonNull<u64>,
    bytes: usize,
}

// SAFETY: a block is plain memory with one owner.
unsafe impl Send for Block {}
// SAFETY: shared references only read.
unsafe impl Sync for Block {}

impl Block {
    /// Zeroed memory of at least `bytes` bytes.
    fn allocate(bytes: usize) -> Self {
        let layout = Self::layout(bytes);
        let large = layout.align() == HUGE_PAGE;
        // SAFETY: the layout has a size above zero.
        let raw = unsafe {
            if large {
                alloc(layout)
            } else {
                alloc_zeroed(layout)
            }
        };
        let Some(start) = NonNull::new(raw) else {
            handle_alloc_error(layout)
        };
        if large {
            #[cfg(target_os = "linux")]
            // SAFETY: the range is ours; the advice changes no contents, and its refusal does no harm.
            unsafe {
                libc::madvise(raw.cast(), bytes, libc::MADV_HUGEPAGE);
            }
            // SAFETY: the allocation has `bytes` bytes. Zeroed after the advice, so that the first touch takes huge pages.
            unsafe { raw.write_bytes(0, bytes) };
        }
        Self {
            start: start.cast(),
            bytes,
        }
    }

    fn layout(bytes: usize) -> Layout {
        let align = if bytes >= HUGE_PAGE {
            HUGE_PAGE
        } else {
            CACHE_LINE
        };
        Layout::from_size_align(bytes, align).expect("a buffer is smaller than the address space")
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout and freed once.
        unsafe { dealloc(self.start.as_ptr().cast(), Self::layout(self.bytes)) }
    }
}

/// Free blocks by size.
struct Pool {
    free: BTreeMap<usize, Vec<Block>>,
    held: usize,
    limit: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool {
    free: BTreeMap::new(),
    held: 0,
    limit: DEFAULT_LIMIT,
});

impl Pool {
    fn lock() -> MutexGuard<'static, Self> {
        POOL.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A free block of at least `bytes` bytes that wastes at most a quarter.
    fn take(&mut self, bytes: usize) -> Option<Block> {
        let (&size, _) = self.free.range(bytes..=bytes + bytes / 4).next()?;
        let blocks = self.free.get_mut(&size)?;
        let block = blocks.pop();
        if blocks.is_empty() {
            self.free.remove(&size);
        }
        self.held -= size;
        block
    }

    /// Takes free blocks out, largest first, until at most `limit` bytes are held.
    fn shrink(&mut self, limit: usize) -> Vec<Block> {
        let mut out = Vec::new();
        while self.held > limit {
            let Some((size, blocks)) = self.free.pop_last() else {
                break;
            };
            self.held -= size * blocks.len();
            out.extend(blocks);
        }
        out
    }
}

/// Bounds the memory that the free list may hold (4 GiB at first) and frees what exceeds it.
pub fn set_pool_limit(bytes: usize) {
    let mut pool = Pool::lock();
    pool.limit = bytes;
    let excess = pool.shrink(bytes);
    drop(pool);
    drop(excess);
}

/// Returns all free buffers to the operating system.
pub fn trim_pool() {
    let blocks = Pool::lock().shrink(0);
    drop(blocks);
}

/// The bytes that the free list holds now.
pub fn pool_bytes() -> usize {
    Pool::lock().held
}

/// Words aligned to 64 bytes, and to 2 MiB on huge pages from that size on.
pub(crate) struct Buffer {
    block: Option<Block>,
    len: usize,
}

impl Buffer {
    /// A buffer of `len` words that may hold old data.
    pub(crate) fn stale(len: usize) -> Self {
        let bytes = (len * size_of::<u64>()).max(CACHE_LINE);
        let unit = if bytes >= HUGE_PAGE {
            HUGE_PAGE
        } else {
            CACHE_LINE
        };
        let bytes = bytes.next_multiple_of(unit);
        let recycled = Pool::lock().take(bytes);
        Self {
            block: Some(recycled.unwrap_or_else(|| Block::allocate(bytes))),
            len,
        }
    }

    /// Forgets all words after the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    fn start(&self) -> *mut u64 {
        self.block
            .as_ref()
            .expect("present until drop")
            .start
            .as_ptr()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let Some(block) = self.block.take() else {
            return;
        };
        let mut pool = Pool::lock();
        if pool.held + block.bytes <= pool.limit {
            pool.held += block.bytes;
            pool.free.entry(block.bytes).or_default().push(block);
        } else {
            drop(pool);
            drop(block);
        }
    }
}

impl Deref for Buffer {
    type Target = [u64];

    #[inline]
    fn deref(&self) -> &[u64] {
        // SAFETY: the block holds at least `len` initialised words.
        unsafe { std::slice::from_raw_parts(self.start(), self.len) }
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u64] {
        // SAFETY: the block holds at least `len` initialised words, and we own it.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.len) }
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        let mut copy = Self::stale(self.len);
        copy.copy_from_slice(self);
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recycles_aligned_memory() {
        let words = (6 << 20) / 8 + 1;
        let mut a = Buffer::stale(words);
        a.fill(7);
        let address = a.as_ptr() as usize;
        assert_eq!(address % HUGE_PAGE, 0);
        drop(a);
        assert!(pool_bytes() >= 8 << 20);
        let b = Buffer::stale(words);
        assert_eq!(b[0], 7);
        assert_eq!(b.clone().len(), words);
        let small = Buffer::stale(16);
        assert_eq!(small.as_ptr() as usize % CACHE_LINE, 0);
        drop(b);
        trim_pool();
    }
}
