//! Reading files of a checkpoint folder with a limit on their size.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::ModelError;

/// The bytes of a file of at most `limit` bytes.
pub(crate) fn read_limited(path: &Path, limit: u64) -> Result<Vec<u8>, ModelError> {
    let io = |source| ModelError::Io {
        path: path.into(),
        source,
    };
    let file = File::open(path).map_err(io)?;
    let size = file.metadata().map_err(io)?.len();
    if size > limit {
        return Err(ModelError::FileTooLarge {
            path: path.into(),
            limit,
            got: size,
        });
    }
    let mut bytes = Vec::with_capacity(size as usize);
    // The length of a device or a file that grows is not the one that metadata told.
    file.take(limit + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > limit {
        return Err(ModelError::FileTooLarge {
            path: path.into(),
            limit,
            got: bytes.len() as u64,
        });
    }
    Ok(bytes)
}
