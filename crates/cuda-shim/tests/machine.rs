//! The machine of ciphertexts on a device: its operations are plain at first, then recorded, then replayed, and equal the processor's.

use std::sync::Arc;

use taciturn_approx::interpolate;
use taciturn_ckks::{Ciphertext, Complex64, Evaluator, GadgetName, KeyId, KeyRequest, named};
use taciturn_cuda::CudaBackend;
use taciturn_cuda_shim::{Order, Shim};
use taciturn_graph::{CpuMachine, Diagonals, Level, Machine, Plain, PlainId};
use taciturn_ring::Submitted;
use taciturn_secret::Keyholder;

const LEVEL: usize = 6;
const ROTATIONS: [i64; 10] = [1, 2, 3, 4, 8, 12, 16, 32, 48, -5];
const SLOTS: usize = 1024;

fn wave(seed: usize) -> impl Fn(usize) -> f64 {
    move |k| ((k * (seed + 3) + seed) as f64).sin()
}

fn operations(
    machine: &mut CpuMachine,
    a: &Arc<Ciphertext>,
    b: &Arc<Ciphertext>,
) -> Vec<Arc<Ciphertext>> {
    let id = PlainId::of("diagonals");
    let diagonals = Diagonals::new(id, 4, 16, SLOTS, |m, out| {
        (0..).zip(out).for_each(|(k, out)| *out = wave(m)(k) / 16.0);
    });
    let weight = |seed: usize| {
        Plain::new(
            PlainId::of(("weight", seed)),
            SLOTS,
            move |out: &mut [f64]| {
                (0..).zip(out).for_each(|(k, out)| *out = wave(seed)(k));
            },
        )
    };
    let polynomial = |low: f64| interpolate(|x| (0.7 * x).sin(), low, 1.0, 7).unwrap();
    let mut out = vec![
        machine.add(a, b).unwrap(),
        machine.linear_transform(a, &diagonals).unwrap(),
        machine.polynomial(a, &polynomial(-1.0)).unwrap(),
        machine.polynomial(b, &polynomial(-2.0)).unwrap(),
        machine.dot(&[(a, b), (b, b)]).unwrap(),
        machine
            .dot_weights(&[(a, weight(1)), (b, weight(2))])
            .unwrap(),
        machine.rotate(a, -5).unwrap(),
    ];
    out.extend(machine.rotate_many(b, &[1, 2, 3]).unwrap());
    out
}

#[test]
fn operations_are_replayed_with_the_processors_words() {
    let mut client = Keyholder::new(&named("insecure-n11").unwrap()).unwrap();
    let device = Arc::new(CudaBackend::new(Arc::new(Shim::new(Order::Descending))));
    let params = client.params().on_backend(device).unwrap();
    let level = taciturn_ckks::Level(LEVEL);
    let mut request = KeyRequest::default();
    let galois = ROTATIONS.map(|k| Evaluator::galois_of_rotation(&params, k));
    // 1 stands for relinearization.
    for galois in galois.into_iter().chain([1]) {
        let id = KeyId {
            gadget: GadgetName::Model,
            galois,
        };
        request.add(id, params.level_basis(level));
    }
    let on_host = client.evaluator(&request).unwrap();
    let on_device = Evaluator::new(&params, on_host.keys().clone());
    let mut encrypt = |seed: usize| {
        let values: Vec<Complex64> = (0..SLOTS)
            .map(|k| Complex64::new(wave(seed)(k), 0.0))
            .collect();
        Arc::new(
            client
                .encrypt(&values, level)
                .unwrap()
                .expand(client.params()),
        )
    };
    let (mut host, mut machine) = (CpuMachine::new(on_host), CpuMachine::new(on_device));
    assert_eq!(machine.level(&encrypt(0)), Level(LEVEL as u32));
    let mut calls: Vec<Submitted> = Vec::new();
    for seed in 0..4 {
        let (a, b) = (encrypt(2 * seed), encrypt(2 * seed + 1));
        let want = operations(&mut host, &a, &b);
        let before = params.ring().queue().unwrap().submitted();
        let have = operations(&mut machine, &a, &b);
        calls.push(params.ring().queue().unwrap().submitted().since(before));
        for (k, (have, want)) in have.iter().zip(&want).enumerate() {
            assert!(
                have.polys == want.polys && have.scale == want.scale,
                "run {seed}, operation {k}"
            );
        }
    }
    println!("{calls:#?}");
    assert_eq!(machine.evaluator().refused_recordings(), [""; 0]);
    // All but the addition, each with a copy of its inputs and one of its results.
    let replayed = calls[3];
    assert_eq!(calls[2], replayed);
    assert_eq!(replayed.graphs, 7);
    assert!(replayed.kernels < 2 * 7 + 4, "{replayed:?}");
    assert!(replayed.kernels + replayed.graphs < calls[0].kernels / 10);
}
