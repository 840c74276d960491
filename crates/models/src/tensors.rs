//! Safetensors files, one or several shards -> named tensors.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use safetensors::{Dtype, SafeTensorError, SafeTensors};
use serde::Deserialize;

use crate::elements::{Elements, Format};
use crate::error::ModelError;
use crate::files::{self, FileBytes};

/// Largest weight file read, in bytes.
const MAX_WEIGHT_BYTES: u64 = 1 << 36;
/// Largest shard index read, in bytes.
const MAX_INDEX_BYTES: u64 = 16 << 20;

/// One tensor, row after row.
pub(crate) struct Tensor {
    pub(crate) shape: Vec<usize>,
    pub(crate) elements: Elements,
}

/// The tensors of a checkpoint by name.
pub(crate) struct Tensors(BTreeMap<String, Tensor>);

/// `model.safetensors.index.json`: which file holds which tensor.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl Tensors {
    /// All tensors of the checkpoint in `folder`, and the hash of its configuration and weight files.
    pub(crate) fn load(folder: &Path) -> Result<(Self, String), ModelError> {
        let mut hasher = blake3::Hasher::new();
        hash_file(
            &mut hasher,
            "config.json",
            &files::read_limited(&folder.join("config.json"), MAX_INDEX_BYTES)?,
        );
        let mut tensors = BTreeMap::new();
        let index_path = folder.join("model.safetensors.index.json");
        if !folder.join("model.safetensors").exists() && index_path.exists() {
            for (shard, names) in shards(&index_path)? {
                let path = folder.join(&shard);
                let file = files::map_limited(&path, MAX_WEIGHT_BYTES)?;
                hash_file(&mut hasher, &shard, file.bytes());
                let mut found = read_tensors(file, &path)?;
                for name in names {
                    let tensor = found.remove(&name).ok_or_else(|| ModelError::Weights {
                        path: path.clone(),
                        got: format!("no tensor `{name}`, which the index promises"),
                    })?;
                    tensors.insert(name, tensor);
                }
                if let Some(name) = found.keys().next() {
                    return Err(ModelError::Weights {
                        path,
                        got: format!("tensor `{name}`, unknown to the index"),
                    });
                }
            }
        } else {
            let path = folder.join("model.safetensors");
            let file = files::map_limited(&path, MAX_WEIGHT_BYTES)?;
            hash_file(&mut hasher, "model.safetensors", file.bytes());
            tensors = read_tensors(file, &path)?;
        }
        Ok((Self(tensors), hasher.finalize().to_hex().to_string()))
    }

    /// Whether a tensor of that name is there.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Removes and returns a tensor.
    pub(crate) fn take(&mut self, name: &str) -> Option<Tensor> {
        self.0.remove(name)
    }

    /// Name of the first tensor left, if any.
    pub(crate) fn first_name(&self) -> Option<&str> {
        self.0.keys().next().map(String::as_str)
    }
}

/// Names and lengths go in too, so that no two sets of files share a hash by moving bytes from one to the next.
fn hash_file(hasher: &mut blake3::Hasher, name: &str, bytes: &[u8]) {
    for part in [name.as_bytes(), bytes] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
}

/// Tensor names per shard file. A shard is a plain file name beside the index: nothing else is opened.
fn shards(index_path: &Path) -> Result<BTreeMap<String, Vec<String>>, ModelError> {
    let bytes = files::read_limited(index_path, MAX_INDEX_BYTES)?;
    let index: Index = serde_json::from_slice(&bytes).map_err(|source| ModelError::Json {
        path: index_path.into(),
        source,
    })?;
    let mut shards: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, file) in index.weight_map {
        if !file.ends_with(".safetensors") || file.contains(['/', '\\', ':', '\0']) {
            return Err(ModelError::Config {
                path: index_path.into(),
                field: "weight_map",
                expected: "names of .safetensors files in the same folder".into(),
                got: format!("{file:?}"),
            });
        }
        if is_buffer(&name) {
            continue;
        }
        shards.entry(file).or_default().push(name);
    }
    Ok(shards)
}

/// Older checkpoints store constants beside the weights: GPT-2 the causal mask, Llama the frequencies of its rotary embedding.
fn is_buffer(name: &str) -> bool {
    let ends = [".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq"];
    ends.iter().any(|end| name.ends_with(end))
}

fn read_tensors(file: FileBytes, path: &Path) -> Result<BTreeMap<String, Tensor>, ModelError> {
    let bad = |got: String| ModelError::Weights {
        path: path.into(),
        got,
    };
    let file = Arc::new(file);
    let bytes = file.bytes();
    let parsed =
        SafeTensors::deserialize(bytes).map_err(|error| bad(damage(&error, bytes.len())))?;
    let mut tensors = BTreeMap::new();
    for (name, view) in parsed.iter().filter(|(name, _)| !is_buffer(name)) {
        let format = match view.dtype() {
            Dtype::F32 => Format::F32,
            Dtype::F16 => Format::F16,
            Dtype::BF16 => Format::Bf16,
            other => return Err(bad(format!("{other:?} in tensor `{name}`"))),
        };
        let elements = Elements::File {
            start: view.data().as_ptr() as usize - bytes.as_ptr() as usize,
            count: view.data().len() / format.size(),
            format,
            file: file.clone(),
        };
        let shape = view.shape().to_vec();
        tensors.insert(name.to_owned(), Tensor { shape, elements });
    }
    Ok(tensors)
}

/// What is wrong with a file of that many bytes, and what to do about it.
fn damage(error: &SafeTensorError, length: usize) -> String {
    match error {
        SafeTensorError::HeaderTooSmall
        | SafeTensorError::InvalidHeaderLength
        | SafeTensorError::MetadataIncompleteBuffer => format!(
            "a file of {length} bytes whose header promises another length; it is cut off or damaged: fetch it again"
        ),
        other => other.to_string(),
    }
}
