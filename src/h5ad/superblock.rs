//! What can be said of a file before HDF5 opens it: is it there, is it HDF5, is it whole?

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::{Error, Result};

const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";
/// HDF5 looks for its signature at byte 0, 512 and the powers of two above (a "user block" may stand before it).
const FIRST_USER_BLOCK: u64 = 512;

/// A file that begins like a whole HDF5 file.
pub(super) struct Candidate {
    pub file: File,
    /// Size of the file in bytes.
    pub length: u64,
    /// Where the HDF5 data begin: 0 but for files with a user block.
    pub base: u64,
}

/// Opens `path` and reads its superblock.
///
/// Errors tell apart a path that cannot be opened, a directory, an empty file, something that is not HDF5, and a file
/// that is shorter than its superblock says.
pub(super) fn open(path: &Path) -> Result<Candidate> {
    let shown = path.display();
    // Before opening, which would wait for the other end of a pipe.
    let metadata = std::fs::metadata(path).map_err(Error::io("read", path))?;
    if metadata.is_dir() {
        let error = Error::input(format_args!("{shown} is a directory, not an .h5ad file"));
        return Err(match ["zarr.json", ".zgroup"].iter().any(|name| path.join(name).exists()) {
            true => error.hint("it is a Zarr store: write it as .h5ad with anndata first"),
            false => error,
        });
    }
    if !metadata.is_file() {
        return Err(Error::input(format_args!("{shown} is not a regular file"))
            .hint("HDF5 cannot read from a pipe or a device: save the data to a file first"));
    }
    let mut file = File::open(path).map_err(Error::io("read", path))?;
    let length = file.metadata().map_err(Error::io("read", path))?.len();
    if length == 0 {
        return Err(Error::input(format_args!("{shown} is empty (0 bytes)")));
    }
    let mut start = Vec::new();
    (&mut file).take(64).read_to_end(&mut start).map_err(Error::io("read", path))?;
    let Some(base) = find_signature(&file, length) else {
        return Err(not_hdf5(path, &start));
    };
    let candidate = Candidate { file, length, base };
    let stored_end = candidate.stored_end().map_err(Error::io("read", path))?;
    if let Some(end) = stored_end.filter(|&end| end > length) {
        return Err(Error::input(format_args!("{shown} is truncated: it has {length} of {end} bytes"))
            .hint("copy or download it again"));
    }
    Ok(candidate)
}

fn find_signature(file: &File, length: u64) -> Option<u64> {
    let places =
        std::iter::once(0).chain(std::iter::successors(Some(FIRST_USER_BLOCK), |at| at.checked_mul(2)));
    places.take_while(|at| at.saturating_add(8) <= length).find(|&at| {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, at).is_ok() && bytes == SIGNATURE
    })
}

fn not_hdf5(path: &Path, start: &[u8]) -> Error {
    let error = Error::input(format_args!("{} is not an HDF5 file", path.display()));
    let text = start.trim_ascii_start();
    if start.starts_with(b"\x1f\x8b") {
        error.hint("it is compressed with gzip: run gunzip on it first")
    } else if start.starts_with(b"PK\x03\x04") {
        error.hint("it is a zip archive: unpack it first")
    } else if start.starts_with(b"version https://git-lfs") {
        error.hint("it is a Git LFS pointer: run \"git lfs pull\"")
    } else if text.starts_with(b"<") {
        error.hint("it looks like a web page saved under this name: download the file again")
    } else {
        error
    }
}

impl Candidate {
    /// The size the file should have, from the superblock (versions 0 to 3 of the HDF5 file format).
    ///
    /// `None` if the superblock is cut or of an unknown version: HDF5 itself will say what is wrong.
    fn stored_end(&self) -> std::io::Result<Option<u64>> {
        let mut bytes = [0_u8; 96];
        let available = usize::try_from(self.length - self.base).unwrap_or(usize::MAX).min(bytes.len());
        self.file.read_exact_at(&mut bytes[..available], self.base)?;
        let (offset_size, addresses) = match bytes[8] {
            0 => (usize::from(bytes[13]), 24),
            1 => (usize::from(bytes[13]), 28),
            2 | 3 => (usize::from(bytes[9]), 12),
            _ => return Ok(None),
        };
        if !matches!(offset_size, 2 | 4 | 8) {
            return Ok(None);
        }
        // Base address, free space or extension, end of file (counted from the beginning, user block included).
        let place = addresses + 2 * offset_size;
        let end = bytes[place..place + offset_size]
            .iter()
            .rev()
            .fold(0_u64, |sum, &byte| sum << 8 | u64::from(byte));
        Ok(Some(end))
    }
}
