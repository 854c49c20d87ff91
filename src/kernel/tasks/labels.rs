//! Columns of obs as the scoring tasks read them.

use crate::error::Result;
use crate::h5ad::{H5ad, Labels};
use crate::kernel::points::Classes;

/// A column as classes. An embedding file has `_` for the `/` in a column's name.
pub fn column(data: &H5ad, key: &str) -> Result<Labels> {
    let names = data.obs().column_names();
    let renamed = key.replace('/', "_");
    let there = |name: &str| names.iter().any(|column| column == name);
    let name = if !there(key) && there(&renamed) { &renamed } else { key };
    Ok(data.obs().column(name)?.labels())
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
