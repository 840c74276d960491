//! The system around the command: memory, threads, texts, standard output.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Context, Result};
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use crate::failure::usage;

/// Bytes of memory.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Memory {
    /// In all, within the limit of a container.
    pub total: u64,
    /// Not in use.
    pub available: u64,
}

/// The machine's memory now.
pub fn memory() -> Memory {
    let what = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(what);
    let (mut total, mut available) = (system.total_memory(), system.available_memory());
    if let Some(limits) = system.cgroup_limits() {
        total = total.min(limits.total_memory);
        available = available.min(limits.free_memory);
    }
    Memory { total, available }
}

/// Which processor this is.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Processor {
    /// As it calls itself.
    pub name: String,
    /// The maker's family number, and the model within it: names are often cut short on virtual machines. Empty where unknown.
    pub family: String,
    pub model: String,
    /// Cores that this process may use.
    pub cores: usize,
}

/// This machine's processor; parts that the system does not tell are empty.
pub fn processor() -> Processor {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |key: &str| {
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        let value = fields.find(|(name, _)| name.trim() == key);
        value.map_or_else(String::new, |(_, value)| value.trim().to_owned())
    };
    Processor {
        name: field("model name"),
        family: field("cpu family"),
        model: field("model"),
        cores: std::thread::available_parallelism().map_or(0, NonZeroUsize::get),
    }
}

/// Peak resident memory of this process; 0 where the system does not tell.
pub fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| {
        let kib = line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?;
        kib.trim().parse::<u64>().ok()
    });
    kib.unwrap_or(0) * 1024
}

/// Computes with this many threads from now on, by default one per core. More than there are cores are refused: they would only wait for
/// each other, and a plan's times would be those of a machine that is not there.
pub fn use_threads(asked: Option<NonZeroUsize>) -> Result<()> {
    let cores = std::thread::available_parallelism().context("this machine's number of cores")?;
    let threads = asked.unwrap_or(cores);
    if threads > cores {
        return Err(usage(format!(
            "--threads: expected at most {cores}, the cores that this process may use, got {threads}"
        )));
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads.get())
        .build_global()
        .context("--threads: the threads could not be started")
}

/// Threads in use.
pub fn threads() -> usize {
    rayon::current_num_threads()
}

/// The text of the file that a flag names.
pub fn read_text(flag: &str, path: &Path) -> Result<String> {
    std::fs::read_to_string(path)
        .with_context(|| format!("{flag} {}: expected a readable UTF-8 file", path.display()))
}

/// A number of bytes for people.
pub fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

/// Prints one JSON object on stdout.
pub fn print_json(report: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(report)?;
    writeln!(std::io::stdout(), "{text}").context("standard output")
}

/// Prints lines for people on stdout.
pub fn print_text(text: &str) -> Result<()> {
    std::io::stdout()
        .write_all(text.as_bytes())
        .context("standard output")
}
