//! What a thread queues while it records a sequence.
//!
//! A sequence is what one thread queues between two moments. It may be queued again if it reads nothing that somebody else may change and
//! writes nothing that somebody else reads: its inputs and what it writes are blocks of the arena, everything else that it reads was there
//! before or came from the host, and is kept. Whatever breaks this spoils the recording, never the results.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::Launch;
use crate::params::{Access, Cost, Params, words_of};
use crate::pool::{Block, Kind, Pool};

thread_local! {
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

/// One launch of a sequence.
pub(crate) struct RecordedLaunch {
    pub(crate) launch: Launch,
    /// The kernel's struct without the zeros at its end, of which most have many.
    params: Box<[u64]>,
    pub(crate) accesses: Vec<Access>,
    pub(crate) cost: Cost,
}

impl RecordedLaunch {
    /// The kernel's struct.
    pub(crate) fn params(&self) -> Vec<u64> {
        let mut params = vec![0; self.launch.kernel.params_size() / size_of::<u64>()];
        params[..self.params.len()].copy_from_slice(&self.params);
        params
    }

    /// Bytes that it takes without its accesses.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.params)
    }
}

/// The recording in progress.
pub(crate) struct Recorder {
    pool: Arc<Pool>,
    /// Launches are kept from now on; before, only the arena is in use.
    open: bool,
    /// Blocks with higher numbers are younger than the recording.
    start: u64,
    pub(crate) launches: Vec<RecordedLaunch>,
    /// What is read beside the arena, by address.
    pub(crate) pins: HashMap<u64, Arc<Block>>,
    /// Addresses of the arena that were used.
    arena: HashSet<u64>,
    uploads: HashSet<u64>,
    pub(crate) spoiled: Option<&'static str>,
}

/// Ends the recording on this thread, a panic in the work included.
pub(crate) struct Guard(());

impl Drop for Guard {
    fn drop(&mut self) {
        RECORDER.take();
    }
}

/// Begins: results come from the arena now.
pub(crate) fn begin(pool: &Arc<Pool>) -> Guard {
    let recorder = Recorder {
        pool: pool.clone(),
        open: false,
        start: pool.numbers().0,
        launches: Vec::new(),
        pins: HashMap::new(),
        arena: HashSet::new(),
        uploads: HashSet::new(),
        spoiled: None,
    };
    RECORDER.set(Some(recorder));
    Guard(())
}

/// Launches are kept from now on.
pub(crate) fn open(pool: &Pool) {
    with(pool, |recorder| recorder.open = true);
}

/// Ends, with what was kept.
pub(crate) fn finish(guard: Guard) -> Option<Recorder> {
    let recorder = RECORDER.take();
    drop(guard);
    recorder
}

fn with<R>(pool: &Pool, f: impl FnOnce(&mut Recorder) -> R) -> Option<R> {
    RECORDER.with_borrow_mut(|recorder| {
        let recorder = recorder.as_mut()?;
        std::ptr::eq(&*recorder.pool, pool).then(|| f(recorder))
    })
}

/// Whether this thread records on this pool.
pub(crate) fn is_active(pool: &Pool) -> bool {
    with(pool, |_| ()).is_some()
}

/// The sequence cannot be kept.
pub(crate) fn spoil(pool: &Pool, reason: &'static str) {
    with(pool, |recorder| {
        recorder.spoiled.get_or_insert(reason);
    });
}

/// A block came from the host.
pub(crate) fn uploaded(pool: &Pool, number: u64) {
    with(pool, |recorder| recorder.uploads.insert(number));
}

/// A block is named by the next launch.
pub(crate) fn used(block: &Arc<Block>) {
    let recording = with(&block.pool, |recorder| match block.kind {
        Kind::Arena => {
            recorder.arena.insert(block.address);
        }
        // The inputs, of which the sequence has copies.
        Kind::Result | Kind::Upload if !recorder.open => {}
        Kind::Result | Kind::Upload => {
            let young = block.number > recorder.start;
            if young && !recorder.uploads.contains(&block.number) {
                recorder.spoiled.get_or_insert(ANOTHER_THREAD);
            }
            recorder
                .pins
                .entry(block.address)
                .or_insert_with(|| block.clone());
        }
    });
    if recording.is_none() && block.kind == Kind::Arena {
        block.pool.set_foreign();
    }
}

/// Why a sequence is not kept whose work was shared.
pub(crate) const ANOTHER_THREAD: &str = "another thread takes part in the work";

/// A launch.
pub(crate) fn launched<P: Params>(pool: &Pool, launch: Launch, params: &P) {
    with(pool, |recorder| {
        if !recorder.open {
            return;
        }
        let accesses = params.accesses(launch.kernel);
        let mut writes = accesses.iter().filter(|access| access.write);
        if writes.any(|access| !recorder.arena.contains(&access.address)) {
            recorder
                .spoiled
                .get_or_insert("the work writes what is not its own");
        }
        let words = words_of(params);
        let used = words
            .iter()
            .rposition(|&word| word != 0)
            .map_or(0, |last| last + 1);
        recorder.launches.push(RecordedLaunch {
            launch,
            params: words[..used].into(),
            accesses,
            cost: params.cost(launch.kernel),
        });
    });
}
