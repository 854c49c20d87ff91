//! HDF5's filter pipeline undone: deflate, LZF, shuffle and the Fletcher checksum.

use hdf5_metno_sys::h5z::H5Zfilter_avail;

use super::lzf;

/// A filter we undo ourselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filter {
    Deflate,
    Shuffle,
    Fletcher32,
    Lzf,
}

/// Who can undo a pipeline.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pipeline {
    /// We can.
    Ours(Vec<Filter>),
    /// The HDF5 library can.
    Library,
    /// Nobody here: the filter's identifier.
    Unknown(i32),
}

/// Sorts the filters with the given identifiers, in the order they were applied.
pub(super) fn pipeline(identifiers: &[i32]) -> Pipeline {
    let ours = |identifier: &i32| match identifier {
        1 => Some(Filter::Deflate),
        2 => Some(Filter::Shuffle),
        3 => Some(Filter::Fletcher32),
        32000 => Some(Filter::Lzf),
        _ => None,
    };
    if let Some(filters) = identifiers.iter().map(ours).collect() {
        return Pipeline::Ours(filters);
    }
    // SAFETY: a query by number.
    let available = |identifier: i32| hdf5_metno::sync::sync(|| unsafe { H5Zfilter_avail(identifier) }) > 0;
    match identifiers.iter().find(|&&identifier| ours(&identifier).is_none() && !available(identifier)) {
        Some(&identifier) => Pipeline::Unknown(identifier),
        None => Pipeline::Library,
    }
}

/// The name of a registered filter, for messages.
pub(super) fn filter_name(identifier: i32) -> &'static str {
    match identifier {
        4 => "szip",
        307 => "bzip2",
        32001 => "blosc",
        32004 => "lz4",
        32008 => "bitshuffle",
        32013 => "zfp",
        32015 => "zstd",
        32026 => "blosc2",
        _ => "not a common one",
    }
}

/// Undoes `filters` on the stored bytes of one chunk.
///
/// Bit n of `mask` says that filter n was skipped; `element_size` is that of the dataset, `length` the chunk's decoded
/// size in bytes, which the result has. Errors are a cause in words.
pub(super) fn undo(
    filters: &[Filter],
    mask: u32,
    stored: Vec<u8>,
    element_size: usize,
    length: usize,
) -> Result<Vec<u8>, String> {
    // Checksums applied before the compression lengthen what it sees.
    let checksums = filters.iter().filter(|&&filter| filter == Filter::Fletcher32).count();
    let capacity = length + 4 * checksums;
    let mut bytes = stored;
    for (position, filter) in filters.iter().enumerate().rev() {
        if position < 32 && mask >> position & 1 == 1 {
            continue;
        }
        bytes = match filter {
            Filter::Deflate => inflate(&bytes, capacity)?,
            Filter::Lzf => lzf::decode(&bytes, capacity)?,
            Filter::Shuffle => unshuffle(&bytes, element_size),
            Filter::Fletcher32 => verify(bytes)?,
        };
    }
    if bytes.len() == length {
        Ok(bytes)
    } else {
        Err(format!("a chunk has {} bytes instead of {length}", bytes.len()))
    }
}

fn inflate(stored: &[u8], capacity: usize) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; capacity];
    let length = libdeflater::Decompressor::new()
        .zlib_decompress(stored, &mut bytes)
        .map_err(|error| format!("a gzip-compressed chunk is damaged ({error})"))?;
    bytes.truncate(length);
    Ok(bytes)
}

/// Shuffle stores all first bytes of the elements, then all second bytes, and so on; bytes left over stay at the end.
fn unshuffle(stored: &[u8], element_size: usize) -> Vec<u8> {
    match element_size {
        2 => unshuffle_sized::<2>(stored),
        4 => unshuffle_sized::<4>(stored),
        8 => unshuffle_sized::<8>(stored),
        _ => stored.to_vec(),
    }
}

fn unshuffle_sized<const SIZE: usize>(stored: &[u8]) -> Vec<u8> {
    let count = stored.len() / SIZE;
    let planes: [&[u8]; SIZE] = std::array::from_fn(|plane| &stored[plane * count..(plane + 1) * count]);
    let mut bytes = vec![0; stored.len()];
    let (elements, rest) = bytes.as_chunks_mut::<SIZE>();
    for (index, element) in elements.iter_mut().enumerate() {
        for (byte, plane) in element.iter_mut().zip(&planes) {
            *byte = plane[index];
        }
    }
    rest.copy_from_slice(&stored[count * SIZE..]);
    bytes
}

/// Checks the four bytes of checksum at the end and takes them off.
fn verify(mut bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    let damaged = || "a chunk does not fit its checksum".to_owned();
    let end = bytes.len().checked_sub(4).ok_or_else(damaged)?;
    let stored = bytes.split_off(end);
    let stored = u32::from_le_bytes([stored[0], stored[1], stored[2], stored[3]]);
    let sum = fletcher32(&bytes);
    // HDF5 before 1.6.3 wrote the bytes of each half in the other order.
    let swapped = (sum & 0x00ff_00ff) << 8 | (sum & 0xff00_ff00) >> 8;
    if stored == sum || stored == swapped { Ok(bytes) } else { Err(damaged()) }
}

/// HDF5's Fletcher checksum: 16-bit big-endian words, sums modulo 65535.
fn fletcher32(bytes: &[u8]) -> u32 {
    let (mut first, mut second) = (0_u32, 0_u32);
    let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
    // After 360 words the sums could overflow.
    for block in bytes.chunks(720) {
        for word in block.chunks(2) {
            first += u32::from(word[0]) << 8 | word.get(1).map_or(0, |&low| u32::from(low));
            second += first;
        }
        (first, second) = (fold(first), fold(second));
    }
    (first, second) = (fold(first), fold(second));
    second << 16 | first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffle_keeps_what_does_not_fill_an_element() {
        assert_eq!(unshuffle(&[1, 3, 2, 4, 9], 2), [1, 2, 3, 4, 9]);
    }

    #[test]
    fn a_wrong_checksum_is_noticed() {
        let mut bytes = b"abcdef".to_vec();
        bytes.extend(fletcher32(b"abcdef").to_le_bytes());
        assert_eq!(verify(bytes.clone()).unwrap(), b"abcdef");
        bytes[2] ^= 1;
        assert!(verify(bytes).is_err());
        assert!(verify(vec![1, 2]).is_err());
    }

    #[test]
    fn the_mask_skips_filters() {
        let filters = [Filter::Shuffle, Filter::Deflate];
        let bytes: Vec<u8> = (0..8).collect();
        assert_eq!(undo(&filters, 0b11, bytes.clone(), 4, 8).unwrap(), bytes);
        assert_eq!(undo(&filters, 0b10, bytes.clone(), 4, 8).unwrap(), [0, 2, 4, 6, 1, 3, 5, 7]);
        assert!(undo(&filters, 0, bytes, 4, 8).is_err());
    }

    #[test]
    fn filters_nobody_knows_are_named() {
        assert_eq!(pipeline(&[2, 32001]), Pipeline::Unknown(32001));
        assert_eq!(
            pipeline(&[2, 1, 3]),
            Pipeline::Ours(vec![Filter::Shuffle, Filter::Deflate, Filter::Fletcher32])
        );
    }
}
