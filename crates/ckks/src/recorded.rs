//! Circuits that are recorded where a device computes, and replayed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use taciturn_ring::{Basis, KernelTime, Poly, Queue, Recording};

use crate::{Ciphertext, Evaluator, Scale};

/// Bytes of host memory for the circuits that an evaluator keeps, a few hundred per kernel; device memory is shared between them.
const KEPT_BYTES: usize = 512 << 20;
/// Circuits that are known, kept or not.
const KNOWN: usize = 1 << 14;

/// A circuit's number, which no other circuit of this process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CircuitId(u64);

impl CircuitId {
    /// A new one.
    #[expect(clippy::new_without_default, reason = "every call gives another")]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What two runs must share to queue the same kernels; keys and parameters are the evaluator's.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    circuit: CircuitId,
    variant: u64,
    /// Of each input: limbs, number of polynomials, bits of the scale.
    inputs: Vec<(Basis, usize, u64)>,
}

/// What is known of a circuit.
#[derive(Clone)]
enum State {
    /// It ran once: what it reads is on the device now.
    Seen,
    /// It can be replayed.
    Kept(Arc<Kept>),
    /// It cannot, for this reason.
    Refused(&'static str),
}

impl State {
    fn bytes(&self) -> usize {
        match self {
            Self::Kept(kept) => kept.recording.host_bytes(),
            Self::Seen | Self::Refused(_) => 0,
        }
    }
}

struct Kept {
    recording: Box<dyn Recording>,
    /// Of each result: polynomials and scale.
    outputs: Vec<(usize, Scale)>,
}

/// What is computed from the inputs.
type Circuit<'w, E> = dyn Fn(&[&Ciphertext]) -> Result<Vec<Ciphertext>, E> + 'w;

/// The circuits of an evaluator.
#[derive(Default)]
pub(crate) struct Recordings(Mutex<Table>);

#[derive(Default)]
struct Table {
    states: HashMap<Key, (u64, State)>,
    clock: u64,
    /// Of all states.
    bytes: usize,
}

impl Recordings {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, key: &Key) -> Option<State> {
        let mut table = self.lock();
        table.clock += 1;
        let clock = table.clock;
        let (used, state) = table.states.get_mut(key)?;
        *used = clock;
        Some(state.clone())
    }

    fn record<E>(
        &self,
        queue: &dyn Queue,
        key: Key,
        inputs: &[&Ciphertext],
        work: &Circuit<'_, E>,
    ) -> Result<Vec<Ciphertext>, E> {
        let shapes: Vec<(usize, Scale)> = inputs.iter().map(|ct| shape(ct)).collect();
        let mut outcome = Ok(Vec::new());
        let recorded = queue.record(&polys_of(inputs), &mut |fixed: &[Poly]| {
            let inputs = ciphertexts(fixed.to_vec(), &shapes);
            match work(&inputs.iter().collect::<Vec<_>>()) {
                Ok(outputs) => {
                    outcome = Ok(outputs.iter().map(shape).collect());
                    Some(outputs.into_iter().flat_map(|ct| ct.polys).collect())
                }
                Err(error) => {
                    outcome = Err(error);
                    None
                }
            }
        });
        let outputs = outcome?;
        let polys = recorded
            .results
            .expect("the work gave results, and a queue hands them on");
        let results = ciphertexts(polys, &outputs);
        let state = match recorded.recording {
            Ok(recording) => State::Kept(Arc::new(Kept { recording, outputs })),
            Err(reason) => State::Refused(reason),
        };
        self.set(key, state);
        Ok(results)
    }

    /// The least recently used make room.
    fn set(&self, key: Key, state: State) {
        let mut table = self.lock();
        table.clock += 1;
        let (clock, bytes) = (table.clock, state.bytes());
        let before = table.states.insert(key, (clock, state));
        table.bytes += bytes;
        table.bytes -= before.map_or(0, |(_, state)| state.bytes());
        while table.states.len() > KNOWN || table.bytes > KEPT_BYTES {
            let others = table.states.iter().filter(|(_, (used, _))| *used < clock);
            let oldest = others.min_by_key(|(_, (used, _))| *used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                return;
            };
            if let Some((_, state)) = table.states.remove(&oldest) {
                table.bytes -= state.bytes();
            }
        }
    }
}

impl Evaluator {
    /// Runs a circuit; on a device the second run is recorded and later ones are replayed, which takes one call for all kernels. Results are
    /// the same.
    ///
    /// The circuit computes with this evaluator and depends on nothing but the inputs and what its number and `variant` name. What it reads
    /// beside the inputs must stay as it is for as long as the number is in use.
    pub fn recorded<E>(
        &self,
        circuit: CircuitId,
        variant: u64,
        inputs: &[&Ciphertext],
        work: impl Fn(&[&Ciphertext]) -> Result<Vec<Ciphertext>, E>,
    ) -> Result<Vec<Ciphertext>, E> {
        let queue = self.params().ring().queue();
        let queue = queue.filter(|queue| !queue.is_recording());
        let (Some(queue), Some(recordings)) = (queue, self.recordings()) else {
            return work(inputs);
        };
        let shape = |ct: &&Ciphertext| (ct.basis(), ct.polys.len(), ct.scale.0.to_bits());
        let key = Key {
            circuit,
            variant,
            inputs: inputs.iter().map(shape).collect(),
        };
        match recordings.get(&key) {
            None => {
                let outputs = work(inputs)?;
                recordings.set(key, State::Seen);
                Ok(outputs)
            }
            Some(State::Refused(_)) => work(inputs),
            Some(State::Seen) => recordings.record(queue, key, inputs, &work),
            Some(State::Kept(kept)) => {
                let polys = kept.recording.replay(&polys_of(inputs));
                Ok(ciphertexts(polys, &kept.outputs))
            }
        }
    }

    /// Why circuits are not replayed that ran at least twice.
    pub fn refused_recordings(&self) -> Vec<&'static str> {
        let reasons = self.states().into_iter().filter_map(|state| match state {
            State::Refused(reason) => Some(reason),
            State::Seen | State::Kept(_) => None,
        });
        reasons.collect()
    }

    /// Why the kernels of replayed circuits are queued one by one, where a device could not take them as one.
    pub fn queued_singly(&self) -> Vec<String> {
        let reasons = self.states().into_iter().filter_map(|state| match state {
            State::Kept(kept) => kept.recording.queued_singly(),
            State::Seen | State::Refused(_) => None,
        });
        reasons.collect()
    }

    /// For measurements: the kernels in each kept circuit, by themselves, each queued `repeats` times.
    pub fn kernel_times(&self, repeats: u32) -> Vec<Vec<KernelTime>> {
        let times = self.states().into_iter().filter_map(|state| match state {
            State::Kept(kept) => Some(kept.recording.profile(repeats)),
            State::Seen | State::Refused(_) => None,
        });
        times.collect()
    }

    fn states(&self) -> Vec<State> {
        let Some(recordings) = self.recordings() else {
            return Vec::new();
        };
        let table = recordings.lock();
        table
            .states
            .values()
            .map(|(_, state)| state.clone())
            .collect()
    }
}

fn shape(ct: &Ciphertext) -> (usize, Scale) {
    (ct.polys.len(), ct.scale)
}

fn polys_of<'a>(inputs: &[&'a Ciphertext]) -> Vec<&'a Poly> {
    inputs.iter().flat_map(|ct| &ct.polys).collect()
}

fn ciphertexts(polys: Vec<Poly>, shapes: &[(usize, Scale)]) -> Vec<Ciphertext> {
    let mut polys = polys.into_iter();
    let ciphertext = |&(count, scale): &(usize, Scale)| Ciphertext {
        polys: polys.by_ref().take(count).collect(),
        scale,
    };
    shapes.iter().map(ciphertext).collect()
}
