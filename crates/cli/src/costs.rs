//! Cost tables: measured on this machine and kept, or the one that is built in.

mod measure;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use taciturn_ckks::Parameters;
use taciturn_graph::{CostTable, LevelCost, bootstrap_input_levels};

use crate::failure::usage;
use crate::system;

/// Where a table's numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// From this machine.
    Measured,
    /// From the project's reference machine, scaled.
    BuiltIn,
    /// Of a GPU that nobody measured: from bytes and instruction counts, and its data sheet.
    Estimated,
}

/// What operations take, and where that is known from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Costs {
    /// Where the numbers come from.
    pub origin: Origin,
    /// Of the planner.
    pub table: CostTable,
    /// Milliseconds per MiB of evaluation keys made.
    pub keygen_ms_per_mib: f64,
}

/// Of the GPU that `plan --device h200` plans for: what `plan --device h200 --measure` makes, in a program built with a device.
const H200: &str = include_str!("costs/n16-128-h200-estimated.json");
/// Its name, as its driver gives it.
pub const H200_NAME: &str = "NVIDIA H200";

/// Measured on the reference machine (n16-128, two threads, AVX-512) by `taciturn plan --measure`, which leaves it in the cache folder.
const REFERENCE: &str = include_str!("costs/n16-128-avx512-2.json");
const REFERENCE_THREADS: f64 = 2.0;
const REFERENCE_LOG_N: i32 = 16;
/// How much slower the portable backend is.
const PORTABLE: f64 = 5.0;

impl Costs {
    /// This machine's table where it was measured, else the built-in one. Says on stderr why a table that is there is not taken.
    pub fn load(params: &Parameters) -> Result<Self> {
        if let Some(path) = path(params, &machine(params)) {
            match Costs::read(&path, params) {
                Ok(Some(costs)) => return Ok(costs),
                Ok(None) => {}
                Err(error) => eprintln!(
                    "warning: {}: {error:#}; the built-in costs are taken; `taciturn plan --measure` makes the file again",
                    path.display()
                ),
            }
        }
        Costs::built_in(params)
    }

    /// The table in a file, if there is one.
    fn read(path: &Path, params: &Parameters) -> Result<Option<Self>> {
        let bytes = match std::fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let mut costs: Costs = serde_json::from_slice(&bytes)?;
        costs.table.check()?;
        let (got, expected) = (costs.table.levels.len(), params.max_level().0 + 1);
        ensure!(
            got == expected,
            "expected costs of {expected} levels, got {got}"
        );
        let keygen = costs.keygen_ms_per_mib;
        ensure!(
            keygen >= 0.0 && keygen.is_finite(),
            "keygen_ms_per_mib: expected a finite time, not negative, got {keygen}"
        );
        costs.set_input_levels();
        Ok(Some(costs))
    }

    /// Levels that bootstraps take are facts of this build, not of a file.
    fn set_input_levels(&mut self) {
        for bootstrap in &mut self.table.bootstraps {
            bootstrap.slots_to_coeffs_levels = bootstrap_input_levels(bootstrap.log_slots);
        }
    }

    /// The table of a GPU. There is none but where one was measured: times of other machines say nothing of it.
    pub fn load_gpu(params: &Parameters, gpu: &str) -> Result<Self> {
        let path = path(params, &slug(gpu)).context("no folder for caches: set HOME")?;
        let costs = Costs::read(&path, params).with_context(|| path.display().to_string())?;
        match costs {
            Some(costs) => Ok(costs),
            None => bail!(
                "--device: the costs of {gpu} were not measured yet; `taciturn plan --measure --device cuda` measures them and keeps {}",
                path.display()
            ),
        }
    }

    /// The table of an H200: measured where that was done on this machine, else estimated.
    pub fn load_h200(params: &Parameters) -> Result<Self> {
        let measured = path(params, &slug(H200_NAME));
        if let Some(costs) = measured
            .map(|path| Costs::read(&path, params))
            .transpose()?
            .flatten()
        {
            return Ok(costs);
        }
        let mut costs: Costs =
            serde_json::from_str(H200).context("the built-in cost table of an H200")?;
        if params.name() != "n16-128" {
            return Err(usage(format!(
                "--device h200: expected --params n16-128, whose costs were estimated, got {}",
                params.name()
            )));
        }
        // What the processor does beside the GPU is not estimated: it is this machine's.
        let host = Costs::load(params)?;
        costs.table.embed_ms = host.table.embed_ms;
        costs.keygen_ms_per_mib = host.keygen_ms_per_mib;
        costs.set_input_levels();
        Ok(costs)
    }

    /// The table of a GPU that is not there, estimated.
    #[cfg(any(feature = "cuda", feature = "shim"))]
    pub fn estimate(params: &Parameters, device: &Parameters) -> Result<Self> {
        let costs = measure::measure(params, device)?;
        Ok(Self {
            origin: Origin::Estimated,
            ..costs
        })
    }

    /// Measures this machine and keeps the table.
    pub fn measure(params: &Parameters) -> Result<Self> {
        Self::measure_as(params, params, &machine(params))
    }

    /// Measures a GPU and keeps the table; the parameters compute on it.
    pub fn measure_gpu(params: &Parameters, device: &Parameters, gpu: &str) -> Result<Self> {
        Self::measure_as(params, device, &slug(gpu))
    }

    fn measure_as(params: &Parameters, device: &Parameters, machine: &str) -> Result<Self> {
        let costs = measure::measure(params, device)?;
        if let Some(path) = path(params, machine) {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)
                    .with_context(|| format!("{}: cannot be made", folder.display()))?;
            }
            std::fs::write(&path, serde_json::to_string_pretty(&costs)?)
                .with_context(|| format!("{}: cannot be written", path.display()))?;
        }
        Ok(costs)
    }

    /// The reference machine's times, scaled by threads, backend and ring degree.
    fn built_in(params: &Parameters) -> Result<Self> {
        let mut costs: Costs =
            serde_json::from_str(REFERENCE).context("the built-in cost table")?;
        costs.origin = Origin::BuiltIn;
        let mut factor = REFERENCE_THREADS / system::threads() as f64;
        if params.ring().backend_name() == "portable" {
            factor *= PORTABLE;
        }
        costs.keygen_ms_per_mib *= factor;
        let log_n = params.literal().log_n as i32;
        factor *= 2f64.powi(log_n - REFERENCE_LOG_N);
        costs
            .table
            .bootstraps
            .retain(|cost| cost.log_slots <= params.log_slots());
        costs.table.embed_ms *= factor;
        for level in &mut costs.table.levels {
            *level = LevelCost::from_times(level.times().map(|ms| ms * factor));
        }
        for bootstrap in &mut costs.table.bootstraps {
            let pairs = bootstrap.pair_ms.iter_mut().flatten();
            (bootstrap.target_ms.iter_mut().chain(pairs)).for_each(|ms| *ms *= factor);
        }
        costs.set_input_levels();
        Ok(costs)
    }
}

/// What tables of this machine are called: they differ by backend and threads.
fn machine(params: &Parameters) -> String {
    format!("{}-{}", params.ring().backend_name(), system::threads())
}

/// A GPU's name as part of a file's.
fn slug(gpu: &str) -> String {
    let words = gpu.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-").to_lowercase()
}

/// The table of these parameters on a machine in the user's cache folder.
fn path(params: &Parameters, machine: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    let name = format!("costs-{}-{machine}.json", params.name());
    Some(folder.join("taciturn").join(name))
}
