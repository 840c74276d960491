//! A device's kernels beside what it can do at most.

use std::fmt::Write;

use anyhow::Result;
use serde::Serialize;
use taciturn_ring::{DeviceLimits, KernelTime};

use crate::rows::Rows;

/// Calls of each kernel in one measurement.
pub const REPEATS: u32 = 10;

/// What the device does at most, measured in the same run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Limits {
    /// Of a copy of memory larger than its caches: read and written.
    pub bytes_per_second: f64,
    /// FP64 multiply-adds.
    pub fp64_per_second: f64,
    /// Integer multiply-adds of 32-bit factors and a 64-bit sum.
    pub integer_per_second: f64,
}

/// All launches of one kernel in a sequence.
#[derive(Clone, Debug, Serialize)]
pub struct KernelRow {
    pub kernel: &'static str,
    pub launches: usize,
    /// Of all launches; each was queued several times in a row, so that caches may hold some of its operands.
    pub ms: f64,
    /// Operands read once and results written once.
    pub bytes: f64,
    /// FP64 instructions, a fused multiply-add being one.
    pub fp64: f64,
    /// Integer multiply-adds.
    pub integer: f64,
    /// Of the bandwidth of a copy.
    pub bandwidth_share: f64,
    /// Of the rate of FP64 multiply-adds.
    pub fp64_share: f64,
    /// Of the rate of integer multiply-adds.
    pub integer_share: f64,
    /// The least time that the limits permit, over the time that it took.
    pub limit_share: f64,
}

/// Adds limits and kernels to a file of results.
pub fn add_rows(rows: &mut Rows, limits: Option<&Limits>, kernels: &[KernelRow]) -> Result<()> {
    if let Some(limits) = limits {
        rows.add("limits", limits)?;
    }
    kernels
        .iter()
        .try_for_each(|kernel| rows.add("kernel", kernel))
}

/// As reports show them.
pub fn limits(limits: &DeviceLimits) -> Limits {
    Limits {
        bytes_per_second: limits.bytes_per_second,
        fp64_per_second: limits.fp64_per_second,
        integer_per_second: limits.integer_per_second,
    }
}

/// As reports show them, the longest first.
pub fn rows(times: &[KernelTime], limits: &Limits) -> Vec<KernelRow> {
    let row = |time: &KernelTime| {
        let share = |count: f64, rate: f64| {
            if time.ms > 0.0 {
                count / rate / (time.ms / 1e3)
            } else {
                0.0
            }
        };
        let bandwidth_share = share(time.bytes, limits.bytes_per_second);
        let fp64_share = share(time.fp64, limits.fp64_per_second);
        let integer_share = share(time.integer, limits.integer_per_second);
        KernelRow {
            kernel: time.kernel,
            launches: time.launches,
            ms: time.ms,
            bytes: time.bytes,
            fp64: time.fp64,
            integer: time.integer,
            bandwidth_share,
            fp64_share,
            integer_share,
            limit_share: bandwidth_share.max(fp64_share).max(integer_share),
        }
    };
    let mut rows: Vec<KernelRow> = times.iter().map(row).collect();
    rows.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    rows
}

/// A table for people.
pub fn text(out: &mut String, limits: &Limits, rows: &[KernelRow]) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "limits: {:.0} GB/s, {:.2} T FP64 multiply-adds/s, {:.2} T integer multiply-adds/s",
        limits.bytes_per_second / 1e9,
        limits.fp64_per_second / 1e12,
        limits.integer_per_second / 1e12
    );
    let _ = writeln!(
        out,
        "kernel                     launches        ms  bandwidth  FP64  integer  limit"
    );
    for row in rows {
        let _ = writeln!(
            out,
            "{:<26} {:>8} {:>9.4} {:>9.0}% {:>4.0}% {:>7.0}% {:>5.0}%",
            row.kernel,
            row.launches,
            row.ms,
            row.bandwidth_share * 100.0,
            row.fp64_share * 100.0,
            row.integer_share * 100.0,
            row.limit_share * 100.0
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_limit_counts() {
        let limits = Limits {
            bytes_per_second: 1e12,
            fp64_per_second: 1e12,
            integer_per_second: 2e12,
        };
        let time = |kernel, ms, bytes, fp64| KernelTime {
            kernel,
            launches: 1,
            ms,
            bytes,
            fp64,
            integer: 1e9,
        };
        let times = [time("a", 2.0, 1e9, 0.0), time("b", 4.0, 1e9, 3e9)];
        let rows = rows(&times, &limits);
        assert_eq!((rows[0].kernel, rows[0].limit_share), ("b", 0.75));
        assert_eq!(
            (rows[1].bandwidth_share, rows[1].integer_share),
            (0.5, 0.25)
        );
    }
}
