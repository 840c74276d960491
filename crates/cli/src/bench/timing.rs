//! Repeated timing.

use std::time::Instant;

use taciturn_ring::Ring;

/// Runs `f` once to warm up, then `runs` times; the times in milliseconds, sorted.
pub fn sorted_ms<E>(runs: usize, mut f: impl FnMut() -> Result<(), E>) -> Result<Vec<f64>, E> {
    f()?;
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let start = Instant::now();
        f()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// As [`sorted_ms`], by the device's own clock where the ring has a device: each time is then that of `calls` calls that were queued one
/// after the other, over their number.
pub fn sorted_queued_ms<E>(
    ring: &Ring,
    runs: usize,
    calls: u32,
    mut f: impl FnMut() -> Result<(), E>,
) -> Result<Vec<f64>, E> {
    let Some(queue) = ring.queue() else {
        return sorted_ms(runs, f);
    };
    // Once to bring operands to the device, once to record what can be replayed.
    f()?;
    f()?;
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        ring.synchronize();
        let clock = queue.start_clock();
        for _ in 0..calls {
            f()?;
        }
        times.push(clock.elapsed_ms() / f64::from(calls));
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// The middle of sorted times.
pub fn median(times: &[f64]) -> f64 {
    times[times.len() / 2]
}

/// The least of sorted times: the one that other work on the machine disturbed least.
pub fn shortest(times: &[f64]) -> f64 {
    times[0]
}
