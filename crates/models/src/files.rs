//! Reading files of a checkpoint folder with a limit on their size.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use memmap2::Mmap;

use crate::error::ModelError;

/// Files from this size on are mapped, not read: their weights then take memory only while they are used, and the system may drop them again.
const MAPPED_BYTES: u64 = 256 << 20;

/// The bytes of a file.
pub(crate) enum FileBytes {
    Read(Vec<u8>),
    Mapped(Mmap),
}

impl FileBytes {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Read(bytes) => bytes,
            Self::Mapped(map) => map,
        }
    }

    /// Gives back the memory of what was read of a mapped file; it is read again when it is used.
    pub(crate) fn release(&self) {
        #[cfg(unix)]
        if let Self::Mapped(map) = self {
            // SAFETY: the map is of a file and never written to, so that the pages come back with the same bytes.
            let advised = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
            // Only advice: without it the pages stay until the system needs them.
            drop(advised);
        }
    }
}

/// The bytes of a file of at most `limit` bytes.
pub(crate) fn read_limited(path: &Path, limit: u64) -> Result<Vec<u8>, ModelError> {
    read(open_limited(path, limit)?, path, limit)
}

/// The same, mapped where the file is large.
pub(crate) fn map_limited(path: &Path, limit: u64) -> Result<FileBytes, ModelError> {
    let opened = open_limited(path, limit)?;
    if opened.1 < MAPPED_BYTES {
        return Ok(FileBytes::Read(read(opened, path, limit)?));
    }
    // SAFETY: the bytes are only read, as plain numbers of which every value is valid. The file has to stay as it is while it is used, which
    // the documentation of `Checkpoint::load` asks for; cutting it off ends the process by a signal and corrupts nothing.
    let map = unsafe { Mmap::map(&opened.0) };
    map.map(FileBytes::Mapped).map_err(|source| ModelError::Io {
        path: path.into(),
        source,
    })
}

/// The file and its length.
fn open_limited(path: &Path, limit: u64) -> Result<(File, u64), ModelError> {
    let io = |source| ModelError::Io {
        path: path.into(),
        source,
    };
    let file = File::open(path).map_err(io)?;
    let size = file.metadata().map_err(io)?.len();
    match size > limit {
        true => Err(too_large(path, limit, size)),
        false => Ok((file, size)),
    }
}

fn read((file, size): (File, u64), path: &Path, limit: u64) -> Result<Vec<u8>, ModelError> {
    let mut bytes = Vec::with_capacity(size as usize);
    // The length of a device or a file that grows is not the one that metadata told.
    let read = file.take(limit + 1).read_to_end(&mut bytes);
    read.map_err(|source| ModelError::Io {
        path: path.into(),
        source,
    })?;
    match bytes.len() as u64 > limit {
        true => Err(too_large(path, limit, bytes.len() as u64)),
        false => Ok(bytes),
    }
}

fn too_large(path: &Path, limit: u64, got: u64) -> ModelError {
    ModelError::FileTooLarge {
        path: path.into(),
        limit,
        got,
    }
}
