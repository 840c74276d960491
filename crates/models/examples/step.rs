//! Simulates the encrypted step of a calibrated model on a text, against the clear model: `step FOLDER TEXT [TOKENS]`.

use std::collections::HashMap;
use std::path::Path;
use taciturn_graph::*;
use taciturn_models::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let folder = Path::new(&args[0]);
    let checkpoint = Checkpoint::load(folder)?;
    let tokenizer = TextTokenizer::load(folder, &checkpoint.config)?;
    let tokens = tokenizer.encode(&std::fs::read_to_string(&args[1])?)?;
    let mut calibration = load_calibration(folder, &checkpoint)?;
    let start = std::time::Instant::now();
    measure_bounds(&checkpoint, &mut calibration, &tokens, 2)?;
    println!(
        "bounds of {} values in {:?}",
        calibration.bounds.len(),
        start.elapsed()
    );
    let slots = 1 << 15;
    let context = calibration.context;
    let model = StepModel::new(&checkpoint, &calibration, slots, context)?;
    let clear = ClearModel::new(&checkpoint);
    let mut cache = clear.cache();
    clear.step(&mut cache, checkpoint.config.bos)?;
    let mut simulator = Logical::simulated(
        NoiseLevels {
            operation: 2e-8,
            bootstrap: 1e-6,
        },
        1,
    );
    let mut inputs: HashMap<String, Vec<f64>> = model
        .prefix_caches()
        .into_iter()
        .map(|(n, p)| (n, p.values()))
        .collect();
    let table = CostTable::reference(slots, Level(16));
    let graph = model.graph(context - 1)?;
    let plan_ = plan(
        &graph,
        &table,
        &LocalSearch {
            seed: 1,
            restarts: 2,
        },
    )?;
    println!(
        "{} nodes, {} bootstraps, predicted {} ms",
        graph.nodes().len(),
        plan_.bootstraps,
        plan_.microseconds / 1000
    );
    for (name, node) in &plan_.nodes {
        if let Some(b) = node.bootstrap {
            println!(
                "  {name} {} slots -> {} (from {})",
                b.slots, b.target, node.level_out
            );
        }
    }
    for m in &plan_.modules {
        println!(
            "  {} {} ms, {} bootstraps, {} -> {}",
            m.name,
            m.microseconds / 1000,
            m.bootstraps,
            m.level_in,
            m.level_out
        );
    }
    println!("rotations {:?}", plan_.rotations);
    println!("sizes {:?}", plan_.bootstrap_sizes());
    let (mut worst, mut kl_sum, mut same) = (0f64, 0f64, 0);
    let n = 60.min(context - 2);
    for (i, &token) in tokens.iter().take(n).enumerate() {
        let graph = model.graph(i + 1)?;
        inputs.insert(StepModel::input_name().into(), model.embed(token, i + 1)?);
        let outputs = simulator.run(&graph, Some(&plan_), &inputs)?;
        let want = clear.step(&mut cache, token)?;
        let have: Vec<f64> = outputs["logits.0"][..want.len()].to_vec();
        let error = want
            .iter()
            .zip(&have)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f64::max);
        let (za, zb) = (log_sum_exp(&want), log_sum_exp(&have));
        let kl: f64 = want
            .iter()
            .zip(&have)
            .map(|(a, b)| (a - za).exp() * ((a - za) - (b - zb)))
            .sum();
        let top = |v: &[f64]| {
            v.iter()
                .enumerate()
                .max_by(|a, b| a.1.total_cmp(b.1))
                .map(|(i, _)| i)
        };
        same += usize::from(top(&want) == top(&have));
        worst = worst.max(error);
        kl_sum += kl;
        inputs.extend(
            outputs
                .into_iter()
                .filter(|(name, _)| name.contains(".cache.")),
        );
    }
    println!(
        "worst logit error {worst:.2e}, mean KL {:.2e}, top-1 {same}/{n}",
        kl_sum / n as f64
    );
    Ok(())
}
