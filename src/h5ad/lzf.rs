//! LZF, the quick compression of h5py, as our own decoder and as a filter of the HDF5 library.
//!
//! The filter that the Rust wrapper registers builds a slice from a null pointer for datasets without filter parameters, which
//! aborts a debug build; ours takes its place.

use std::ffi::{c_uint, c_void};
use std::{ptr, slice};

use hdf5_metno::{Result, h5check};
use hdf5_metno_sys::h5::{H5allocate_memory, H5free_memory};
use hdf5_metno_sys::h5z::{H5Z_CLASS_T_VERS, H5Z_FLAG_REVERSE, H5Z_class2_t, H5Zregister};

/// The filter's registered number.
pub(super) const IDENTIFIER: i32 = 32000;
/// Three bytes make at most 264.
const MOST_EXPANSION: usize = 88;
/// Literal bytes after one control byte.
const MOST_LITERALS: usize = 32;

/// LZF: a control byte below 32 begins that many literals plus one; else it is a back reference of 3 bits of length
/// (7: one more byte follows) and 13 bits of distance.
///
/// `most` is how long the result may become. Errors are a cause in words.
pub(super) fn decode(stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
    let damaged = || "an lzf-compressed chunk is damaged".to_owned();
    let mut bytes = Vec::with_capacity(most.min(stored.len() * 4));
    let mut rest = stored;
    while let Some((&control, after)) = rest.split_first() {
        rest = after;
        let control = usize::from(control);
        if control < 32 {
            let (literals, after) = rest.split_at_checked(control + 1).ok_or_else(damaged)?;
            bytes.extend_from_slice(literals);
            rest = after;
        } else {
            let mut length = control >> 5;
            if length == 7 {
                let (&more, after) = rest.split_first().ok_or_else(damaged)?;
                length += usize::from(more);
                rest = after;
            }
            let (&low, after) = rest.split_first().ok_or_else(damaged)?;
            rest = after;
            let distance = ((control & 31) << 8 | usize::from(low)) + 1;
            let start = bytes.len().checked_sub(distance).ok_or_else(damaged)?;
            for position in start..start + length + 2 {
                bytes.push(bytes[position]);
            }
        }
        if bytes.len() > most {
            return Err(damaged());
        }
    }
    Ok(bytes)
}

/// Valid LZF of nothing but literals: what HDF5 recompresses when it copies strings only passes through.
fn encode(bytes: &[u8]) -> Vec<u8> {
    let run = |literals: &[u8]| {
        let mut run = vec![(literals.len() - 1) as u8];
        run.extend_from_slice(literals);
        run
    };
    bytes.chunks(MOST_LITERALS).flat_map(run).collect()
}

/// Registers the filter with the library, whose lock must be held.
pub(super) fn register() -> Result<()> {
    let class = H5Z_class2_t {
        version: H5Z_CLASS_T_VERS as i32,
        id: IDENTIFIER,
        encoder_present: 1,
        decoder_present: 1,
        name: c"lzf".as_ptr(),
        can_apply: None,
        set_local: None,
        filter: Some(filter),
    };
    // SAFETY: the library copies the class.
    h5check(unsafe { H5Zregister(ptr::from_ref(&class).cast()) })?;
    Ok(())
}

/// What HDF5 calls with the bytes of a chunk: replaces the buffer, returns the number of bytes, 0 for a failure.
unsafe extern "C" fn filter(
    flags: c_uint,
    parameters: usize,
    values: *const c_uint,
    length: usize,
    buffer_size: *mut usize,
    buffer: *mut *mut c_void,
) -> usize {
    // SAFETY: HDF5 hands over a buffer of its own with `length` bytes in it, and takes back one that its own
    // allocator made.
    unsafe {
        if (*buffer).is_null() || length == 0 {
            return 0;
        }
        let bytes = slice::from_raw_parts((*buffer).cast::<u8>(), length);
        let result = if flags & H5Z_FLAG_REVERSE == 0 {
            encode(bytes)
        } else {
            match decode(bytes, length.saturating_mul(MOST_EXPANSION)) {
                // The third parameter, where there is one, is the size of the chunk, which HDF5 reads without a look.
                Ok(result)
                    if parameters < 3 || values.is_null() || result.len() >= *values.add(2) as usize =>
                {
                    result
                }
                _ => return 0,
            }
        };
        let replacement = H5allocate_memory(result.len().max(1), 0);
        if replacement.is_null() {
            return 0;
        }
        ptr::copy_nonoverlapping(result.as_ptr(), replacement.cast(), result.len());
        H5free_memory(*buffer);
        (*buffer, *buffer_size) = (replacement, result.len());
        result.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lzf_copies_overlapping_runs() {
        // "a", then 9 bytes from one byte before: length 7 means another byte of length, here 0.
        assert_eq!(decode(&[0, b'a', 0xe0, 0, 0], 10).unwrap(), b"aaaaaaaaaa");
        assert!(decode(&[0, b'a', 0xe0, 0, 0], 9).is_err());
        assert!(decode(&[0x20, 0], 9).is_err(), "reference before the beginning");
        assert!(decode(&[3, 1], 9).is_err(), "literals missing");
    }

    #[test]
    fn literals_come_back() {
        let bytes: Vec<u8> = (0..100).collect();
        assert_eq!(decode(&encode(&bytes), 100).unwrap(), bytes);
    }
}
