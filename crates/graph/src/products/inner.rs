//! Inner rotations: every block of a vector turned within itself, which a rotation of all slots does not do.

use crate::{Machine, Plain, PlainId};

/// Baby steps of `count` steps, a power of two; the larger half, because these are hoisted.
fn baby_steps(count: usize) -> usize {
    1 << count.trailing_zeros().div_ceil(2)
}

/// `sum_m inner(x, m) * P_m` for `m < count`, where `inner(x, m)` turns each block of `width` slots of `x` to the left by `m`
/// slots; two levels.
///
/// By baby steps `b` and giant steps `k`, with `m = k + b`. A baby step is two rotations, by `b` and by `b - width`, of which
/// masks take the slots that stay in their block. A giant step needs no masks of its own: the weights are split in two instead.
/// `entry(slot, b, k)` is the weight that slot `slot` of the baby step `b` takes before its giant step `k`.
pub fn inner_transform<M: Machine>(
    machine: &mut M,
    x: &M::Value,
    id: PlainId,
    (width, count): (usize, usize),
    entry: impl Fn(usize, usize, usize) -> f64 + Clone + Send + Sync + 'static,
) -> Result<M::Value, M::Error> {
    let slots = machine.slots();
    let baby_steps = baby_steps(count);
    let babies = inner_rotations(machine, x, width, baby_steps)?;
    let mut sum: Option<M::Value> = None;
    for giant in (0..count).step_by(baby_steps) {
        // The slots from `giant` on in each block stay in it when all slots turn by `giant`; those before it come from the other side.
        let parts = [
            (giant..width, giant as i64),
            (0..giant, giant as i64 - width as i64),
        ];
        for (part, steps) in parts {
            if part.is_empty() {
                continue;
            }
            let weights: Vec<_> = babies
                .iter()
                .enumerate()
                .map(|(baby, value)| {
                    let (part, entry) = (part.clone(), entry.clone());
                    let id = PlainId::of(("inner transform", id, slots, baby, giant, part.start));
                    let plain = Plain::new(id, slots, move |out| {
                        for (slot, out) in out.iter_mut().enumerate() {
                            if part.contains(&(slot % width)) {
                                *out = entry(slot, baby, giant);
                            }
                        }
                    });
                    (value, plain)
                })
                .collect();
            let mut product = machine.dot_weights(&weights)?;
            if steps != 0 {
                product = machine.rotate(&product, steps)?;
            }
            sum = Some(match sum {
                None => product,
                Some(sum) => machine.add(&sum, &product)?,
            });
        }
    }
    Ok(sum.expect("there is a giant step"))
}

/// `inner(x, b)` for `b < count`, one level below `x`.
fn inner_rotations<M: Machine>(
    machine: &mut M,
    x: &M::Value,
    width: usize,
    count: usize,
) -> Result<Vec<M::Value>, M::Error> {
    let steps: Vec<i64> = (1..count as i64)
        .flat_map(|b| [b, b - width as i64])
        .collect();
    let ones = mask(width, 0, width);
    let mut out = vec![machine.mul_plain(x, &ones)?];
    let turned = machine.rotate_many(x, &steps)?;
    for (b, turned) in (1..count).zip(turned.chunks(2)) {
        let border = width - b;
        let masked = [
            (&turned[0], mask(width, 0, border)),
            (&turned[1], mask(width, border, width)),
        ];
        out.push(machine.dot_plain(&masked)?);
    }
    Ok(out)
}

/// One in the slots `from .. to` of every block.
fn mask(width: usize, from: usize, to: usize) -> Plain {
    let id = PlainId::of(("inner mask", width, from, to));
    Plain::new(id, width, move |out| out[from..to].fill(1.0))
}
