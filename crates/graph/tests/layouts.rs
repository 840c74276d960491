//! Every lowering against the logical meaning of its operation, slot for slot.

mod common;

use common::{Random, exact, run_slots, worst};
use std::collections::HashMap;
use std::sync::Arc;
use taciturn_approx::interpolate;
use taciturn_graph::*;

/// Runs a graph both ways and compares all outputs, then returns them.
fn agree(graph: &Graph, inputs: &HashMap<String, Vec<f64>>) -> HashMap<String, Vec<f64>> {
    let logical = Logical::simulated(NoiseLevels::NONE, 0)
        .run(graph, None, inputs)
        .unwrap();
    let plan = Plan::unlimited(graph).unwrap();
    let slots = run_slots(graph, &plan, &mut exact(graph.slots()), inputs);
    for (name, value) in &logical {
        assert!(worst(value, &slots[name]) < 1e-9, "{name}");
    }
    logical
}

fn inputs(entries: &[(&str, Vec<f64>)]) -> HashMap<String, Vec<f64>> {
    entries
        .iter()
        .map(|(name, entries)| ((*name).to_owned(), entries.clone()))
        .collect()
}

fn multiply(x: &[f64], matrix: &Matrix) -> Vec<f64> {
    (0..matrix.columns())
        .map(|c| (0..x.len()).map(|r| x[r] * matrix.at(r, c)).sum())
        .collect()
}

#[test]
fn products_of_all_shapes() {
    let mut random = Random::new(1);
    let sizes = [
        (4096, 128, 128),
        (4096, 128, 512),
        (4096, 512, 128),
        (4096, 64, 64),
        (4096, 16, 8),
        (4096, 8, 16),
        (4096, 32, 256),
        (64, 64, 64),
        (64, 32, 64),
        (64, 64, 1),
    ];
    for (slots, rows, columns) in sizes {
        let matrix = random.matrix("w", rows, columns, 1.0);
        let x = random.vector(rows);
        let run = slots / columns;
        for lane in [0, run / 2, run - 1] {
            let mut graph = Graph::new(slots).unwrap();
            let from = graph.input("x", Layout::periodic(rows)).unwrap();
            let y = graph.product_spaced("y", from, &matrix, lane).unwrap();
            graph.output("y", y);
            let masked = graph.mul_plain("masked", y, 2.0).unwrap();
            let repeated = graph.repeat("repeated", masked).unwrap();
            graph.output("repeated", repeated);
            let back = random.matrix("back", columns, rows, 1.0);
            let z = graph.product_periodic("z", repeated, &back).unwrap();
            graph.output("z", z);
            let outputs = agree(&graph, &inputs(&[("x", x.clone())]));
            let y = multiply(&x, &matrix);
            assert!(
                worst(&outputs["y"], &y) < 1e-9,
                "{slots} {rows} {columns} {lane}"
            );
            let twice: Vec<f64> = y.iter().map(|y| 2.0 * y).collect();
            assert!(worst(&outputs["z"], &multiply(&twice, &back)) < 1e-9);
        }
    }
}

/// Packing changes how a map is computed, not the map; every real weight is in one plaintext.
#[test]
fn packed_maps_are_the_same_map() {
    for (slots, stride, count) in [
        (64, 1, 64),
        (64, 4, 2),
        (256, 8, 16),
        (256, 2, 32),
        (64, 1, 1),
    ] {
        let random = move |m: usize| Random::new(m as u64).vector(slots);
        let id = PlainId::of(("map", slots, stride, count));
        let map = Diagonals::new(id, stride, count, slots, move |m, out| {
            out.copy_from_slice(&random(m))
        });
        let x = Random::new(100).vector(slots);
        let mut want = vec![0.0; slots];
        for m in 0..count {
            for (q, (want, weight)) in want.iter_mut().zip(random(m)).enumerate() {
                *want += x[(q + m * stride) % slots] * weight;
            }
        }
        for map in [map.clone(), map.clone().packed(), map.cheapest()] {
            let mut simulator = exact(slots);
            let a = simulator.encrypt(&x, Level(1));
            let y = simulator.linear_transform(&a, &map).unwrap();
            assert!(worst(y.as_slice(), &want) < 1e-9, "{map:?}");
        }
    }
}

/// Periodic and repeated results must be valid in every slot, not only where they are read.
#[test]
fn results_fill_their_slots() {
    let (slots, rows, columns) = (256, 16, 8);
    let mut random = Random::new(2);
    let mut graph = Graph::new(slots).unwrap();
    let x = graph
        .input("x", Layout::repeated(rows, slots / rows))
        .unwrap();
    let y = graph
        .product_periodic("y", x, &random.matrix("w", rows, columns, 1.0))
        .unwrap();
    let sum = graph.sum_all("sum", y).unwrap();
    let spaced = graph
        .product_spaced("spaced", y, &random.matrix("v", columns, rows, 1.0), 5)
        .unwrap();
    let masked = graph
        .mul_plain("masked", spaced, random.vector(rows))
        .unwrap();
    let repeated = graph.repeat("repeated", masked).unwrap();
    [
        ("y", y),
        ("sum", sum),
        ("masked", masked),
        ("repeated", repeated),
    ]
    .into_iter()
    .for_each(|(name, id)| graph.output(name, id));
    let entries = random.vector(rows);
    let plan = Plan::unlimited(&graph).unwrap();
    let mut simulator = exact(slots);
    let logical = Logical::clear()
        .run(&graph, None, &inputs(&[("x", entries.clone())]))
        .unwrap();
    let encrypted = simulator.encrypt(
        &graph.node(x).layout.expand(&entries, 0.0, slots),
        plan.max_level,
    );
    let outputs = run(
        &graph,
        &plan,
        &mut simulator,
        HashMap::from([("x".to_owned(), encrypted)]),
        &mut |_| (),
    );
    for (name, value) in outputs.unwrap() {
        let layout = graph.node(graph.find(&name).unwrap()).layout;
        assert!(
            worst(
                value.as_slice(),
                &layout.expand(&logical[&name], 0.0, slots)
            ) < 1e-9,
            "{name}"
        );
    }
}

#[test]
fn vocabularies_larger_than_the_slots() {
    let mut random = Random::new(3);
    let (slots, width, vocabulary) = (64, 32, 150);
    let matrix = Matrix::dense("head", width, vocabulary, vec![0.0; width]).is_none();
    assert!(matrix, "a wrong number of entries must be refused");
    let matrix = random.matrix("head", width, vocabulary, 1.0);
    let mut graph = Graph::new(slots).unwrap();
    let x = graph.input("x", Layout::periodic(width)).unwrap();
    let blocks = graph.product_blocks("head", x, &matrix).unwrap();
    assert_eq!(blocks.len(), 3);
    blocks
        .iter()
        .enumerate()
        .for_each(|(i, &id)| graph.output(format!("head.{i}"), id));
    let entries = random.vector(width);
    let outputs = agree(&graph, &inputs(&[("x", entries.clone())]));
    let mut logits: Vec<f64> = (0..3)
        .flat_map(|i| outputs[&format!("head.{i}")].clone())
        .collect();
    logits.truncate(vocabulary);
    assert!(worst(&logits, &multiply(&entries, &matrix)) < 1e-9);
}

#[test]
fn arithmetic_repeats_the_shorter_value() {
    let mut random = Random::new(4);
    let mut graph = Graph::new(64).unwrap();
    let long = graph.input("long", Layout::periodic(16)).unwrap();
    let short = graph.input("short", Layout::periodic(4)).unwrap();
    let one = graph.sum_all("one", short).unwrap();
    let cheb = interpolate(f64::exp, -4.0, 4.0, 15).unwrap();
    let exp = Arc::new(NonLinear {
        function: Function::plain(FunctionKind::Exp),
        polynomial: cheb,
    });
    let nodes = [
        graph.add("add", long, short),
        graph.sub("sub", short, long),
        graph.mul("mul", long, one),
        graph.square("square", long),
        graph.add_plain("add_plain", long, random.vector(16)),
        graph.mul_plain("mul_plain", long, 3.0),
        graph.polynomial("exp", long, &exp),
        graph.subtract_image("image", long, &exp, 1, 0.5, random.vector(16)),
    ];
    for node in nodes {
        let id = node.unwrap();
        let name = graph.node(id).name.clone();
        graph.output(name, id);
    }
    let entries = inputs(&[("long", random.vector(16)), ("short", random.vector(4))]);
    let outputs = agree(&graph, &entries);
    let (long, short) = (&entries["long"], &entries["short"]);
    let sub: Vec<f64> = (0..16).map(|i| short[i % 4] - long[i]).collect();
    assert!(worst(&outputs["sub"], &sub) < 1e-12);
}

/// The identities of attention: 70 tokens over groups, padded heads, unused tokens, garbage between lanes.
#[test]
fn attention_over_groups_of_tokens() {
    let (slots, used, channels, tokens) = (4096, 3, 32, 70);
    let heads = Heads::new(slots, 4, channels, 4).unwrap();
    let mut random = Random::new(5);
    let mut column_order = || {
        let mut out = vec![0.0; heads.width()];
        for h in 0..used {
            (0..channels).for_each(|c| out[heads.column(h, c)] = random.number());
        }
        out
    };
    let (q, k): (Vec<f64>, Vec<Vec<f64>>) = (
        column_order(),
        (0..tokens).map(|_| column_order()).collect(),
    );
    let v: Vec<Vec<f64>> = (0..tokens).map(|_| column_order()).collect();
    let mut garbage = Random::new(6);
    let mut caches: HashMap<String, Vec<f64>> = HashMap::new();
    for n in 0..tokens {
        let (group, lane) = (n / heads.lanes(), n % heads.lanes());
        let mut graph = Graph::new(slots).unwrap();
        let mut entries = caches.clone();
        let spaced = heads.spaced(lane, Rest::Garbage);
        for (name, x) in [("k", &k[n]), ("v", &v[n])] {
            // The garbage goes in as a periodic value with all slots distinct, so that it is really there.
            let id = graph.input(name, spaced).unwrap();
            entries.insert(name.to_owned(), x.clone());
            for s in 0..heads.groups() {
                let member = if name == "k" {
                    format!("k{group}")
                } else {
                    format!("v{s}")
                };
                let chosen =
                    |i: usize| name == "k" || (i / heads.heads() + s) % heads.groups() == group;
                let mask: Vec<f64> = (0..heads.width())
                    .map(|i| f64::from(u8::from(chosen(i))))
                    .collect();
                let masked = graph
                    .mul_plain(format!("{member} masked"), id, mask)
                    .unwrap();
                let cache = caches
                    .contains_key(&member)
                    .then(|| graph.cache(&member, name, heads.cache()).unwrap());
                let appended = graph
                    .append(format!("{member} appended"), name, masked, cache)
                    .unwrap();
                graph.output(member, appended);
                if name == "k" {
                    break;
                }
            }
        }
        let plan = Plan::unlimited(&graph).unwrap();
        let mut simulator = exact(slots);
        let encrypted = graph
            .inputs()
            .map(|(name, layout)| {
                let mut all = layout.expand(&entries[name], 0.0, slots);
                if let Some(lane) = layout.lane() {
                    let noise = garbage.vector(slots);
                    all.iter_mut()
                        .enumerate()
                        .filter(|(i, _)| i % layout.run != lane)
                        .for_each(|(i, x)| *x = noise[i]);
                }
                (name.to_owned(), simulator.encrypt(&all, plan.max_level))
            })
            .collect();
        let outputs = run(&graph, &plan, &mut simulator, encrypted, &mut |_| ()).unwrap();
        let logical = Logical::clear().run(&graph, None, &entries).unwrap();
        for (name, value) in outputs {
            assert!(worst(value.as_slice(), &logical[&name]) < 1e-12);
            caches.insert(name, value.as_slice().to_vec());
        }
    }

    let mut graph = Graph::new(slots).unwrap();
    let query = graph.input("q", heads.repeated()).unwrap();
    let groups = tokens.div_ceil(heads.lanes());
    let cached = |graph: &mut Graph, kind: &str, count: usize| -> Vec<NodeId> {
        (0..count)
            .map(|i| {
                graph
                    .cache(format!("{kind}{i}"), kind, heads.cache())
                    .unwrap()
            })
            .collect()
    };
    let keys = cached(&mut graph, "k", groups);
    let values = cached(&mut graph, "v", heads.groups());
    let scores = graph.scores("scores", heads, &[query], &keys).unwrap();
    let total = graph.sum_tokens("total", heads, &[scores]).unwrap();
    let attended = graph
        .weighted_values("attended", heads, scores, &values)
        .unwrap();
    for (name, id) in [("scores", scores), ("total", total), ("attended", attended)] {
        graph.output(name, id);
    }
    caches.insert("q".to_owned(), q.clone());
    let outputs = agree(&graph, &caches);
    let score = |h: usize, n: usize| -> f64 {
        (0..channels)
            .map(|c| q[heads.column(h, c)] * k[n][heads.column(h, c)])
            .sum()
    };
    for h in 0..used {
        let sum: f64 = (0..tokens).map(|n| score(h, n)).sum();
        assert!((outputs["total"][h] - sum).abs() < 1e-9);
        for n in 0..tokens {
            assert!((outputs["scores"][heads.score(h, 0, n)] - score(h, n)).abs() < 1e-9);
        }
        for c in 0..channels {
            let i = heads.column(h, c);
            let sum: f64 = (0..tokens).map(|n| score(h, n) * v[n][i]).sum();
            assert!((outputs["attended"][i] - sum).abs() < 1e-9);
        }
    }
    for n in tokens..heads.capacity() {
        assert_eq!(outputs["scores"][heads.score(0, 0, n)], 0.0);
    }
}

#[test]
fn rotary_embedding_turns_halves() {
    let (slots, heads, channels) = (1024, 4, 16);
    let mut random = Random::new(7);
    let width = heads * channels;
    let x = random.vector(width);
    let angles = random.vector(channels / 2);
    let angle = |i: usize| angles[i / heads % (channels / 2)];
    let cos: Vec<f64> = (0..width).map(|i| angle(i).cos()).collect();
    let sin: Vec<f64> = (0..width)
        .map(|i| {
            if i < width / 2 {
                -angle(i).sin()
            } else {
                angle(i).sin()
            }
        })
        .collect();
    let mut graph = Graph::new(slots).unwrap();
    let from = graph
        .input("x", Layout::spaced(width, slots / width, 3, Rest::Garbage))
        .unwrap();
    let half = graph.turn("half", from, width / 2).unwrap();
    let turned = graph.rope("turned", from, half, cos, sin).unwrap();
    let repeated = graph.repeat("repeated", turned).unwrap();
    graph.output("repeated", repeated);
    let outputs = agree(&graph, &inputs(&[("x", x.clone())]));
    for h in 0..heads {
        for c in 0..channels / 2 {
            let (a, b, t) = (
                x[c * heads + h],
                x[(c + channels / 2) * heads + h],
                angles[c],
            );
            assert!(
                (outputs["repeated"][c * heads + h] - (a * t.cos() - b * t.sin())).abs() < 1e-12
            );
            assert!(
                (outputs["repeated"][(c + channels / 2) * heads + h] - (b * t.cos() + a * t.sin()))
                    .abs()
                    < 1e-12
            );
        }
    }
}

/// One value per head, repeated over its tokens, goes with scores once its runs count as entries: it costs nothing and needs full runs.
#[test]
fn flattening_makes_every_slot_of_a_run_an_entry() {
    let heads = Heads::new(1024, 4, 16, 4).unwrap();
    let mut random = Random::new(9);
    let mut graph = Graph::new(1024).unwrap();
    let spaced = heads.per_head(Rest::Constant(0.0));
    let x = graph.input("x", spaced).unwrap();
    let scores = graph.input("scores", heads.scores()).unwrap();
    assert!(matches!(
        graph.flatten("spaced", x),
        Err(GraphError::Layout { .. })
    ));
    let repeated = graph.repeat("repeated", x).unwrap();
    let flat = graph.flatten("flat", repeated).unwrap();
    let scaled = graph.mul("scaled", scores, flat).unwrap();
    for (name, id) in [("flat", flat), ("scaled", scaled)] {
        graph.output(name, id);
    }
    let entries = inputs(&[
        ("x", random.vector(4)),
        ("scores", random.vector(heads.scores().values)),
    ]);
    let outputs = agree(&graph, &entries);
    assert_eq!(outputs["flat"].len(), 4 * heads.lanes());
    for head in 0..4 {
        for token in 0..heads.capacity() {
            let i = heads.score(head, 0, token);
            let want = entries["scores"][i] * entries["x"][head];
            assert!((outputs["scaled"][i] - want).abs() < 1e-12);
        }
    }
}

/// Entries picked out, turned, summed and put together again.
#[test]
fn entries_change_places() {
    let (slots, values, run) = (256, 16, 8);
    let mut random = Random::new(14);
    let x = random.vector(values);
    let mut graph = Graph::new(slots).unwrap();
    let garbage = Layout::spaced(values, run, 0, Rest::Garbage);
    let from = graph.input("x", garbage).unwrap();
    let turned = graph.turn("turned", from, 5).unwrap();
    let sums = graph.sum_entries("sums", from, 4).unwrap();
    let mut masked = Vec::new();
    for which in 0..4 {
        let name = |part: &str| format!("{part}{which}");
        let one = graph.select(name("selected"), from, 4, which).unwrap();
        assert_eq!(graph.node(one).layout.lane(), Some(which * run));
        let one = graph.mul_plain(name("masked"), one, 1.0).unwrap();
        let repeated = graph.repeat(name("repeated"), one).unwrap();
        graph.output(name("repeated"), repeated);
        // Back at lane 0, as what is interleaved has to be.
        let back = graph.select(name("head"), from, 4, 0).unwrap();
        masked.push(
            graph
                .mul_plain(name("head masked"), back, which as f64)
                .unwrap(),
        );
    }
    let together = graph.interleave("together", &masked).unwrap();
    for (name, id) in [("turned", turned), ("sums", sums), ("together", together)] {
        graph.output(name, id);
    }
    let outputs = agree(&graph, &inputs(&[("x", x.clone())]));
    for i in 0..values {
        assert_eq!(outputs["turned"][i], x[(i + 5) % values]);
        let want = (i % 4) as f64 * x[i - i % 4];
        assert!((outputs["together"][i] - want).abs() < 1e-12);
        assert_eq!(outputs[&format!("repeated{}", i % 4)][i / 4], x[i]);
    }
    for i in 0..4 {
        let sum: f64 = (0..4).map(|k| x[i + 4 * k]).sum();
        assert!((outputs["sums"][i] - sum).abs() < 1e-12);
    }
    let turned = graph.turn("too far", from, values);
    assert!(matches!(turned, Err(GraphError::Layout { .. })));
    let selected = graph.select("one too many", from, 4, 4);
    assert!(matches!(selected, Err(GraphError::Layout { .. })));
    let unmasked = graph.interleave("unmasked", &[from, from]);
    assert!(matches!(unmasked, Err(GraphError::Layout { .. })));
    let uneven = graph.sum_entries("uneven", from, 3);
    assert!(matches!(uneven, Err(GraphError::Layout { .. })));
}

#[test]
fn wrong_graphs_are_refused() {
    let mut random = Random::new(8);
    assert!(matches!(Graph::new(48), Err(GraphError::Slots(48))));
    let mut graph = Graph::new(64).unwrap();
    let x = graph.input("x", Layout::periodic(16)).unwrap();
    let duplicate = graph.square("x", x);
    assert!(matches!(duplicate, Err(GraphError::Duplicate { .. })));
    let matrix = random.matrix("w", 16, 16, 1.0);
    let spaced = graph.product_spaced("spaced", x, &matrix, 0).unwrap();
    assert!(matches!(
        graph.repeat("repeat", spaced),
        Err(GraphError::Layout { .. })
    ));
    assert!(matches!(
        graph.product_periodic("back", x, &matrix),
        Err(GraphError::Layout { .. })
    ));
    assert!(matches!(
        graph.product_spaced("lane", x, &matrix, 4),
        Err(GraphError::Shape { .. })
    ));
    assert!(matches!(
        graph.add("add", x, spaced),
        Err(GraphError::Layout { .. })
    ));
    assert!(matches!(
        graph.add_plain("vector", x, vec![1.0; 8]),
        Err(GraphError::Shape { .. })
    ));
    assert!(matches!(
        Heads::new(64, 4, 4, 8),
        Err(GraphError::Heads { .. })
    ));
    assert!(matches!(
        Heads::grouped(256, 2, 4, 8, 4),
        Err(GraphError::Heads { .. })
    ));
}
