//! The open file: one handle for HDF5, one for reading bytes without it.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{native, superblock};
use crate::error::{Error, Result};

/// A file opened for reading.
pub(super) struct Source {
    path: PathBuf,
    file: File,
    length: u64,
    /// Addresses count from the beginning of the file, so that bytes can be read past the library.
    pub addressable: bool,
    pub hdf5: hdf5_metno::File,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({})", self.path.display())
    }
}

impl Source {
    pub(super) fn open(path: &Path) -> Result<Source> {
        let candidate = superblock::open(path)?;
        let hdf5 = native::open(path).map_err(|error| {
            Error::input(format_args!("cannot open {}", path.display())).cause(native::reason(&error))
        })?;
        let addressable = candidate.base == 0;
        Ok(Source {
            path: path.to_owned(),
            file: candidate.file,
            length: candidate.length,
            addressable,
            hdf5,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads `length` bytes at `address`.
    pub(super) fn read_at(&self, name: &str, address: u64, length: usize) -> Result<Vec<u8>> {
        let end = address.checked_add(length as u64);
        if end.is_none_or(|end| end > self.length) {
            let cause =
                format!("its bytes {address}+{length} lie past the end of the file ({})", self.length);
            return Err(self.fault(name, cause));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, address).map_err(|error| self.fault(name, error))?;
        Ok(bytes)
    }

    /// An error of the object `name` of this file.
    pub(super) fn fault(&self, name: &str, cause: impl fmt::Display) -> Error {
        Error::input(format_args!("cannot read {} of {}", name.trim_start_matches('/'), self.path.display()))
            .cause(cause)
    }

    /// Turns an error of the HDF5 library about the object `name` into ours.
    pub(super) fn library_fault<'a>(&'a self, name: &'a str) -> impl Fn(hdf5_metno::Error) -> Error + 'a {
        move |error| {
            let reason = native::reason(&error);
            // What HDF5 1.14 says of objects that HDF5 2 wrote with libver="latest".
            let newer = reason.contains("bad version number");
            let fault = self.fault(name, reason);
            if newer {
                fault.hint("a newer HDF5 may have written it: write it again without libver=\"latest\"")
            } else {
                fault
            }
        }
    }
}
