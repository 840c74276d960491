//! Products in every layout: against the matrix in the clear on slots and on ciphertexts, and their counts.

mod common;

use common::client::Client;
use common::{Random, exact, worst};
use taciturn_graph::*;

const TOP: Level = Level(4);

/// A matrix and a vector of that width.
fn operands(width: usize, seed: u64) -> (Matrix, Vec<f64>) {
    let mut random = Random::new(seed);
    (random.matrix("w", width, width, 1.0), random.vector(width))
}

#[test]
fn every_layout_gives_the_product() {
    for (slots, widths) in [
        (16, &[2, 4, 8, 16][..]),
        (64, &[2, 8, 16, 32, 64]),
        (256, &[4, 16, 64, 128, 256]),
        (4096, &[32, 128, 256]),
    ] {
        for &width in widths {
            let (matrix, x) = operands(width, (slots + width) as u64);
            let want = matrix.apply(&x);
            for layout in ProductLayout::ALL {
                if !layout.fits(width, slots) {
                    continue;
                }
                let mut simulator = exact(slots);
                let input = simulator.encrypt(&layout.input().expand(&x, slots), TOP);
                let output = layout.apply(&mut simulator, &input, &matrix).unwrap();
                assert_eq!(Some(simulator.level(&output)), TOP.after(layout.depth()));
                let have = layout.output().compact(output.as_slice(), width);
                let error = worst(&have, &want);
                assert!(error < 1e-11, "{layout:?}, {width} in {slots}: {error:.1e}");
            }
        }
    }
}

/// Where a layout says that a mask is not needed, the output's other slots are zero or valid as well.
#[test]
fn outputs_without_a_mask_are_clean() {
    let (slots, width) = (256, 32);
    let (matrix, x) = operands(width, 5);
    for layout in [
        ProductLayout::Direct,
        ProductLayout::Replicated,
        ProductLayout::PackedRow,
        ProductLayout::SpacedToPeriodic,
    ] {
        let mut simulator = exact(slots);
        let input = simulator.encrypt(&layout.input().expand(&x, slots), TOP);
        let output = layout.apply(&mut simulator, &input, &matrix).unwrap();
        let want = layout.output().expand(&matrix.apply(&x), slots);
        assert!(worst(output.as_slice(), &want) < 1e-11, "{layout:?}");
    }
}

#[test]
fn widths_that_do_not_fit_are_known() {
    for layout in ProductLayout::ALL {
        assert!(layout.fits(32, 64) && !layout.fits(128, 64));
        assert!(!layout.fits(0, 64) && !layout.fits(1, 64) && !layout.fits(48, 64));
    }
    assert!(!ProductLayout::ZeroPadded.fits(64, 64));
}

fn count(layout: ProductLayout, width: usize) -> Counts {
    let table = CostTable::reference(1 << 15, TOP);
    let mut counter = Counter::new(1 << 15, &table);
    let matrix = Matrix::computed("w", width, width, |_, _| 1.0);
    layout.apply(&mut counter, &TOP, &matrix).unwrap();
    *counter.counts()
}

/// Rotations of Cachemir's tables 2 and 4 for widths that are powers of two, and what ours saves against its own: two weights in a
/// plaintext among it.
#[test]
fn counts_are_those_of_the_papers() {
    let rotations = |layout, width| {
        let counts = count(layout, width);
        counts.rotations + counts.hoisted_rotations
    };
    let interleaved = [1024, 2048, 4096].map(|d| rotations(ProductLayout::Interleaved, d));
    assert_eq!(interleaved, [20, 30, 52]);
    let direct = [2048, 4096].map(|d| rotations(ProductLayout::Direct, d));
    assert_eq!(direct, [188, 252]);
    let first = [1024, 2048, 4096].map(|d| rotations(ProductLayout::PeriodicToSpaced, d));
    assert_eq!(first, [13, 20, 35]);
    let second = [1024, 2048, 4096].map(|d| rotations(ProductLayout::SpacedToPeriodic, d));
    assert_eq!(second, [18, 24, 38]);
    // Orion counts 24,579 for 4,096 x 16,384: four times the products of a square matrix.
    assert_eq!(
        4 * (rotations(ProductLayout::PackedRow, 4096) - 3) + 3,
        24_579
    );

    let products = |layout| count(layout, 4096).plain_products;
    assert_eq!(products(ProductLayout::Interleaved), 512);
    assert_eq!(products(ProductLayout::PeriodicToSpaced), 256);
    assert_eq!(products(ProductLayout::ZeroPadded), 4096);
    assert_eq!(count(ProductLayout::Direct, 4096).weights, 2 * 4096 - 64);
    let nexus = nexus_counts(4096);
    assert_eq!((nexus.plain_products, nexus.rotations), (65_536, 131_072));
}

/// All keys that the layouts need at the top level.
fn plan_for(slots: usize, width: usize) -> Plan {
    let table = CostTable::reference(slots, TOP);
    let mut counter = Counter::new(slots, &table);
    let matrix = Matrix::computed("w", width, width, |_, _| 1.0);
    for layout in ProductLayout::ALL {
        layout.apply(&mut counter, &TOP, &matrix).unwrap();
    }
    Plan {
        max_level: TOP,
        rotations: counter.rotations().clone(),
        conjugation: counter.conjugation(),
        ..Plan::empty(slots)
    }
}

/// Twice with one machine: the second time its weights are those kept from the first.
#[test]
fn ciphertexts_give_the_product() {
    let (slots, width) = (1024, 64);
    let (matrix, x) = operands(width, 9);
    let want = matrix.apply(&x);
    let mut client = Client::new("insecure-n11");
    let mut machine = client.machine(&plan_for(slots, width));
    for layout in ProductLayout::ALL {
        let input = client.encrypt(&layout.input().expand(&x, slots), TOP);
        for _ in 0..2 {
            let output = layout.apply(&mut machine, &input, &matrix).unwrap();
            assert_eq!(Some(machine.level(&output)), TOP.after(layout.depth()));
            let have = layout.output().compact(&client.decrypt(&output), width);
            let error = worst(&have, &want);
            assert!(error < 1e-5, "{layout:?}: {error:.1e}");
        }
    }
}
