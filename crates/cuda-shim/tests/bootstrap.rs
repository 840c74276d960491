//! A whole bootstrap on the shim: the words of the portable backend, with nothing copied between host and device on the way.

use std::sync::Arc;

use taciturn_circuits::{
    BootstrapShape, Bootstrapper, MESSAGE_RATIO_BITS, Values, slots_to_coeffs_levels,
};
use taciturn_ckks::{Ciphertext, Complex64, Encoder, Evaluator, KeyRequest, Level, named};
use taciturn_cuda::CudaBackend;
use taciturn_cuda_shim::{Order, Shim};
use taciturn_secret::Keyholder;

const SHAPES: [(u32, Values); 4] = [
    (0, Values::Real),
    (4, Values::Real),
    (5, Values::Pair),
    (10, Values::Complex),
];
const TARGET: Level = Level(5);

#[test]
fn bootstraps_agree_word_by_word() {
    let mut client = Keyholder::new(&named("insecure-n11").unwrap()).unwrap();
    let shim = Arc::new(Shim::new(Order::Descending));
    let device = Arc::new(CudaBackend::new(shim.clone()));
    let params = client.params().on_backend(device.clone()).unwrap();
    for (log_slots, kind) in SHAPES {
        let shape = BootstrapShape {
            log_slots,
            bound: 1.0,
            values: kind,
            message_ratio_bits: MESSAGE_RATIO_BITS,
        };
        let values: Vec<Complex64> = (0..1 << log_slots)
            .map(|k| Complex64::new(f64::from(k % 7) / 7.0, 0.0))
            .collect();
        let input = client
            .encrypt(&values, Level(slots_to_coeffs_levels(log_slots)))
            .unwrap()
            .expand(client.params());
        let host = Bootstrapper::new(client.encoder(), shape).unwrap();
        let mut request = KeyRequest::default();
        host.request_keys(TARGET, &mut request).unwrap();
        let on_host = client.evaluator(&request).unwrap();
        let expected = refresh(&host, client.encoder(), &on_host, &input);

        let (encoder, on_device) = (
            Encoder::new(&params),
            Evaluator::new(&params, on_host.keys().clone()),
        );
        let bootstrapper = Bootstrapper::new(&encoder, shape).unwrap();
        let run = || refresh(&bootstrapper, &encoder, &on_device, &input);
        same(&run(), &expected);

        // Keys and tables are there now.
        let (before, launches) = (device.transfers(), shim.launches());
        let again = run();
        println!("{shape:?}: {} launches", shim.launches() - launches);
        assert_eq!(device.transfers(), before, "{shape:?}: hidden copies");
        same(&again, &expected);

        assert_eq!(on_device.refused_recordings(), [""; 0]);
        assert_eq!(on_device.queued_singly(), [""; 0]);

        // That run was recorded: others are replayed, in an order of kernels of the shim's choice.
        let (before, launches) = (device.transfers(), shim.launches());
        let replayed = run();
        let replays = shim.launches() - launches;
        println!("{shape:?}: {replays} launches replayed");
        assert_eq!(device.transfers(), before, "{shape:?}: hidden copies");
        same(&replayed, &expected);
        let kernels = on_device.kernel_times(0);
        let kept: usize = kernels.iter().flatten().map(|kernel| kernel.launches).sum();
        assert_eq!(kernels.len(), 1, "{shape:?}: one circuit is kept");
        // Inputs are copied, and results.
        assert_eq!(kept + 2, replays as usize);

        // Other values, other words.
        let values: Vec<Complex64> = values.iter().map(|value| 0.5 - value).collect();
        let other = client
            .encrypt(&values, Level(slots_to_coeffs_levels(log_slots)))
            .unwrap()
            .expand(client.params());
        same(
            &refresh(&bootstrapper, &encoder, &on_device, &other),
            &refresh(&host, client.encoder(), &on_host, &other),
        );
    }
}

/// Of a pair, whose values are the same here, the second.
fn refresh(
    bootstrapper: &Bootstrapper,
    encoder: &Encoder,
    ev: &Evaluator,
    input: &Ciphertext,
) -> Ciphertext {
    if bootstrapper.shape().values == Values::Pair {
        let pair = bootstrapper.bootstrap_pair(encoder, ev, [input; 2], TARGET);
        let [_, second] = pair.unwrap();
        return second;
    }
    bootstrapper.bootstrap(encoder, ev, input, TARGET).unwrap()
}

fn same(have: &Ciphertext, want: &Ciphertext) {
    assert_eq!(have.scale, want.scale);
    assert!(have.polys == want.polys);
}
