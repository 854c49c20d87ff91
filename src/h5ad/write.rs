//! Writing an embedding as an AnnData file, all at once or not at all.

use std::path::Path;

use super::H5ad;
use crate::error::Result;

/// An embedding of the cells of a file, to be written.
#[derive(Debug, Clone, Copy)]
pub struct EmbeddingRef<'a> {
    /// Row-major, cells x `dims`.
    pub values: &'a [f32],
    pub dims: usize,
    /// What goes into `uns`; a key with slashes makes nested dictionaries.
    pub uns: &'a [(&'a str, UnsValue)],
}

/// A value of `uns`.
#[derive(Debug, Clone, PartialEq)]
pub enum UnsValue {
    Text(String),
    Integer(i64),
    Float(f64),
    Floats(Vec<f64>),
    Texts(Vec<String>),
}

/// Writes an embedding of the cells of `source` to `path`, with `obs` and `obsm` of `source` kept.
pub fn write_embedding(_path: &Path, _embedding: EmbeddingRef<'_>, _source: &H5ad) -> Result<()> {
    todo!()
}

pub(super) fn obsm_keys(_source: &super::source::Source) -> Result<Vec<String>> {
    Ok(Vec::new())
}
