use std::path::Path;
use taciturn_graph::*;
use taciturn_models::*;
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let folder = Path::new(&args[0]);
    let checkpoint = Checkpoint::load(folder)?;
    let calibration = load_calibration(folder, &checkpoint)?;
    let slots = 1 << args[2].parse::<u32>()?;
    let model = StepModel::new(&checkpoint, &calibration, slots, args[1].parse()?)?;
    let graph = model.graph(args[1].parse::<usize>()? - 1)?;
    let table = CostTable::reference(slots, Level(args[3].parse()?));
    let t = std::time::Instant::now();
    let problem = Problem::new(&graph, &table)?;
    for n in graph.nodes() {
        if n.bound.is_none() {
            println!("no bound {} {}", n.name, n.layout);
        }
        if let Op::Polynomial(f) = &n.op {
            println!("{} degree {}", n.name, f.polynomial.coefficients.len() - 1);
        }
    }
    match problem.plan(&WhenNothingIsLeft.place(&problem)) {
        Ok(p) => println!(
            "baseline {} bootstraps {} ms",
            p.bootstraps,
            p.microseconds / 1000
        ),
        Err(e) => println!("baseline {e}"),
    }
    let p = model.plan(
        &table,
        &LocalSearch {
            seed: 1,
            restarts: args[4].parse()?,
        },
    )?;
    println!(
        "search {} bootstraps {} ms in {:?}",
        p.bootstraps,
        p.microseconds / 1000,
        t.elapsed()
    );
    if let Some(text) = args.get(5) {
        let tokens = TextTokenizer::load(folder, &checkpoint.config)?
            .encode(&std::fs::read_to_string(text)?)?;
        let mut other = calibration.clone();
        let tail = &tokens[tokens.len() - 8 * 160..];
        measure_bounds(&checkpoint, &mut other, tail, 8)?;
        for (name, b) in &other.bounds {
            let have = calibration.bounds[name];
            if b / 1.5 > 0.8 * have {
                println!(
                    "held-out magnitude of {name}: {:.3} of bound {have:.3}",
                    b / 1.5
                );
            }
        }
    }
    Ok(())
}
