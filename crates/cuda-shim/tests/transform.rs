//! Linear transforms of integer diagonals on the shim, few and many: the words of the portable backend.

use std::sync::Arc;

use taciturn_circuits::LinearTransform;
use taciturn_ckks::{
    Ciphertext, Complex64, Encoder, Evaluator, GadgetName, KeyId, KeyRequest, Level, named,
};
use taciturn_cuda::CudaBackend;
use taciturn_cuda_shim::{Order, Shim};
use taciturn_secret::Keyholder;

const BABIES: i64 = 4;
/// Few, whose sums are divided by P at the end, and so many that their baby steps are divided first.
const GIANTS: [i64; 2] = [2, 32];
const LEVEL: Level = Level(2);

#[test]
fn transforms_agree_word_by_word() {
    let mut client = Keyholder::new(&named("insecure-n11").unwrap()).unwrap();
    let device = Arc::new(CudaBackend::new(Arc::new(Shim::new(Order::Shuffled(7)))));
    let params = client.params().on_backend(device).unwrap();
    let values: Vec<Complex64> = (0..client.params().slots())
        .map(|k| Complex64::new((k % 7) as f64 / 7.0, (k % 5) as f64 / 5.0))
        .collect();
    let input = client
        .encrypt(&values, LEVEL)
        .unwrap()
        .expand(client.params());
    for giants in GIANTS {
        let encoder = Encoder::new(&params);
        let rotations: Vec<i64> = transform(&encoder, giants).rotations().collect();
        let mut request = KeyRequest::default();
        for &k in &rotations {
            let id = KeyId {
                gadget: GadgetName::Model,
                galois: Evaluator::galois_of_rotation(&params, k),
            };
            request.add(id, params.level_basis(LEVEL));
        }
        let on_host = client.evaluator(&request).unwrap();
        let on_device = Evaluator::new(&params, on_host.keys().clone());
        let want = apply(client.encoder(), &on_host, giants, &input);
        let have = apply(&encoder, &on_device, giants, &input);
        assert_eq!(have.scale, want.scale);
        assert!(have.polys == want.polys, "{giants} giant steps");
    }
}

fn transform(encoder: &Encoder, giants: i64) -> LinearTransform {
    let params = encoder.parameters();
    let scale = params.scale(LEVEL);
    let diagonal = |giant: i64, baby: i64| {
        let values: Vec<Complex64> = (0..params.slots() as i64)
            .map(|k| Complex64::new(((k * giant + baby) % 11) as f64 / 11.0, 0.0))
            .collect();
        let integers = encoder.encode_integers(&values, scale).unwrap();
        (giant * BABIES, baby, integers)
    };
    let steps = (0..giants).flat_map(|giant| (0..BABIES).map(move |baby| (giant, baby)));
    LinearTransform::from_steps(steps.map(|(giant, baby)| diagonal(giant, baby)), scale)
}

fn apply(encoder: &Encoder, ev: &Evaluator, giants: i64, input: &Ciphertext) -> Ciphertext {
    transform(encoder, giants)
        .apply(encoder, ev, input)
        .unwrap()
}
