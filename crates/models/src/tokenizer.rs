//! The checkpoint's `tokenizer.json`: text <-> token ids.

use std::path::{Path, PathBuf};

use tokenizers::Tokenizer;

use crate::config::ModelConfig;
use crate::error::ModelError;
use crate::files;

/// Largest tokenizer file read, in bytes.
const MAX_TOKENIZER_BYTES: u64 = 64 << 20;

/// A tokenizer whose every id is below the model's vocabulary size.
pub struct TextTokenizer {
    inner: Tokenizer,
    path: PathBuf,
}

impl TextTokenizer {
    /// Loads `tokenizer.json` from a checkpoint folder.
    pub fn load(folder: &Path, config: &ModelConfig) -> Result<Self, ModelError> {
        let path = folder.join("tokenizer.json");
        let bytes = files::read_limited(&path, MAX_TOKENIZER_BYTES)?;
        let bad = |expected: String, got: String| ModelError::Tokenizer {
            path: path.clone(),
            expected,
            got,
        };
        let mut inner = Tokenizer::from_bytes(&bytes)
            .map_err(|e| bad("a tokenizers file".into(), e.to_string()))?;
        // Ids need not be dense, so the largest one counts, not how many there are.
        if let Some(id) = inner
            .get_vocab(true)
            .values()
            .copied()
            .max()
            .filter(|&id| id as usize >= config.vocabulary)
        {
            return Err(bad(
                format!(
                    "token ids below the model's vocab_size {}",
                    config.vocabulary
                ),
                format!("id {id}"),
            ));
        }
        // A file may ask for truncation or padding to a training length; a prompt is neither cut nor filled up.
        inner.with_padding(None);
        inner
            .with_truncation(None)
            .map_err(|e| bad("a tokenizer without truncation".into(), e.to_string()))?;
        Ok(Self { inner, path })
    }

    /// The text's ids; no beginning-of-text token is added.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, ModelError> {
        let encoding = self
            .inner
            .encode_fast(text, false)
            .map_err(|e| self.failed("text it can split", &*e))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The ids' text, special tokens included; bytes that are no UTF-8 appear as replacement characters.
    pub fn decode(&self, ids: &[u32]) -> Result<String, ModelError> {
        self.inner
            .decode(ids, false)
            .map_err(|e| self.failed("token ids", &*e))
    }

    fn failed(&self, expected: &str, error: &dyn std::error::Error) -> ModelError {
        ModelError::Tokenizer {
            path: self.path.clone(),
            expected: expected.into(),
            got: error.to_string(),
        }
    }
}

impl std::fmt::Debug for TextTokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextTokenizer")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
