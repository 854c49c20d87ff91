//! Sparse matrices on disk: three arrays, checked before they are believed.

use std::ops::Range;
use std::sync::Arc;

use hdf5_metno::Group;

use super::array::Array;
use super::block::Block;
use super::source::Source;
use super::values;
use crate::error::{Error, Result};

/// The arrays of a compressed sparse matrix. "Major" is the compressed axis: rows of CSR, columns of CSC.
pub(super) struct Sparse {
    source: Arc<Source>,
    name: String,
    data: Array,
    indices: Array,
    /// `major + 1` offsets, starting at 0, not decreasing, ending at the number of stored values.
    indptr: Vec<usize>,
    minor: usize,
    /// What a step along the major axis is called.
    axis: &'static str,
}

impl Sparse {
    /// Opens the three arrays in `group` and checks the pointers.
    pub(super) fn open(
        source: &Arc<Source>,
        group: &Group,
        name: &str,
        axis: &'static str,
        (major, minor): (usize, usize),
    ) -> Result<Sparse> {
        let array = |member: &str| Array::open(source, values::open(source, group, member)?);
        let (data, indices, pointers) = (array("data")?, array("indices")?, array("indptr")?);
        for array in [&data, &indices, &pointers] {
            if array.columns != 1 {
                return Err(source.fault(array.name(), "it has two dimensions instead of one"));
            }
        }
        for array in [&indices, &pointers] {
            if !array.element.is_integer() {
                let cause = format!("its values are of type {}, not integers", array.element.name());
                return Err(source.fault(array.name(), cause));
            }
        }
        if data.rows != indices.rows {
            let cause = format!("it has {} values for {} indices", data.rows, indices.rows);
            return Err(source.fault(data.name(), cause));
        }
        if pointers.rows != major.saturating_add(1) {
            let cause = format!("it has {} pointers for {major} {axis}s (one more is needed)", pointers.rows);
            return Err(source.fault(pointers.name(), cause));
        }
        let raw = pointers.read_all::<i64>(&|bytes, out| pointers.element.decode_i64(bytes, out))?;
        let indptr =
            checked_pointers(&raw, data.rows, axis).map_err(|cause| source.fault(pointers.name(), cause))?;
        Ok(Sparse { source: Arc::clone(source), name: name.to_owned(), data, indices, indptr, minor, axis })
    }

    /// Number of stored values.
    pub(super) fn stored(&self) -> usize {
        self.data.rows
    }

    /// The array of the values.
    pub(super) fn data(&self) -> &Array {
        &self.data
    }

    /// The numpy name of the type of the values.
    pub(super) fn dtype(&self) -> &str {
        self.data.dtype()
    }

    /// Splits the major axis so that each part has at most `limit` stored values, or is a single step.
    pub(super) fn parts(&self, limit: usize) -> Vec<Range<usize>> {
        partition(&self.indptr, limit)
    }

    /// Reads a range of the major axis, as stored, into the memory of `block`.
    pub(super) fn read(&self, major: Range<usize>, mut block: Block) -> Result<Block> {
        let stored = self.indptr[major.start]..self.indptr[major.end];
        block.first_row = major.start;
        block.indptr.clear();
        block.indptr.extend(self.indptr[major.start..=major.end].iter().map(|&offset| offset - stored.start));
        self.read_minor(major, &mut block.indices)?;
        let decode = |bytes: &[u8], out: &mut [f64]| self.data.element.decode_f64(bytes, out);
        self.data.read(stored, &mut block.values, &decode)?;
        Ok(block)
    }

    /// Reads the minor indices of a range of the major axis, in place of what is in `indices`.
    pub(super) fn read_minor(&self, major: Range<usize>, indices: &mut Vec<u32>) -> Result<()> {
        let stored = self.indptr[major.start]..self.indptr[major.end];
        let decode = |bytes: &[u8], out: &mut [u32]| self.indices.element.decode_index(bytes, out);
        self.indices.read(stored, indices, &decode)
    }

    /// The error of the index at `position` among those of the range that begins at `major`.
    pub(super) fn out_of_range(&self, major: usize, position: usize) -> Error {
        let position = self.indptr[major] + position;
        let step = self.indptr.partition_point(|&offset| offset <= position) - 1;
        let decode = |bytes: &[u8], out: &mut [i64]| self.indices.element.decode_i64(bytes, out);
        let mut value = Vec::new();
        if let Err(error) = self.indices.read(position..position + 1, &mut value, &decode) {
            return error;
        }
        let value = value.first().copied().unwrap_or(i64::MAX);
        let (axis, last) = (self.axis, self.minor as i128 - 1);
        self.source.fault(self.indices.name(), format!("index {value} in {axis} {step} is not in 0..={last}"))
    }

    /// The error of a file that another process writes to.
    pub(super) fn changed(&self) -> Error {
        self.source.fault(&self.name, "it changed while it was read")
    }

    /// The number of steps of the minor axis.
    pub(super) fn minor(&self) -> usize {
        self.minor
    }

    /// The path of the matrix in the file.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// Splits a compressed axis into ranges of at most `limit` stored values each, or of a single step.
pub(super) fn partition(indptr: &[usize], limit: usize) -> Vec<Range<usize>> {
    let steps = indptr.len() - 1;
    let mut parts = Vec::new();
    let mut start = 0;
    while start < steps {
        let most = indptr[start].saturating_add(limit);
        let end = indptr.partition_point(|&offset| offset <= most) - 1;
        let end = end.clamp(start + 1, steps);
        parts.push(start..end);
        start = end;
    }
    parts
}

/// Checks that pointers start at 0, do not decrease and end at `stored`.
fn checked_pointers(raw: &[i64], stored: usize, axis: &str) -> std::result::Result<Vec<usize>, String> {
    if let Some(position) = raw.iter().position(|&pointer| pointer < 0) {
        let value = raw[position];
        return Err(format!(
            "pointer {position} is {value}: it has overflowed, as 32-bit pointers do beyond 2147483647 values"
        ));
    }
    if raw[0] != 0 {
        return Err(format!("its first pointer is {} instead of 0", raw[0]));
    }
    if let Some(step) = raw.windows(2).position(|pair| pair[1] < pair[0]) {
        return Err(format!("it falls from {} to {} at {axis} {step}", raw[step], raw[step + 1]));
    }
    let last = raw[raw.len() - 1];
    if last != stored as i64 {
        return Err(format!("it ends at {last}, but {stored} values are stored"));
    }
    Ok(raw.iter().map(|&pointer| pointer as usize).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_pointers_are_told_apart() {
        let cause = |raw: &[i64]| checked_pointers(raw, 5, "row").unwrap_err();
        assert_eq!(checked_pointers(&[0, 2, 2, 5], 5, "row").unwrap(), [0, 2, 2, 5]);
        assert_eq!(cause(&[1, 5]), "its first pointer is 1 instead of 0");
        assert_eq!(cause(&[0, 4, 2, 5]), "it falls from 4 to 2 at row 1");
        assert_eq!(cause(&[0, 4]), "it ends at 4, but 5 values are stored");
        assert!(cause(&[0, 2, -2147483643]).starts_with("pointer 2 is -2147483643: it has overflowed"));
    }

    #[test]
    fn parts_are_bounded_or_single() {
        assert_eq!(partition(&[0, 1, 2, 9, 9, 10], 3), [0..2, 2..3, 3..5]);
        assert_eq!(partition(&[0, 5, 10], 3), [0..1, 1..2]);
        assert!(partition(&[0], 3).is_empty());
        assert_eq!(partition(&[0, 0, 0, 4], 3), [0..2, 2..3]);
    }
}
