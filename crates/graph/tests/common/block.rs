//! A small GPT-2-like model with random weights.

use super::Random;
use taciturn_approx::{Approximation, Exp, Gate, Gelu, GeluForm, Inverse, InverseSqrt};
use taciturn_graph::*;

/// Sizes of a model; `width` and the others are true sizes, padded inside.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub slots: usize,
    pub layers: usize,
    pub width: usize,
    pub heads: usize,
    pub queries: usize,
    pub channels: usize,
    pub groups: usize,
}

pub const SMALL: Sizes = Sizes {
    slots: 512,
    layers: 2,
    width: 12,
    heads: 3,
    queries: 1,
    channels: 4,
    groups: 4,
};

pub const GPT2_SMALL: Sizes = Sizes {
    slots: 1 << 15,
    layers: 12,
    width: 768,
    heads: 12,
    queries: 1,
    channels: 64,
    groups: 4,
};

pub struct Model {
    pub sizes: Sizes,
    /// Rotary embedding of queries and keys.
    pub rope: bool,
    /// Whether the logarithm of the number of tokens is subtracted from the scores: sums of exponentials then stay in place.
    pub tempered: bool,
    pub norm: NormSpec,
    pub layers: Vec<(AttentionSpec, FeedForwardSpec)>,
}

impl Sizes {
    pub fn padded(&self) -> usize {
        self.width.next_power_of_two()
    }

    pub fn geometry(&self) -> Heads {
        let padded = [self.heads, self.queries, self.channels].map(usize::next_power_of_two);
        let [heads, queries, channels] = padded;
        Heads::grouped(self.slots, heads, queries, channels, self.groups).unwrap()
    }
}

/// A matrix that is zero outside the true rows and columns.
fn padded(
    random: &mut Random,
    name: &str,
    (rows, columns): (usize, usize),
    used_row: impl Fn(usize) -> bool,
    used_column: impl Fn(usize) -> bool,
    scale: f64,
) -> Matrix {
    if rows * columns > 1 << 16 {
        // Only counted, never multiplied.
        return Matrix::computed(name, rows, columns, |_, _| 0.0);
    }
    let mut entries = vec![0f32; rows * columns];
    for (i, entry) in entries.iter_mut().enumerate() {
        let x = random.number();
        if used_row(i / columns) && used_column(i % columns) {
            *entry = (scale * x) as f32;
        }
    }
    Matrix::dense(name, rows, columns, entries).unwrap()
}

fn bias(random: &mut Random, length: usize, used: impl Fn(usize) -> bool) -> Option<Vec<f64>> {
    Some(
        (0..length)
            .map(|i| 0.3 * random.number() * f64::from(u8::from(used(i))))
            .collect(),
    )
}

/// Rotary embedding at a position, in entry order, for `queries` entries per K/V head and channel.
fn rope(heads: &Heads, queries: usize, position: usize) -> RopeSpec {
    let width = heads.width() * queries;
    let half = width / 2;
    let angle = |i: usize| {
        let pair = (i % half) / (heads.heads() * queries);
        position as f64 * 100f64.powf(-2.0 * pair as f64 / heads.channels() as f64)
    };
    let sign = |i: usize| if i < half { -1.0 } else { 1.0 };
    RopeSpec {
        cos: (0..width).map(|i| angle(i).cos()).collect(),
        sin: (0..width).map(|i| sign(i) * angle(i).sin()).collect(),
    }
}

impl Model {
    /// With rotary embeddings and gates, as Llama has them.
    pub fn gated(sizes: Sizes) -> Self {
        let mut model = Model::new(sizes);
        let mut random = Random::new(12);
        model.rope = true;
        for (layer, (attention, feed_forward)) in model.layers.iter_mut().enumerate() {
            let width = attention.heads.width();
            attention.key_shifts = (0..attention.heads.queries())
                .map(|_| random.vector(width).iter().map(|x| 0.2 * x).collect())
                .collect();
            let (rows, columns) = (feed_forward.up.rows(), feed_forward.up.columns());
            feed_forward.gate =
                Some(random.matrix(&format!("layer{layer}.gate"), rows, columns, 0.3));
        }
        model
    }

    /// With a norm of every head's query and key.
    pub fn with_head_norms(mut self) -> Self {
        let spec = NormSpec {
            width: self.sizes.channels,
            epsilon: 0.1,
            inverse_sqrt: Approximation::InverseSqrt(InverseSqrt::fit(0.1, 20.0, 31, 2).unwrap()),
        };
        for (attention, _) in &mut self.layers {
            attention.query_norm = Some(spec.clone());
            attention.key_norm = Some(spec.clone());
        }
        self
    }

    /// With rounds of normalise-and-square, for contexts of up to this many tokens.
    pub fn with_rounds(sizes: Sizes, rounds: u32, tokens: usize) -> Self {
        let mut model = Model::new(sizes);
        model.tempered = true;
        for (attention, _) in &mut model.layers {
            attention.score_scale *= 0.5f64.powi(rounds as i32);
            // Weights that sum to one have a sum of squares from 1/tokens to 1; coarse divisions before leave some play.
            let later = || (0.6 / tokens as f64, 1.5);
            let interval = |round| if round == 0 { (0.05, 1.0) } else { later() };
            attention.rounds = (0..rounds)
                .map(|round| {
                    let (low, high) = interval(round);
                    Approximation::Inverse(Inverse::fit(low, high, 15, 0).unwrap())
                })
                .collect();
            let (low, high) = later();
            attention.inverse = Approximation::Inverse(Inverse::fit(low, high, 31, 1).unwrap());
        }
        model
    }

    pub fn new(sizes: Sizes) -> Self {
        let mut random = Random::new(11);
        let heads = sizes.geometry();
        let (d, a, h) = (sizes.padded(), heads.width(), 4 * sizes.padded());
        let all = heads.query_width();
        let residual = |i: usize| i < sizes.width;
        let attention =
            |i: usize| i % heads.heads() < sizes.heads && i / heads.heads() < sizes.channels;
        let queries =
            |i: usize| i % heads.queries() < sizes.queries && attention(i / heads.queries());
        let outputs = |i: usize| {
            let (turn, i) = (i % heads.queries(), i / heads.queries());
            let query = (turn + i / heads.heads()) % heads.queries();
            query < sizes.queries && attention(i)
        };
        let hidden = |i: usize| i < 4 * sizes.width;
        let scale = 1.2 / (sizes.width as f64).sqrt();
        let layers = (0..sizes.layers)
            .map(|layer| {
                let name = |part: &str| format!("layer{layer}.{part}");
                let r = &mut random;
                let attention = AttentionSpec {
                    heads,
                    used_heads: sizes.heads,
                    used_queries: sizes.queries,
                    query: padded(r, &name("q"), (d, all), residual, queries, scale),
                    key: padded(r, &name("k"), (d, a), residual, attention, scale),
                    value: padded(r, &name("v"), (d, a), residual, attention, scale),
                    output: padded(r, &name("o"), (all, d), outputs, residual, scale),
                    query_bias: bias(r, all, queries),
                    key_bias: bias(r, a, attention),
                    value_bias: bias(r, a, attention),
                    output_bias: bias(r, d, residual),
                    query_norm: None,
                    key_norm: None,
                    query_rope: None,
                    key_rope: None,
                    key_shifts: Vec::new(),
                    score_scale: 1.0 / (sizes.channels as f64).sqrt(),
                    offsets: (0..sizes.heads * sizes.queries)
                        .map(|h| 1.5 + 0.1 * h as f64)
                        .collect(),
                    exp: Exp::fit(-8.0, 1.0, 15, 1, 20.0).unwrap(),
                    rounds: Vec::new(),
                    inverse: Approximation::Inverse(
                        Inverse::fit(0.02, 10.0 + 0.4 * heads.capacity() as f64, 31, 4).unwrap(),
                    ),
                };
                let r = &mut random;
                let feed_forward = FeedForwardSpec {
                    hidden: 4 * sizes.width,
                    up: padded(r, &name("up"), (d, h), residual, hidden, scale),
                    up_bias: bias(r, h, hidden),
                    gate: None,
                    gate_bias: None,
                    down: padded(r, &name("down"), (h, d), hidden, residual, scale / 2.0),
                    down_bias: bias(r, d, residual),
                    activation: Approximation::Activation {
                        gate: Gate::NormalByTanh,
                        poly: Gelu::fit(GeluForm::Tanh, -6.0, 6.0, 31).unwrap().poly,
                    },
                };
                (attention, feed_forward)
            })
            .collect();
        let inverse_sqrt = Approximation::InverseSqrt(InverseSqrt::fit(0.05, 8.0, 15, 2).unwrap());
        Model {
            sizes,
            rope: false,
            tempered: false,
            norm: NormSpec {
                width: sizes.width,
                epsilon: 1e-5,
                inverse_sqrt,
            },
            layers,
        }
    }

    /// The step of the token at a position; bounds are set on everything.
    pub fn graph(&self, position: usize) -> Graph {
        let mut graph = Graph::new(self.sizes.slots).unwrap();
        let mut x = graph
            .input("embedding", Layout::periodic(self.sizes.padded()))
            .unwrap();
        for (i, (attention, feed_forward)) in self.layers.iter().enumerate() {
            let layer = format!("layer{i}");
            let normed = graph
                .norm(&format!("{layer}.norm1"), x, &self.norm)
                .unwrap();
            let heads = &attention.heads;
            let rope = |queries| self.rope.then(|| rope(heads, queries, position));
            let temper = f64::from(u8::from(self.tempered)) * ((position + 1) as f64).ln();
            let attention = &AttentionSpec {
                query_rope: rope(heads.queries()),
                key_rope: rope(1),
                offsets: attention.offsets.iter().map(|o| o + temper).collect(),
                ..attention.clone()
            };
            let attended = graph
                .attention(&layer, normed, attention, position)
                .unwrap();
            x = graph
                .add(format!("{layer}.residual.attention"), x, attended)
                .unwrap();
            let normed = graph
                .norm(&format!("{layer}.norm2"), x, &self.norm)
                .unwrap();
            let output = graph
                .feed_forward(&format!("{layer}.feed_forward"), normed, feed_forward)
                .unwrap();
            x = graph
                .add(format!("{layer}.residual.feed_forward"), x, output)
                .unwrap();
        }
        let normed = graph.norm("final.norm", x, &self.norm).unwrap();
        graph.output("hidden", normed);
        graph
    }

    /// The graph of the full context with a bound on everything.
    pub fn full(&self) -> Graph {
        self.bounded(|_| true)
    }

    /// As a calibrated model's graph is: values with garbage between their entries have no bound.
    pub fn without_garbage(&self) -> Graph {
        self.bounded(|node| node.layout.rest() != Some(Rest::Garbage))
    }

    fn bounded(&self, which: impl Fn(&&Node) -> bool) -> Graph {
        let mut graph = self.graph(self.sizes.geometry().capacity() - 1);
        let nodes = graph.nodes().iter().filter(which);
        let names: Vec<String> = nodes.map(|node| node.name.clone()).collect();
        graph.set_bounds(names.iter().map(|name| (name.as_str(), 1.0)));
        graph
    }
}
