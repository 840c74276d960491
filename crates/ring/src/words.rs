//! The words of a polynomial: in host memory, in a device's memory, or in both.
//!
//! Whoever computes on a device leaves the words there; reading them on the host brings them over once. When both copies
//! exist they are equal: whoever may write takes one of them and drops the other.

use crate::{Seed, buffer::Buffer};
use std::any::Any;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

/// Words in the memory of a device, owned by a polynomial.
pub trait DeviceMemory: Any + Send + Sync {
    /// Copies the first `out.len()` words to the host, after everything that writes them.
    fn download(&self, out: &mut [u64]);

    /// A copy of the first `words` words.
    fn duplicate(&self, words: usize) -> Box<dyn DeviceMemory>;

    /// Overwrites all words with zeros.
    fn wipe(&mut self);
}

/// `len` words; at least one of the copies is there.
pub(crate) struct Words {
    len: usize,
    host: OnceLock<Buffer>,
    device: OnceLock<Box<dyn DeviceMemory>>,
    /// Of words that are as they were expanded from it.
    seed: Option<Arc<Seed>>,
}

impl Words {
    /// Words in host memory that may hold old data.
    pub(crate) fn stale(len: usize) -> Self {
        Self::on_host(Buffer::stale(len), len)
    }

    fn on_host(buffer: Buffer, len: usize) -> Self {
        Self {
            len,
            host: OnceLock::from(buffer),
            device: OnceLock::new(),
            seed: None,
        }
    }

    /// Words that a device holds.
    pub(crate) fn on_device(memory: Box<dyn DeviceMemory>, len: usize) -> Self {
        Self {
            len,
            host: OnceLock::new(),
            device: OnceLock::from(memory),
            seed: None,
        }
    }

    /// The number of words, wherever they are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether the host has no copy.
    pub(crate) fn is_away(&self) -> bool {
        self.host.get().is_none()
    }

    /// Says that the words are what a seed stands for.
    pub(crate) fn set_seed(&mut self, seed: [u8; 32]) {
        self.seed = Some(Arc::new(Seed::new(seed)));
    }

    /// The seed that the words stand for, while nobody has written them.
    pub(crate) fn seed(&self) -> Option<&Seed> {
        self.seed.as_deref()
    }

    /// Forgets all words after the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.seed = None;
        if let Some(buffer) = self.host.get_mut() {
            buffer.truncate(len);
        }
    }

    /// The device's copy, made by `upload` where there is none.
    pub(crate) fn device<M: DeviceMemory>(&self, upload: impl FnOnce(&[u64]) -> M) -> &M {
        self.device_or(|| upload(self.host()))
    }

    /// The device's copy, made by `make` where there is none.
    pub(crate) fn device_or<M: DeviceMemory>(&self, make: impl FnOnce() -> M) -> &M {
        let memory: &dyn Any = &**self.device.get_or_init(|| Box::new(make()));
        memory.downcast_ref().expect(OTHER_BACKEND)
    }

    /// Whether a device has a copy.
    pub(crate) fn has_device(&self) -> bool {
        self.device.get().is_some()
    }

    /// The device's copy, to be written: the host's is dropped.
    pub(crate) fn device_mut<M: DeviceMemory>(
        &mut self,
        upload: impl FnOnce(&[u64]) -> M,
    ) -> &mut M {
        self.device::<M>(upload);
        self.host.take();
        self.seed = None;
        let memory: &mut dyn Any = &mut **self.device.get_mut().expect("made above");
        memory.downcast_mut().expect(OTHER_BACKEND)
    }

    /// Overwrites every copy with zeros.
    pub(crate) fn wipe(&mut self) {
        self.seed = None;
        if let Some(memory) = self.device.get_mut() {
            memory.wipe();
        }
        if let Some(buffer) = self.host.get_mut() {
            buffer.fill(0);
            // The memory goes back to a pool: nobody may find that writing it was needless.
            std::hint::black_box(&buffer[..]);
        }
    }

    #[inline]
    fn host(&self) -> &Buffer {
        self.host.get_or_init(|| {
            let mut buffer = Buffer::stale(self.len);
            let memory = self.device.get().expect("words are somewhere");
            memory.download(&mut buffer);
            buffer
        })
    }
}

const OTHER_BACKEND: &str = "a polynomial stays with the backend that computed it";

impl Deref for Words {
    type Target = [u64];

    #[inline]
    fn deref(&self) -> &[u64] {
        self.host()
    }
}

impl DerefMut for Words {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u64] {
        self.host();
        self.device.take();
        self.seed = None;
        self.host.get_mut().expect("made above")
    }
}

/// Stays where the words are.
impl Clone for Words {
    fn clone(&self) -> Self {
        let mut copy = match self.device.get() {
            Some(memory) => Self::on_device(memory.duplicate(self.len), self.len),
            None => Self::on_host(self.host().clone(), self.len),
        };
        copy.seed.clone_from(&self.seed);
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device whose memory is the host's.
    struct Mirror(Vec<u64>);

    impl DeviceMemory for Mirror {
        fn download(&self, out: &mut [u64]) {
            out.copy_from_slice(&self.0[..out.len()]);
        }

        fn duplicate(&self, words: usize) -> Box<dyn DeviceMemory> {
            Box::new(Self(self.0[..words].to_vec()))
        }

        fn wipe(&mut self) {
            self.0.fill(0);
        }
    }

    fn upload(words: &[u64]) -> Mirror {
        Mirror(words.to_vec())
    }

    #[test]
    fn the_copy_written_last_is_the_one_read() {
        let mut words = Words::stale(8);
        words.fill(0);
        words[3] = 5;
        assert_eq!(words.device(upload).0[3], 5);
        assert!(!words.is_away());
        words.device_mut(upload).0[3] = 6;
        assert!(words.is_away());
        let copy = words.clone();
        assert!(copy.is_away());
        assert_eq!((words[3], copy[3]), (6, 6));
        words[3] = 7;
        assert_eq!(words.device(upload).0[3], 7);
        words.truncate(4);
        assert_eq!((words.clone().len(), &words[..]), (4, &[0, 0, 0, 7][..]));
        words.wipe();
        assert_eq!((words.device(upload).0[3], words[3]), (0, 0));
    }

    #[test]
    fn a_seed_stays_until_words_are_written() {
        let writes: [fn(&mut Words); 4] = [
            |words| words[0] = 1,
            |words| words.device_mut(upload).0[0] = 1,
            |words| words.truncate(4),
            Words::wipe,
        ];
        for write in writes {
            let mut words = Words::stale(8);
            words.set_seed([3; 32]);
            words.device(upload);
            assert_eq!(words.seed().map(Seed::bytes), Some(&[3; 32]));
            assert!(words.clone().seed().is_some());
            write(&mut words);
            assert!(words.seed().is_none() && words.clone().seed().is_none());
        }
    }
}
