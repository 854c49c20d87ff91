//! Columns of obs as the scoring tasks read them.

use crate::error::Result;
use crate::h5ad::{Frame, Labels};
use crate::kernel::points::Classes;

/// A column as classes.
pub fn column(frame: &Frame, key: &str) -> Result<Labels> {
    Ok(frame.column(frame.find(key).unwrap_or(key))?.labels())
}

/// The classes of the given rows; rows without one are left out.
pub fn classes(column: &Labels, rows: &[usize]) -> Classes {
    let names: Vec<&str> = rows
        .iter()
        .filter_map(|&row| column.codes[row])
        .map(|code| column.classes[code as usize].as_str())
        .collect();
    Classes::of(&names)
}
