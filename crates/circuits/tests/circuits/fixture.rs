//! What the tests share: key requests, values and precision.

use taciturn_ckks::{
    Ciphertext, Complex64, Evaluator, GadgetName, KeyId, KeyRequest, Level, Parameters, named,
};
use taciturn_secret::Keyholder;

/// A client with a fresh secret.
pub fn client(params: &str) -> Keyholder {
    Keyholder::new(&named(params).unwrap()).unwrap()
}

/// A fresh encryption at a level.
pub fn encrypt(client: &mut Keyholder, values: &[Complex64], level: Level) -> Ciphertext {
    let seeded = client.encrypt(values, level).unwrap();
    seeded.expand(client.params())
}

/// Requests for rotations (and relinearization) at the model's levels.
pub fn model_keys(params: &Parameters, rotations: &[i64], level: Level) -> KeyRequest {
    let mut request = KeyRequest::default();
    let limbs = params.level_basis(level);
    request.add(
        KeyId {
            gadget: GadgetName::Model,
            galois: 1,
        },
        limbs,
    );
    let conjugation = Evaluator::galois_of_conjugation(params);
    request.add(
        KeyId {
            gadget: GadgetName::Model,
            galois: conjugation,
        },
        limbs,
    );
    for &k in rotations {
        request.add(
            KeyId {
                gadget: GadgetName::Model,
                galois: Evaluator::galois_of_rotation(params, k),
            },
            limbs,
        );
    }
    request
}

/// A fixed sequence of uniform reals in [-1, 1].
pub fn uniform(seed: u64, count: usize) -> Vec<f64> {
    let mut x = seed.wrapping_mul(2).wrapping_add(1);
    (0..count)
        .map(|_| {
            x = x
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (x >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
        .collect()
}

/// (worst, mean) error in bits.
pub fn precision(have: &[Complex64], want: &[Complex64]) -> (f64, f64) {
    let errors: Vec<f64> = have.iter().zip(want).map(|(a, b)| (a - b).norm()).collect();
    let worst = errors.iter().fold(0f64, |a, &b| a.max(b));
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    (-worst.log2(), -mean.log2())
}
