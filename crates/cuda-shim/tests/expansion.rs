//! Halves of keys expanded on the device: the host's words, whichever way the device comes by them.

use std::sync::Arc;

use taciturn_cuda::{CudaBackend, Seeded};
use taciturn_cuda_shim::{Order, Shim};
use taciturn_ring::{BackendKind, Basis, Form, Poly, Ring, primes_near};

/// Primes of which nearly all draws are kept, and of which a fifth is not.
const BITS: [f64; 3] = [49.9999, 49.679, 40.0];

fn primes(log_n: u32) -> Vec<u64> {
    let near = BITS.map(|bits| primes_near(bits.exp2(), log_n, 2, &[]).unwrap());
    near.into_iter().flatten().collect()
}

/// Sums of products with keys whose halves `b` are no seed's words.
fn sums(ring: &Ring, limbs: Basis) -> Vec<Poly> {
    let uniform = |seed: u8| ring.uniform(&[seed; 32], ring.full_basis());
    let digits: Vec<Poly> = (0..3).map(uniform).collect();
    let key: Vec<(Poly, Poly)> = (0..3)
        .map(|j| {
            let mut b = uniform(10 + j);
            ring.neg_assign(&mut b);
            (b, uniform(20 + j))
        })
        .collect();
    // The second time halves or their counts are there.
    let mut out = Vec::new();
    for galois in [5, 25] {
        let (x, y) = ring.key_product_automorphism(&digits, &key, galois, limbs);
        out.extend([x, y]);
    }
    out
}

#[test]
fn expanded_halves_are_the_hosts() {
    for (log_n, order) in [
        (4, Order::Shuffled(5)),
        (10, Order::Descending),
        (11, Order::Ascending),
        (13, Order::Descending),
    ] {
        let primes = primes(log_n);
        let host = Ring::with_backend(log_n, &primes, BackendKind::Portable).unwrap();
        for limbs in [host.full_basis(), Basis::range(1..4)] {
            let expected = sums(&host, limbs);
            for seeded in [Seeded::Copied, Seeded::Expanded, Seeded::EachTime] {
                let backend = CudaBackend::new(Arc::new(Shim::new(order))).with_seeded(seeded);
                let backend = Arc::new(backend);
                let ring = Ring::from_backend(log_n, &primes, backend.clone()).unwrap();
                assert!(sums(&ring, limbs) == expected, "2^{log_n} {seeded:?}");
            }
        }
    }
}

#[test]
fn seeds_save_copies_and_memory() {
    let log_n = 11;
    let primes = primes(log_n);
    let measure = |seeded| {
        let shim = Arc::new(Shim::new(Order::Ascending));
        let backend = Arc::new(CudaBackend::new(shim).with_seeded(seeded));
        let ring = Ring::from_backend(log_n, &primes, backend.clone()).unwrap();
        let limbs = ring.full_basis();
        let poly = ring.zero(limbs, Form::Evaluation).bytes() as u64;
        let digits: Vec<Poly> = (0..2).map(|j| ring.uniform(&[j; 32], limbs)).collect();
        let keys: Vec<Vec<(Poly, Poly)>> = (0..8)
            .map(|k| {
                let half = |j: u8| ring.uniform(&[50 + 10 * k + j; 32], limbs);
                let b = |j| {
                    let mut b = half(j);
                    let word = b.words()[0];
                    b.words_mut()[0] = word;
                    b
                };
                (0..2).map(|j| (b(j), half(2 + j))).collect()
            })
            .collect();
        for key in &keys {
            ring.key_product_automorphism(&digits, key, 5, limbs);
        }
        ring.synchronize();
        let uploaded = backend.transfers().uploaded / poly;
        (uploaded, backend.held_bytes() as u64 / poly)
    };
    let (copied, expanded, each_time) = (
        measure(Seeded::Copied),
        measure(Seeded::Expanded),
        measure(Seeded::EachTime),
    );
    assert!(copied.0 >= expanded.0 + 14, "{copied:?} {expanded:?}");
    assert!(copied.1 >= each_time.1 + 10, "{copied:?} {each_time:?}");
    assert!(expanded.1 >= each_time.1 + 10, "{expanded:?} {each_time:?}");
}
