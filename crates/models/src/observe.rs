//! Observers behind a calibration: one collects what the shifts are fitted on, one the ranges of every site.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::clear::log_sum_exp;
use crate::config::ModelConfig;
use crate::shift::{HeadSamples, HeadShift};
use crate::site::{Observer, Site};

/// Smallest and largest value, per head or for the whole site.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    pub(crate) min: Vec<f64>,
    pub(crate) max: Vec<f64>,
    pub(crate) samples: u64,
    /// Positive values whose ratio matters.
    pub(crate) positive: bool,
}

impl Observed {
    fn new(groups: usize, positive: bool) -> Self {
        Self {
            min: vec![f64::INFINITY; groups],
            max: vec![f64::NEG_INFINITY; groups],
            samples: 0,
            positive,
        }
    }

    /// Takes in the values of one token, split evenly into the groups.
    fn take(&mut self, values: &[f64]) {
        let size = values.len() / self.min.len();
        for ((min, max), group) in self
            .min
            .iter_mut()
            .zip(&mut self.max)
            .zip(values.chunks(size))
        {
            for &value in group {
                *min = min.min(value);
                *max = max.max(value);
            }
        }
        self.samples += 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.min
            .iter_mut()
            .zip(&other.min)
            .for_each(|(a, b)| *a = a.min(*b));
        self.max
            .iter_mut()
            .zip(&other.max)
            .for_each(|(a, b)| *a = a.max(*b));
        self.samples += other.samples;
    }
}

/// Queries and softmax sums of one window and head.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeadSums {
    queries: Vec<f32>,
    positions: Vec<usize>,
    /// By the number of squarings, from the least on.
    sums: Vec<Vec<f64>>,
}

impl HeadSums {
    /// Puts the samples of a number of squarings, counted from the least, behind others.
    pub(crate) fn append_to(&self, all: &mut HeadSamples, squarings: usize) {
        all.queries.extend(&self.queries);
        all.positions.extend(&self.positions);
        all.sums.extend(&self.sums[squarings]);
    }
}

/// Collects queries and softmax sums of one window, per layer and head, for several numbers of squarings at once.
pub(crate) struct SumCollector<'a> {
    config: &'a ModelConfig,
    squarings: RangeInclusive<u32>,
    pub(crate) samples: Vec<Vec<HeadSums>>,
}

impl<'a> SumCollector<'a> {
    pub(crate) fn new(config: &'a ModelConfig, squarings: RangeInclusive<u32>) -> Self {
        let head = HeadSums {
            sums: vec![Vec::new(); squarings.clone().count()],
            ..HeadSums::default()
        };
        Self {
            config,
            squarings,
            samples: vec![vec![head; config.heads]; config.layers],
        }
    }
}

impl Observer for SumCollector<'_> {
    fn observe(&mut self, site: Site, values: &[f64]) {
        match site {
            Site::Queries(layer) => {
                let heads = self.samples[layer]
                    .iter_mut()
                    .zip(values.chunks(self.config.head_width));
                heads
                    .for_each(|(head, query)| head.queries.extend(query.iter().map(|&q| q as f32)));
            }
            Site::Scores(layer) => {
                let tokens = values.len() / self.config.heads;
                for (head, scores) in self.samples[layer].iter_mut().zip(values.chunks(tokens)) {
                    head.positions.push(tokens - 1);
                    for (sums, squarings) in head.sums.iter_mut().zip(self.squarings.clone()) {
                        let temperature = f64::from(1u32 << squarings);
                        let cooled: Vec<f64> = scores.iter().map(|s| s / temperature).collect();
                        sums.push(log_sum_exp(&cooled));
                    }
                }
            }
            _ => {}
        }
    }
}

/// Collects the range of every site, with the shifts applied.
pub(crate) struct RangeCollector<'a> {
    config: &'a ModelConfig,
    shifts: &'a [Vec<HeadShift>],
    squarings: u32,
    queries: Vec<f64>,
    total: Vec<f64>,
    pub(crate) ranges: BTreeMap<String, Observed>,
}

impl<'a> RangeCollector<'a> {
    pub(crate) fn new(
        config: &'a ModelConfig,
        shifts: &'a [Vec<HeadShift>],
        squarings: u32,
    ) -> Self {
        Self {
            config,
            shifts,
            squarings,
            queries: Vec::new(),
            total: Vec::new(),
            ranges: BTreeMap::new(),
        }
    }

    fn take(&mut self, name: String, groups: usize, positive: bool, values: &[f64]) {
        self.ranges
            .entry(name)
            .or_insert_with(|| Observed::new(groups, positive))
            .take(values);
    }

    /// The softmax as it is computed under encryption: shifted scores, exponents, and the sum of every round.
    fn take_softmax(&mut self, layer: usize, scores: &[f64]) {
        let (heads, channels) = (self.config.heads, self.config.head_width);
        let tokens = scores.len() / heads;
        let temperature = f64::from(1u32 << self.squarings);
        let (mut shifted, mut exponents) = (Vec::new(), Vec::new());
        for ((shift, query), scores) in self.shifts[layer]
            .iter()
            .zip(self.queries.chunks(channels))
            .zip(scores.chunks(tokens))
        {
            let along: f64 = shift.slope.iter().zip(query).map(|(s, q)| s * q).sum();
            shifted.extend(scores.iter().map(|s| s - along * temperature));
            exponents.extend(
                scores
                    .iter()
                    .map(|s| s / temperature - along - shift.beta[tokens - 1]),
            );
        }
        self.take(Site::Scores(layer).to_string(), heads, false, &shifted);
        self.take(format!("layer{layer}.exponents"), heads, false, &exponents);

        let mut weights: Vec<f64> = exponents.iter().map(|e| e.exp()).collect();
        for round in 0..=self.squarings {
            if round > 0 {
                weights.iter_mut().for_each(|w| *w *= *w);
            }
            let sums: Vec<f64> = weights.chunks(tokens).map(|w| w.iter().sum()).collect();
            for (weights, sum) in weights.chunks_mut(tokens).zip(&sums) {
                weights.iter_mut().for_each(|w| *w /= sum);
            }
            self.take(denominator_name(layer, round), heads, true, &sums);
            self.total = sums;
        }
    }
}

/// Site of the sum that a round of the softmax divides by; round 0 sums the exponentials themselves.
pub fn denominator_name(layer: usize, round: u32) -> String {
    format!("layer{layer}.denominator{round}")
}

impl Observer for RangeCollector<'_> {
    fn observe(&mut self, site: Site, values: &[f64]) {
        let (heads, channels) = (self.config.heads, self.config.head_width);
        match site {
            Site::LogSumExp(_) => {}
            Site::Scores(layer) => self.take_softmax(layer, values),
            // A cache of heads that several queries share holds keys without shifts, which differ.
            Site::Keys(_) | Site::Values(_) if self.config.kv_heads < heads => {
                self.take(site.to_string(), 1, false, values);
            }
            Site::Keys(layer) => {
                let temperature = f64::from(1u32 << self.squarings);
                let shift = self.shifts[layer].iter().flat_map(|head| &head.slope);
                let shifted: Vec<f64> = values
                    .iter()
                    .zip(shift)
                    .map(|(k, s)| k - s * temperature)
                    .collect();
                self.take(site.to_string(), heads, false, &shifted);
            }
            Site::Attention(layer) => {
                // With the last division postponed, what a ciphertext holds is the sum times the mix.
                let sums = self
                    .total
                    .iter()
                    .flat_map(|&sum| std::iter::repeat_n(sum, channels));
                let numerator: Vec<f64> = values
                    .iter()
                    .zip(sums)
                    .map(|(mix, sum)| mix * sum)
                    .collect();
                self.take(format!("layer{layer}.numerator"), heads, false, &numerator);
                self.take(site.to_string(), heads, false, values);
            }
            Site::Queries(_) | Site::Values(_) => {
                if matches!(site, Site::Queries(_)) {
                    self.queries = values.to_vec();
                }
                self.take(site.to_string(), heads, false, values);
            }
            Site::QueryVariance(_)
            | Site::KeyVariance(_)
            | Site::Norm1Variance(_)
            | Site::Norm2Variance(_)
            | Site::FinalVariance => {
                self.take(site.to_string(), 1, true, values);
            }
            _ => self.take(site.to_string(), 1, false, values),
        }
    }
}
