//! Weights where they lie: in memory, or in a mapped file, in their own format.

use std::sync::Arc;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::files::FileBytes;

/// Format of a tensor's elements, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    F32,
    F16,
    Bf16,
}

impl Format {
    /// Bytes of one element.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
}

/// A run of elements.
#[derive(Clone)]
pub(crate) enum Elements {
    Memory(Arc<[f32]>),
    /// `count` elements from byte `start` of a file on.
    File {
        file: Arc<FileBytes>,
        start: usize,
        count: usize,
        format: Format,
    },
}

impl Elements {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Memory(data) => data.len(),
            Self::File { count, .. } => *count,
        }
    }

    /// The pages that a mapped file takes are given back; they come again when they are read.
    pub(crate) fn release(&self) {
        if let Self::File { file, .. } = self {
            file.release();
        }
    }

    /// One element.
    pub(crate) fn at(&self, index: usize) -> f32 {
        match self {
            Self::Memory(data) => data[index],
            Self::File {
                file,
                start,
                format,
                ..
            } => {
                let bytes = &file.bytes()[start + index * format.size()..];
                match format {
                    Format::F32 => f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
                    Format::F16 => f16::from_le_bytes([bytes[0], bytes[1]]).to_f32(),
                    Format::Bf16 => bf16::from_le_bytes([bytes[0], bytes[1]]).to_f32(),
                }
            }
        }
    }

    /// The elements from `from` on, as many as fit into `out`.
    pub(crate) fn read(&self, from: usize, out: &mut [f32]) {
        match self {
            Self::Memory(data) => out.copy_from_slice(&data[from..from + out.len()]),
            Self::File {
                file,
                start,
                format,
                ..
            } => {
                let size = format.size();
                let bytes = &file.bytes()[start + from * size..][..out.len() * size];
                match format {
                    Format::F32 => convert(bytes, out, f32::from_le_bytes),
                    Format::F16 => {
                        // A whole slice at a time goes through the processor's own conversion.
                        let mut words = vec![f16::ZERO; out.len()];
                        convert(bytes, &mut words, f16::from_le_bytes);
                        words.convert_to_f32_slice(out);
                    }
                    Format::Bf16 => convert(bytes, out, |b| bf16::from_le_bytes(b).to_f32()),
                }
            }
        }
    }
}

fn convert<T, const N: usize>(bytes: &[u8], out: &mut [T], element: impl Fn([u8; N]) -> T) {
    let (words, _) = bytes.as_chunks::<N>();
    out.iter_mut()
        .zip(words)
        .for_each(|(out, &word)| *out = element(word));
}
