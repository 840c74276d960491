//! Scratch memory is reused: once warm, operations take no memory of a limb's size from the allocator.
//!
//! A program of its own with a single test: the allocator counts for the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use taciturn_circuits::{
    BootstrapShape, Bootstrapper, MESSAGE_RATIO_BITS, Values, slots_to_coeffs_levels,
};
use taciturn_ckks::{
    Complex64, Evaluator, GadgetName, KeyId, KeyRequest, Level, Parameters, named,
};
use taciturn_ring::Basis;
use taciturn_secret::Keyholder;

/// A limb of the test's ring, 64 KiB: the least that a polynomial takes.
const LARGE: usize = 8 << 13;

static LARGE_ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counting what is large.
struct Counting;

impl Counting {
    fn count(bytes: usize) {
        if bytes >= LARGE {
            LARGE_ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
    }
}

// SAFETY: every call is the system allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size());
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size());
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::count(size);
        // SAFETY: the caller keeps the contract.
        unsafe { System.realloc(start, layout, size) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Large allocations of `f`, run a third time: by then the pool holds every size.
fn when_warm(mut f: impl FnMut()) -> usize {
    f();
    f();
    let before = LARGE_ALLOCATIONS.load(Ordering::Relaxed);
    f();
    LARGE_ALLOCATIONS.load(Ordering::Relaxed) - before
}

#[test]
fn steady_work_takes_no_large_memory() {
    // On one thread the buffers in use at any time are the same in every run.
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    one.unwrap().install(|| {
        let mut client = Keyholder::new(&named("insecure-n13").unwrap()).unwrap();
        let first = LARGE_ALLOCATIONS.load(Ordering::Relaxed);
        assert!(first > 0, "the allocator counts");
        arithmetic(&mut client);
        let full = client.params().log_slots();
        for (log_slots, values) in [
            (0, Values::Real),
            (4, Values::Real),
            (full - 1, Values::Real),
            (full, Values::Complex),
        ] {
            bootstrap(&mut client, log_slots, values);
        }
    });
}

fn values(d: usize) -> Vec<Complex64> {
    (0..d)
        .map(|i| Complex64::new((i % 17) as f64 / 17.0, 0.0))
        .collect()
}

fn keys(params: &Parameters, rotations: &[i64], limbs: Basis) -> KeyRequest {
    let mut request = KeyRequest::default();
    let turns = rotations
        .iter()
        .map(|&k| Evaluator::galois_of_rotation(params, k));
    for galois in turns.chain([1, Evaluator::galois_of_conjugation(params)]) {
        let gadget = GadgetName::Model;
        request.add(KeyId { gadget, galois }, limbs);
    }
    request
}

fn arithmetic(client: &mut Keyholder) {
    let params = client.params().clone();
    let level = params.max_level();
    let steps = [1, 2, 3, 4];
    let ev = client
        .evaluator(&keys(&params, &steps, params.level_basis(level)))
        .unwrap();
    let values = values(params.slots());
    let ct = client.encrypt(&values, level).unwrap().expand(&params);
    let encoder = client.encoder();
    let integers = encoder
        .encode_integers(&values, params.scale(level))
        .unwrap();
    let check = |name: &str, f: &mut dyn FnMut()| {
        assert_eq!(when_warm(f), 0, "large allocations of {name}");
    };
    check("a rotation", &mut || drop(ev.rotate(&ct, 1).unwrap()));
    check("hoisted rotations", &mut || {
        drop(ev.rotate_many(&ct, &steps).unwrap());
    });
    check("a conjugation", &mut || drop(ev.conjugate(&ct).unwrap()));
    check("a product", &mut || {
        drop(ev.relinearize_rescale(&ev.mul(&ct, &ct).unwrap()).unwrap());
    });
    check("a plain product", &mut || {
        let plaintext = encoder.to_plaintext(&integers, ct.basis());
        drop(ev.rescale(&ev.mul_plain(&ct, &plaintext).unwrap()).unwrap());
    });
    check("a sum", &mut || {
        let mut sum = ct.clone();
        ev.add_assign(&mut sum, &ct).unwrap();
    });
}

fn bootstrap(client: &mut Keyholder, log_slots: u32, content: Values) {
    let params = client.params().clone();
    let shape = BootstrapShape {
        log_slots,
        bound: 1.0,
        values: content,
        message_ratio_bits: MESSAGE_RATIO_BITS,
    };
    let target = Level(9);
    let bootstrapper = Bootstrapper::new(client.encoder(), shape).unwrap();
    let mut request = KeyRequest::default();
    bootstrapper.request_keys(target, &mut request).unwrap();
    let ev = client.evaluator(&request).unwrap();
    let level = Level(slots_to_coeffs_levels(log_slots));
    let ct = client.encrypt(&values(1 << log_slots), level).unwrap();
    let ct = ct.expand(&params);
    let encoder = client.encoder();
    let large = when_warm(|| {
        drop(bootstrapper.bootstrap(encoder, &ev, &ct, target).unwrap());
    });
    assert_eq!(
        large, 0,
        "large allocations of a bootstrap of 2^{log_slots} slots"
    );
}
