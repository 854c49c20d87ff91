//! Annotation frames: `obs`, `var` and `raw/var`.

use super::Column;
use crate::error::Result;

/// A table of named columns with a named row each.
#[derive(Debug)]
pub struct Frame {
    index: Vec<String>,
    column_names: Vec<String>,
}

impl Frame {
    /// The names of the rows.
    pub fn index(&self) -> &[String] {
        &self.index
    }

    /// The names of the columns in the file's order; the index is not among them.
    pub fn column_names(&self) -> &[String] {
        &self.column_names
    }

    /// Reads the column `name`; an unknown name is an error that lists those there are, nearest first.
    pub fn column(&self, _name: &str) -> Result<Column> {
        todo!()
    }
}
