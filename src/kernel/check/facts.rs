//! The numbers behind the findings.

use serde::Serialize;

use crate::method::Species;

use super::identify::NameKind;
use super::judge::ValueKind;

/// The numbers of a report. What could not be determined is absent, never 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Facts {
    /// X; absent where the file has none, or where it has no cells or no genes.
    pub matrix: Option<MatrixFacts>,
    /// Where integer counts were found: `X`, else every other matrix that holds them (`layers/NAME`, `raw`).
    pub counts_in: Vec<String>,
    pub gene_names: GeneNameFacts,
    /// Cell names that repeat an earlier one.
    pub duplicate_cells: usize,
    /// Gene names that repeat an earlier one.
    pub duplicate_genes: usize,
    pub labels: Option<ColumnFacts>,
    pub batches: Option<ColumnFacts>,
    pub obsm: Vec<String>,
}

/// The values of a matrix, every one of them looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MatrixFacts {
    /// `dense`, `csr` or `csc`.
    pub encoding: &'static str,
    /// Numpy name of the stored type.
    pub dtype: String,
    pub kind: ValueKind,
    /// Non-zero values, NaN among them.
    pub nnz: u64,
    /// Non-zero share of all values.
    pub density: f64,
    /// Sum of the finite values.
    pub sum: f64,
    /// Least finite value, zeros among them; absent when there is none.
    pub min: Option<f64>,
    pub max: Option<f64>,
    /// Whether every value is a whole number.
    pub integer: bool,
    pub negative: u64,
    pub fractional: u64,
    pub nan: u64,
    pub infinite: u64,
    /// Cells whose values are all 0.
    pub empty_cells: usize,
    /// Genes whose values are all 0.
    pub empty_genes: usize,
    pub median_cell_sum: f64,
    /// Median over the cells of the number of genes that are not 0.
    pub median_cell_genes: f64,
}

/// How the genes are named.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct GeneNameFacts {
    pub kind: NameKind,
    /// Judged by spelling; absent where the names do not tell.
    pub species: Option<Species>,
    /// Names spelt like human symbols (in capitals).
    pub human_symbols: usize,
    /// Names spelt like mouse symbols (a capital, then small letters).
    pub mouse_symbols: usize,
    pub ensembl: usize,
    /// Ensembl identifiers that end in a version (`.12`).
    pub versioned: usize,
    pub numbers: usize,
}

/// A column of obs as classes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnFacts {
    pub column: String,
    pub class_count: usize,
    /// Cells of each class, largest class first; the largest thousand where there are more.
    pub classes: Vec<ClassFacts>,
    /// Cells without a value.
    pub missing: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassFacts {
    pub name: String,
    pub cells: usize,
}
