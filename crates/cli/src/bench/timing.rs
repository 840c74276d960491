//! Repeated timing.

use std::time::Instant;

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

/// The middle of sorted times.
pub fn median(times: &[f64]) -> f64 {
    times[times.len() / 2]
}

/// The least of sorted times: the one that other work on the machine disturbed least.
pub fn shortest(times: &[f64]) -> f64 {
    times[0]
}
