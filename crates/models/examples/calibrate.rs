//! Measures a checkpoint and writes its calibration table, bounds included, beside it:
//! `calibrate FOLDER TEXT [CONTEXT [WINDOWS [SQUARINGS [OTHER TEXT]]]]`. The other text shows how far unseen text leaves the table.

use std::path::Path;

use taciturn_models::{
    CalibrationOptions, Checkpoint, TextTokenizer, calibrate, measure_bounds, overshoot,
    save_calibration,
};

/// Windows on which the approximated step is simulated.
const SIMULATED_WINDOWS: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, text, rest @ ..] = arguments.as_slice() else {
        return Err(
            "usage: calibrate FOLDER TEXT [CONTEXT [WINDOWS [SQUARINGS [OTHER TEXT]]]]".into(),
        );
    };
    let mut options = CalibrationOptions::default();
    if let Some(context) = rest.first() {
        options.context = context.parse()?;
    }
    if let Some(windows) = rest.get(1) {
        options.windows = windows.parse()?;
    }
    if let Some(squarings) = rest.get(2) {
        options.squarings = squarings.parse()?;
    }
    let folder = Path::new(folder);
    let checkpoint = Checkpoint::load(folder)?;
    let tokenizer = TextTokenizer::load(folder, &checkpoint.config)?;
    let tokens = tokenizer.encode(&std::fs::read_to_string(text)?)?;
    let mut calibration = calibrate(&checkpoint, &tokens, &options)?;
    measure_bounds(&checkpoint, &mut calibration, &tokens, SIMULATED_WINDOWS)?;
    save_calibration(folder, &calibration)?;
    for (name, range) in &calibration.sites {
        let heads: Vec<String> = (range.min.iter().zip(&range.max))
            .map(
                |(low, high)| match name.contains("variance") || name.contains("denominator") {
                    true => format!("[{low:.4}, {high:.4}] ratio 2^{:.1}", (high / low).log2()),
                    false => format!("[{low:.3}, {high:.3}]"),
                },
            )
            .collect();
        println!("{name}: {}", heads.join(" "));
    }
    if let Some(other) = rest.get(3) {
        println!("outside, as a share of the interval, on {other}:");
        for (name, share) in overshoot(
            &checkpoint,
            &tokenizer.encode(&std::fs::read_to_string(other)?)?,
            &calibration,
        )? {
            println!("{name}: {share:.4}");
        }
    }
    Ok(())
}
