//! Safetensors files, one or several shards -> named f32 tensors.

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::{Dtype, SafeTensorError, SafeTensors};
use serde::Deserialize;

use crate::error::ModelError;
use crate::files;

/// Largest weight file read, in bytes.
const MAX_WEIGHT_BYTES: u64 = 1 << 36;
/// Largest shard index read, in bytes.
const MAX_INDEX_BYTES: u64 = 16 << 20;

/// One tensor, converted to f32.
pub(crate) struct Tensor {
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Vec<f32>,
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
                let bytes = files::read_limited(&path, MAX_WEIGHT_BYTES)?;
                hash_file(&mut hasher, &shard, &bytes);
                let mut found = read_tensors(&bytes, &path)?;
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
            let bytes = files::read_limited(&path, MAX_WEIGHT_BYTES)?;
            hash_file(&mut hasher, "model.safetensors", &bytes);
            tensors = read_tensors(&bytes, &path)?;
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
        if is_mask_buffer(&name) {
            continue;
        }
        shards.entry(file).or_default().push(name);
    }
    Ok(shards)
}

/// Older GPT-2 checkpoints store the causal mask beside the weights.
fn is_mask_buffer(name: &str) -> bool {
    name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias")
}

fn read_tensors(bytes: &[u8], path: &Path) -> Result<BTreeMap<String, Tensor>, ModelError> {
    let bad = |got: String| ModelError::Weights {
        path: path.into(),
        got,
    };
    let file = SafeTensors::deserialize(bytes).map_err(|error| bad(damage(&error, bytes.len())))?;
    let mut tensors = BTreeMap::new();
    for (name, view) in file.iter().filter(|(name, _)| !is_mask_buffer(name)) {
        let data = match view.dtype() {
            Dtype::F32 => words(view.data(), f32::from_le_bytes),
            Dtype::F16 => words(view.data(), |b| half::f16::from_le_bytes(b).to_f32()),
            Dtype::BF16 => words(view.data(), |b| half::bf16::from_le_bytes(b).to_f32()),
            other => return Err(bad(format!("{other:?} in tensor `{name}`"))),
        };
        tensors.insert(
            name.to_owned(),
            Tensor {
                shape: view.shape().to_vec(),
                data,
            },
        );
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

fn words<const N: usize>(bytes: &[u8], convert: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    bytes
        .as_chunks::<N>()
        .0
        .iter()
        .map(|&word| convert(word))
        .collect()
}
