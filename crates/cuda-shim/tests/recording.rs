//! Sequences: recorded once, replayed for other inputs with the portable backend's words, and refused where they cannot be kept.

use std::sync::{Arc, Mutex};

use taciturn_cuda::{CudaBackend, DeviceError};
use taciturn_cuda_shim::{Order, Shim};
use taciturn_ring::{
    BackendKind, Basis, Form, Poly, Queue, Recorded, Recording, Ring, Work, primes_near,
};

const LIMBS: usize = 6;
const SPECIAL: usize = 2;
/// Of all inputs, and of all results.
const COPIES: u64 = 2;
const ORDERS: [Order; 4] = [
    Order::Ascending,
    Order::Descending,
    Order::Shuffled(3),
    Order::Shuffled(4),
];

struct Rings {
    host: Ring,
    device: Ring,
    shim: Arc<Shim>,
    backend: Arc<CudaBackend>,
}

fn rings(log_n: u32, order: Order) -> Rings {
    let primes = primes_near(2f64.powi(45), log_n, LIMBS + SPECIAL, &[]).unwrap();
    let shim = Arc::new(Shim::new(order));
    let backend = Arc::new(CudaBackend::new(shim.clone()));
    Rings {
        host: Ring::with_backend(log_n, &primes, BackendKind::Portable).unwrap(),
        device: Ring::from_backend(log_n, &primes, backend.clone()).unwrap(),
        shim,
        backend,
    }
}

impl Rings {
    fn queue(&self) -> &dyn Queue {
        &*self.backend
    }

    fn record(&self, inputs: &[&Poly], work: &mut Work<'_>) -> Recorded {
        self.queue().record(inputs, work)
    }
}

/// A key and how to switch with it: ModUp, key product with an automorphism, ModDown, and some products around.
struct Circuit {
    digits: Vec<Basis>,
    key: Vec<(Poly, Poly)>,
    weight: Poly,
}

impl Circuit {
    fn new(ring: &Ring) -> Self {
        let uniform = |seed: u8| ring.uniform(&[seed; 32], ring.full_basis());
        Self {
            digits: vec![Basis::range(0..3), Basis::range(3..6)],
            key: (0..2).map(|j| (uniform(10 + j), uniform(20 + j))).collect(),
            weight: uniform(30),
        }
    }

    fn run(&self, ring: &Ring, input: &[Poly]) -> Vec<Poly> {
        let (a, b) = (&input[0], &input[1]);
        let coefficients = ring.intt_new(a);
        let digits = ring.extend_digits(&coefficients, a, &self.digits, ring.full_basis());
        let (mut x, y) = ring.key_product_automorphism(&digits, &self.key, 5, ring.full_basis());
        ring.add_assign(&mut x, &self.weight);
        let mut out = ring.mod_down_all(&[x, y], Basis::range(LIMBS..LIMBS + SPECIAL));
        // Two products that do not depend on each other, and one that does on both.
        let (left, right) = (ring.mul_new(&out[0], b), ring.mul_new(&out[1], a));
        out.push(ring.mul_new(&left, &right));
        ring.add_assign(&mut out[0], &left);
        out[1].clone_from(&right);
        out
    }
}

fn inputs(ring: &Ring, seed: u8) -> Vec<Poly> {
    let basis = Basis::range(0..LIMBS);
    (0..2)
        .map(|k| ring.uniform(&[seed + k; 32], basis))
        .collect()
}

fn refs(polys: &[Poly]) -> Vec<&Poly> {
    polys.iter().collect()
}

fn kept(recorded: Recorded) -> (Vec<Poly>, Box<dyn Recording>) {
    (recorded.results.unwrap(), recorded.recording.unwrap())
}

#[test]
fn replayed_results_equal_the_portable_backends() {
    for (log_n, order) in [4, 5, 13].into_iter().zip(ORDERS).chain([(6, ORDERS[3])]) {
        let rings = rings(log_n, order);
        let (host, device) = (Circuit::new(&rings.host), Circuit::new(&rings.device));
        let expected = |seed| host.run(&rings.host, &inputs(&rings.host, seed));
        assert!(device.run(&rings.device, &inputs(&rings.device, 50)) == expected(50));

        let first = inputs(&rings.device, 60);
        let (results, recording) = kept(rings.record(&refs(&first), &mut |fixed: &[Poly]| {
            Some(device.run(&rings.device, fixed))
        }));
        assert!(results == expected(60), "{order:?}");
        let mut last = None;
        for seed in [70, 80, 60] {
            let others = inputs(&rings.device, seed);
            let before = rings.shim.launches();
            let replayed = recording.replay(&refs(&others));
            let launches = rings.shim.launches() - before;
            assert_eq!(launches, recording.launches() as u64 + COPIES);
            assert!(replayed == expected(seed), "{order:?} {seed}");
            // A result is the caller's: later replays leave it alone.
            if let Some((seed, polys)) = last.replace((seed, replayed)) {
                assert!(polys == expected(seed));
            }
        }
    }
}

#[test]
fn a_sequence_keeps_what_it_reads() {
    let rings = rings(5, Order::Descending);
    let host = Circuit::new(&rings.host);
    let (recording, used) = {
        let device = Circuit::new(&rings.device);
        device.run(&rings.device, &inputs(&rings.device, 50));
        let first = inputs(&rings.device, 60);
        let (_, recording) = kept(rings.record(&refs(&first), &mut |fixed: &[Poly]| {
            Some(device.run(&rings.device, fixed))
        }));
        (recording, rings.backend.held_bytes())
    };
    // The key is gone; others take memory and write it.
    let others: Vec<Poly> = (0..40)
        .map(|k| {
            rings
                .device
                .zero(Basis::range(0..1 + k % 8), Form::Evaluation)
        })
        .collect();
    let copies: Vec<Poly> = others
        .iter()
        .map(|other| rings.device.mul_new(other, other))
        .collect();
    let next = inputs(&rings.device, 70);
    let expected = host.run(&rings.host, &inputs(&rings.host, 70));
    assert!(recording.replay(&refs(&next)) == expected);
    assert!(
        copies
            .iter()
            .all(|copy| copy.words().iter().all(|&word| word == 0))
    );
    // Memory goes back when the sequence is dropped, and is used again.
    drop((recording, others, copies));
    let before = rings.backend.held_bytes();
    assert!(before >= used);
    let device = Circuit::new(&rings.device);
    assert!(device.run(&rings.device, &next) == expected);
    assert_eq!(rings.backend.held_bytes(), before);
}

#[test]
fn sequences_share_memory_and_do_not_disturb_each_other() {
    let rings = rings(5, Order::Shuffled(9));
    let (host, device) = (Circuit::new(&rings.host), Circuit::new(&rings.device));
    let expected = |seed| host.run(&rings.host, &inputs(&rings.host, seed));
    device.run(&rings.device, &inputs(&rings.device, 50));
    let record = |seed| {
        let inputs = inputs(&rings.device, seed);
        kept(rings.record(&refs(&inputs), &mut |fixed: &[Poly]| {
            Some(device.run(&rings.device, fixed))
        }))
    };
    let (first, a) = record(60);
    let held = rings.backend.held_bytes();
    let (second, b) = record(65);
    let poly = second[0].bytes();
    let more = (rings.backend.held_bytes() - held) / poly;
    assert!(
        more <= second.len(),
        "{more} more than the caller's results"
    );
    for seed in [70, 75] {
        let inputs = inputs(&rings.device, seed);
        assert!(a.replay(&refs(&inputs)) == expected(seed));
        assert!(b.replay(&refs(&inputs)) == expected(seed));
        assert!(device.run(&rings.device, &inputs) == expected(seed));
    }
    assert!(first == expected(60) && second == expected(65));
}

#[test]
fn what_cannot_be_kept_is_refused_with_right_results() {
    let rings = rings(4, Order::Descending);
    let ring = &rings.device;
    let a = inputs(ring, 60);
    let constant = inputs(ring, 40).remove(0);
    let expected = rings
        .host
        .mul_new(&inputs(&rings.host, 60)[0], &inputs(&rings.host, 60)[1]);
    let product = |fixed: &[Poly]| ring.mul_new(&fixed[0], &fixed[1]);
    let refused = |work: &mut Work<'_>| {
        let recorded = rings.record(&refs(&a), work);
        assert!(recorded.results.unwrap()[0] == expected);
        recorded.recording.err().unwrap()
    };
    let reads = refused(&mut |fixed: &[Poly]| {
        let out = product(fixed);
        assert!(out.words().len() > 1);
        Some(vec![out])
    });
    assert!(reads.contains("on the host"), "{reads}");

    let mut outside = ring.mul_new(&constant, &constant);
    let writes = refused(&mut |fixed: &[Poly]| {
        ring.add_assign(&mut outside, &fixed[0]);
        Some(vec![product(fixed)])
    });
    assert!(writes.contains("not its own"), "{writes}");

    let kept = Mutex::new(Vec::new());
    let keeps = refused(&mut |fixed: &[Poly]| {
        kept.lock()
            .unwrap()
            .push(ring.mul_new(&fixed[0], &constant));
        Some(vec![product(fixed)])
    });
    assert!(keeps.contains("keeps"), "{keeps}");

    let shared = refused(&mut |fixed: &[Poly]| {
        std::thread::scope(|scope| scope.spawn(|| Some(vec![product(fixed)])).join().unwrap())
    });
    assert!(!shared.is_empty());

    let foreign = refused(&mut |fixed: &[Poly]| {
        let out = product(fixed);
        let there = std::thread::scope(|scope| {
            scope
                .spawn(|| ring.mul_new(&out, &constant))
                .join()
                .unwrap()
        });
        Some(vec![out, ring.mul_new(&there, &constant)])
    });
    assert!(foreign.contains("another thread"), "{foreign}");

    // None of this harms what comes next.
    let failed = rings.record(&refs(&a), &mut |_: &[Poly]| None);
    assert!(failed.results.is_none() && failed.recording.is_err());
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        rings.record(&refs(&a), &mut |_: &[Poly]| panic!("on purpose"))
    }));
    assert!(panicked.is_err() && !rings.queue().is_recording());
    let recorded = rings.record(&refs(&a), &mut |fixed: &[Poly]| Some(vec![product(fixed)]));
    assert!(recorded.recording.unwrap().replay(&refs(&a))[0] == expected);
}

#[test]
fn memory_that_is_not_there_is_an_error_that_says_how_much() {
    let primes = primes_near(2f64.powi(45), 10, LIMBS, &[]).unwrap();
    let shim = Shim::new(Order::Descending).with_memory(1 << 20);
    let ring = Ring::from_backend(10, &primes, Arc::new(CudaBackend::new(Arc::new(shim)))).unwrap();
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let zero = |_| ring.zero(ring.full_basis(), Form::Evaluation);
        (0..64).map(zero).collect::<Vec<Poly>>()
    }));
    let error = panic.err().unwrap().downcast::<DeviceError>().unwrap();
    let DeviceError::OutOfMemory { asked, held } = *error else {
        panic!("{error}");
    };
    assert_eq!(asked, (LIMBS * 8) << 10);
    assert!(held > (1 << 20) - 2 * asked && held <= 1 << 20);
    // What was freed serves again.
    let a = ring.uniform(&[1; 32], ring.full_basis());
    assert_eq!(ring.mul_new(&a, &a).n(), 1 << 10);
}

#[test]
fn each_kernel_is_timed_and_counted() {
    let rings = rings(6, Order::Ascending);
    let device = Circuit::new(&rings.device);
    device.run(&rings.device, &inputs(&rings.device, 50));
    let first = inputs(&rings.device, 60);
    let (_, recording) = kept(rings.record(&refs(&first), &mut |fixed: &[Poly]| {
        Some(device.run(&rings.device, fixed))
    }));
    let times = recording.profile(1);
    assert_eq!(
        times.iter().map(|time| time.launches).sum::<usize>(),
        recording.launches()
    );
    let of = |name: &str| times.iter().find(|time| time.kernel == name).unwrap();
    let word = 8.0 * 64.0;
    // Two digits, both halves of the key, two results; eight limbs.
    assert_eq!(of("key_product").bytes, word * 8.0 * (3.0 * 2.0 + 2.0));
    assert_eq!(of("mul_into").bytes, word * 6.0 * 3.0 * 3.0);
    assert!(of("convert").integer > 0.0 && of("ntt_rows").fp64 > 0.0);
    let limits = rings.queue().limits();
    assert!(limits.bytes_per_second > 0.0 && limits.fp64_per_second > 0.0);
    let clock = rings.queue().start_clock();
    assert!(clock.elapsed_ms() >= 0.0);
}
