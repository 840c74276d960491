//! Polynomials' words in device memory.

use std::sync::Arc;

use taciturn_ring::DeviceMemory;

use crate::abi;
use crate::pool::{Block, Pool, done};
use crate::recorder;

/// A block in use. Recorded sequences hold blocks too, which therefore outlive a polynomial whose words they read.
pub(crate) struct Memory(Arc<Block>);

impl Memory {
    pub(crate) fn new(block: Block) -> Self {
        Self(Arc::new(block))
    }

    /// Where it is, for the parameters of a launch that this thread queues next.
    pub(crate) fn address(&self) -> u64 {
        recorder::used(&self.0);
        self.0.address
    }

    /// Its number among the blocks handed out.
    pub(crate) fn number(&self) -> u64 {
        self.0.number
    }

    /// The number of its device's memory.
    pub(crate) fn space(&self) -> u64 {
        self.pool().device().space()
    }

    /// Whether it is in the arena.
    pub(crate) fn block(&self) -> &Arc<Block> {
        &self.0
    }

    fn pool(&self) -> &Arc<Pool> {
        &self.0.pool
    }
}

impl DeviceMemory for Memory {
    fn download(&self, out: &mut [u64]) {
        let bytes = abi::bytes_mut(out);
        assert!(bytes.len() <= self.0.bytes, "a download beyond the memory");
        self.pool().download(bytes, self.0.address);
    }

    fn duplicate(&self, words: usize) -> Box<dyn DeviceMemory> {
        let bytes = words * size_of::<u64>();
        assert!(bytes <= self.0.bytes, "a copy beyond the memory");
        let copy = self.pool().allocate(bytes);
        // SAFETY: within both, as asserted and allocated.
        unsafe {
            self.pool()
                .copy_words(copy.address(), self.address(), words)
        };
        Box::new(copy)
    }

    fn wipe(&mut self) {
        recorder::spoil(self.pool(), "the work wipes memory");
        // SAFETY: all of the memory.
        done(unsafe { self.pool().device().zero(self.0.address, self.0.bytes) });
    }
}
