//! The model folder: found, loaded and checked.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use taciturn_approx::Calibration;
use taciturn_models::{Checkpoint, TextTokenizer, load_calibration};

use crate::args::ModelArgs;
use crate::failure::usage;

const DEFAULT: &str = "models/gpt2-code-tiny";

/// A model with its tokenizer and its table of ranges.
pub struct Loaded {
    /// Where it came from.
    pub folder: PathBuf,
    /// Shape and weights.
    pub checkpoint: Checkpoint,
    /// Text to tokens and back.
    pub tokenizer: TextTokenizer,
    /// Ranges of its values.
    pub calibration: Calibration,
}

impl Loaded {
    /// Loads the folder that the flags name.
    pub fn new(args: &ModelArgs) -> Result<Self> {
        let folder = match &args.model {
            Some(folder) => folder.clone(),
            None => default_folder()?,
        };
        let checkpoint = Checkpoint::load(&folder)?;
        let tokenizer = TextTokenizer::load(&folder, &checkpoint.config)?;
        let calibration = load_calibration(&folder, &checkpoint)?;
        let loaded = Loaded {
            folder,
            checkpoint,
            tokenizer,
            calibration,
        };
        // The table's context is checked already; this is about the configuration's.
        ensure!(
            loaded.longest_context() >= 2,
            "{}: config.json: expected a context of at least 2 tokens, got {}; a step needs the beginning-of-text token and one more",
            loaded.folder.display(),
            loaded.checkpoint.config.positions
        );
        Ok(loaded)
    }

    /// The folder's own name.
    pub fn name(&self) -> String {
        let name = self.folder.file_name().unwrap_or(self.folder.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// The longest exchange, beginning-of-text token included.
    pub fn longest_context(&self) -> usize {
        self.calibration
            .context
            .min(self.checkpoint.config.positions)
    }
}

/// The demonstration model: in the current folder, or where this binary was built.
fn default_folder() -> Result<PathBuf> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(DEFAULT);
    [PathBuf::from(DEFAULT), built]
        .into_iter()
        .find(|folder| folder.is_dir())
        .ok_or_else(|| {
            usage(format!(
                "--model: expected a folder, as the demonstration model {DEFAULT} is not here; name one"
            ))
        })
}
