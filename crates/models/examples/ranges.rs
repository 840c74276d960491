//! Prints the range of every site of a checkpoint over windows of a text: `ranges FOLDER TEXT [CONTEXT] [WINDOWS]`.

use std::collections::BTreeMap;
use std::path::Path;

use rayon::prelude::*;
use taciturn_models::{Checkpoint, ClearModel, ModelError, Observer, Site, TextTokenizer};

/// Smallest and largest value per site, per head where a site has heads.
#[derive(Default)]
struct Ranges {
    heads: usize,
    tokens: usize,
    sites: BTreeMap<Site, Vec<(f64, f64)>>,
    bos: BTreeMap<usize, Vec<(f64, f64)>>,
}

fn widen(slot: &mut (f64, f64), value: f64) {
    *slot = (slot.0.min(value), slot.1.max(value));
}

const EMPTY: (f64, f64) = (f64::INFINITY, f64::NEG_INFINITY);

impl Observer for Ranges {
    fn observe(&mut self, site: Site, values: &[f64]) {
        let groups = match site {
            Site::Scores(_)
            | Site::LogSumExp(_)
            | Site::Attention(_)
            | Site::Keys(_)
            | Site::Values(_) => self.heads,
            _ => 1,
        };
        let slots = self
            .sites
            .entry(site)
            .or_insert_with(|| vec![EMPTY; groups]);
        for (slot, group) in slots.iter_mut().zip(values.chunks(values.len() / groups)) {
            group.iter().for_each(|&v| widen(slot, v));
        }
        if let Site::Scores(layer) = site {
            let slots = self.bos.entry(layer).or_insert_with(|| vec![EMPTY; groups]);
            for (slot, group) in slots.iter_mut().zip(values.chunks(values.len() / groups)) {
                widen(slot, group[0]);
            }
        }
        self.tokens += usize::from(site == Site::Logits);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, text, rest @ ..] = arguments.as_slice() else {
        return Err("usage: ranges FOLDER TEXT [CONTEXT] [WINDOWS]".into());
    };
    let context = rest.first().map_or(Ok(128), |n| n.parse())?;
    let windows = rest.get(1).map_or(Ok(32), |n| n.parse())?;
    let checkpoint = Checkpoint::load(Path::new(folder))?;
    let tokens = TextTokenizer::load(Path::new(folder), &checkpoint.config)?
        .encode(&std::fs::read_to_string(text)?)?;
    let model = ClearModel::new(&checkpoint);
    let results = tokens
        .chunks_exact(context - 1)
        .take(windows)
        .collect::<Vec<_>>()
        .into_par_iter()
        .map(|window| {
            let mut ranges = Ranges {
                heads: checkpoint.config.heads,
                ..Ranges::default()
            };
            let mut cache = model.cache();
            let mut logits = model.step(&mut cache, checkpoint.config.bos)?;
            let mut loss = 0.0;
            for &token in window {
                loss += taciturn_models::log_sum_exp(&logits) - logits[token as usize];
                logits = model.step_observed(&mut cache, token, &mut ranges)?;
            }
            Ok((ranges, loss))
        });
    let results = results.collect::<Result<Vec<_>, ModelError>>()?;
    let (mut sites, mut bos) = (
        BTreeMap::<Site, Vec<(f64, f64)>>::new(),
        BTreeMap::<usize, Vec<(f64, f64)>>::new(),
    );
    let merge = |into: &mut Vec<(f64, f64)>, from: &[(f64, f64)]| {
        for (into, from) in into.iter_mut().zip(from) {
            widen(into, from.0);
            widen(into, from.1);
        }
    };
    let (mut loss, mut count) = (0.0, 0);
    for (ranges, window_loss) in &results {
        for (&site, slots) in &ranges.sites {
            merge(
                sites
                    .entry(site)
                    .or_insert_with(|| vec![EMPTY; slots.len()]),
                slots,
            );
        }
        for (&layer, slots) in &ranges.bos {
            merge(
                bos.entry(layer).or_insert_with(|| vec![EMPTY; slots.len()]),
                slots,
            );
        }
        loss += window_loss;
        count += ranges.tokens;
    }
    println!(
        "{count} tokens in {} windows of {context}; perplexity {:.3}",
        results.len(),
        (loss / count as f64).exp()
    );
    for (site, slots) in &sites {
        for (head, (low, high)) in slots.iter().enumerate() {
            let head = if slots.len() > 1 {
                format!(" head {head}")
            } else {
                String::new()
            };
            println!(
                "{site}{head}: [{low:.4}, {high:.4}] ratio {:.2} exp(width) 2^{:.2}",
                high / low,
                (high - low) * 1.442695
            );
        }
    }
    for (layer, slots) in &bos {
        println!("layer{layer}.scores of the first token, per head: {slots:.3?}");
    }
    Ok(())
}
