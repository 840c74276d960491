//! Random tensors written to a safetensors file as they are made: memory holds a few pieces of one of them.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use half::bf16;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use rayon::prelude::*;
use serde_json::{Map, json};

use super::tensors::RandomTensor;
use crate::error::ModelError;

/// Entries of a piece, each with a stream of random numbers of its own.
const PIECE: usize = 1 << 18;
/// Pieces made at once.
const PIECES: usize = 16;

/// How weights are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    /// Four bytes.
    F32,
    /// Two bytes, as most checkpoints have it.
    Bf16,
}

impl Precision {
    fn name(self) -> &'static str {
        match self {
            Self::F32 => "F32",
            Self::Bf16 => "BF16",
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Bf16 => 2,
        }
    }
}

/// Writes a safetensors file: the header's length, a JSON header, then the tensors in order.
pub(super) fn write_tensors(
    path: &Path,
    tensors: &[RandomTensor],
    precision: Precision,
    seed: u64,
) -> Result<(), ModelError> {
    let io = |source| ModelError::Io {
        path: path.into(),
        source,
    };
    let mut header = Map::new();
    let mut end = 0;
    for tensor in tensors {
        let start = end;
        end += tensor.shape.iter().product::<usize>() * precision.bytes();
        let entry = json!({
            "dtype": precision.name(), "shape": tensor.shape, "data_offsets": [start, end]
        });
        header.insert(tensor.name.clone(), entry);
    }
    let mut header = serde_json::Value::Object(header).to_string().into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');

    let mut file = BufWriter::new(File::create(path).map_err(io)?);
    let mut write = |bytes: &[u8]| file.write_all(bytes).map_err(io);
    write(&(header.len() as u64).to_le_bytes())?;
    write(&header)?;
    for (number, tensor) in tensors.iter().enumerate() {
        let count: usize = tensor.shape.iter().product();
        let starts: Vec<usize> = (0..count).step_by(PIECE).collect();
        for batch in starts.chunks(PIECES) {
            let pieces: Vec<Vec<u8>> = batch
                .par_iter()
                .map(|&start| {
                    let stream = (number as u64) << 32 | (start / PIECE) as u64;
                    piece(tensor, PIECE.min(count - start), precision, seed, stream)
                })
                .collect();
            for piece in pieces {
                write(&piece)?;
            }
        }
    }
    file.flush().map_err(io)
}

fn piece(
    tensor: &RandomTensor,
    count: usize,
    precision: Precision,
    seed: u64,
    stream: u64,
) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    let mut bytes = Vec::with_capacity(count * precision.bytes());
    let pairs = std::iter::repeat_with(|| standard_normals(&mut rng));
    for value in pairs.flatten().take(count) {
        let value = tensor.factor * (tensor.mean + tensor.deviation * value);
        match precision {
            Precision::F32 => bytes.extend((value as f32).to_le_bytes()),
            Precision::Bf16 => bytes.extend(bf16::from_f64(value).to_le_bytes()),
        }
    }
    bytes
}

/// Two values by the transform of Box and Muller.
fn standard_normals(rng: &mut impl Rng) -> [f64; 2] {
    let mut uniform = || ((rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let radius = (-2.0 * uniform().ln()).sqrt();
    let (sin, cos) = (std::f64::consts::TAU * uniform()).sin_cos();
    [radius * cos, radius * sin]
}
