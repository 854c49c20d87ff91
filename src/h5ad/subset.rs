//! Writing some cells of a file as a file of its own.

use std::path::Path;

use hdf5_metno::{Datatype, Group};

use super::encode::Target;
use super::growing::Growing;
use super::write::{persist, stage};
use super::{Encoding, H5ad, Matrix, Slot, keep, native};
use crate::error::{Error, Result};
use crate::matrix::RowBlocks;

/// How much of a file its chosen cells come with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// X, `obs`, `var`, and of `obsm` the coordinates.
    Usual,
    /// The layers, `raw` and the rest of `obsm` too.
    Whole,
}

/// Writes the chosen cells of `source` to `path`, in their order.
///
/// Matrices are streamed, so that memory does not grow with them. Their values keep their type and, where they are compressed,
/// are compressed again; a matrix stored by columns becomes one by rows, for which explicit zeros are left out. Categories
/// stay all; entries of `obsm` whose rows cannot be told apart are left out. `proceed` is asked before each block of a matrix,
/// and ends the work with its error.
///
/// The file appears under its name when it is complete; on an error nothing is left. A full disk is an error of kind
/// `Environment`.
pub fn write_cells(
    path: &Path,
    source: &H5ad,
    cells: &[usize],
    extent: Extent,
    proceed: &dyn Fn() -> Result<()>,
) -> Result<()> {
    let ascending = cells.windows(2).all(|pair| pair[0] < pair[1]);
    if !ascending || cells.last().is_some_and(|&last| last >= source.n_obs()) {
        return Err(Error::failed(format_args!(
            "the cells to be taken from {} are not in the order of its {} cells",
            source.path().display(),
            source.n_obs()
        )));
    }
    let temporary = stage(path)?;
    let target = Target(path.to_owned());
    let root = native::create(&temporary).map_err(|error| target.fault(error))?;
    target.mark(&root, "anndata", "0.1.0")?;
    keep::frame(&target, source.obs(), &root, "obs", Some(cells))?;
    keep::frame(&target, source.var(), &root, "var", None)?;
    let taken = match extent {
        Extent::Usual => keep::Taken::Coordinates(cells),
        Extent::Whole => keep::Taken::Rows(cells),
    };
    keep::obsm(&target, source.obs().source(), &target.dictionary(&root, "obsm")?, taken)?;
    for empty in ["obsp", "uns", "varm", "varp"] {
        target.dictionary(&root, empty)?;
    }
    let layers = target.dictionary(&root, "layers")?;
    let rows = Cells { target: &target, cells, proceed };
    for slot in source.slots() {
        match &slot {
            Slot::X => rows.matrix(&source.matrix(&slot)?, &root, "X")?,
            _ if extent == Extent::Usual => {}
            Slot::Layer(name) => rows.matrix(&source.matrix(&slot)?, &layers, name)?,
            Slot::Raw => rows.raw(source, &root)?,
        }
    }
    root.flush().and_then(|()| root.close()).map_err(|error| target.fault(error))?;
    persist(temporary, path)
}

struct Cells<'a> {
    target: &'a Target,
    cells: &'a [usize],
    proceed: &'a dyn Fn() -> Result<()>,
}

impl Cells<'_> {
    /// Writes the matrix before it was filtered or scaled, with its genes.
    fn raw(&self, source: &H5ad, root: &Group) -> Result<()> {
        let Some(raw) = &source.raw else { return Ok(()) };
        let group = self.target.group(root, "raw", "raw", "0.1.0")?;
        keep::frame(self.target, &raw.var, &group, "var", None)?;
        self.target.dictionary(&group, "varm")?;
        self.matrix(&source.matrix(&Slot::Raw)?, &group, "X")
    }

    /// Writes the chosen rows of the matrix under a name in a group.
    fn matrix(&self, matrix: &Matrix<'_>, parent: &Group, name: &str) -> Result<()> {
        let datatype = matrix.array().file_type()?;
        match matrix.encoding() {
            Encoding::Dense => self.dense(matrix, (parent, name), &datatype),
            Encoding::Csr | Encoding::Csc => self.sparse(matrix, (parent, name), &datatype),
        }
    }

    fn dense(&self, matrix: &Matrix<'_>, into: (&Group, &str), datatype: &Datatype) -> Result<()> {
        let columns = matrix.shape().1;
        let mut x = self.growing(into.0, into.1, datatype, Some(columns), matrix)?;
        let mut row = vec![0.0; columns];
        self.each_row(matrix, |indices, values| {
            row.fill(0.0);
            for (&column, &value) in indices.iter().zip(values) {
                row[column as usize] = value;
            }
            x.push(&row).map_err(|error| self.target.fault(error))
        })?;
        let dataset = x.finish().map_err(|error| self.target.fault(error))?;
        self.target.mark(&dataset, "array", "0.2.0")
    }

    fn sparse(&self, matrix: &Matrix<'_>, into: (&Group, &str), datatype: &Datatype) -> Result<()> {
        let x = self.target.group(into.0, into.1, "csr_matrix", "0.1.0")?;
        let index = Datatype::from_type::<i32>().map_err(|error| self.target.fault(error))?;
        let mut data = self.growing(&x, "data", datatype, None, matrix)?;
        let mut columns = self.growing(&x, "indices", &index, None, matrix)?;
        let mut pointers = vec![0_i64];
        self.each_row(matrix, |indices, values| {
            let indices: Vec<f64> = indices.iter().map(|&column| f64::from(column)).collect();
            pointers.push(pointers[pointers.len() - 1] + indices.len() as i64);
            data.push(values).and_then(|()| columns.push(&indices)).map_err(|error| self.target.fault(error))
        })?;
        let finish = |growing: Growing| growing.finish().map_err(|error| self.target.fault(error));
        finish(data)?;
        finish(columns)?;
        self.pointers(&x, &pointers)?;
        let shape = [self.cells.len() as i64, matrix.shape().1 as i64];
        let attribute = || x.new_attr::<i64>().shape(2).create("shape")?.write_raw(&shape);
        attribute().map_err(|error| self.target.fault(error))
    }

    /// Writes the row pointers, in 32 bits where these are enough.
    fn pointers(&self, x: &Group, pointers: &[i64]) -> Result<()> {
        let narrow: Option<Vec<i32>> = pointers.iter().map(|&pointer| i32::try_from(pointer).ok()).collect();
        let creation = native::timeless().map_err(|error| self.target.fault(error))?;
        let write = || match &narrow {
            Some(narrow) => x
                .new_dataset::<i32>()
                .set_create_plist(&creation)
                .shape(narrow.len())
                .create("indptr")?
                .write_raw(narrow),
            None => x
                .new_dataset::<i64>()
                .set_create_plist(&creation)
                .shape(pointers.len())
                .create("indptr")?
                .write_raw(pointers),
        };
        write().map_err(|error| self.target.fault(error))
    }

    fn growing(
        &self,
        group: &Group,
        name: &str,
        datatype: &Datatype,
        columns: Option<usize>,
        matrix: &Matrix<'_>,
    ) -> Result<Growing> {
        Growing::create(group, name, datatype, columns, matrix.array().is_deflated())
            .map_err(|error| self.target.fault(error))
    }

    /// Streams the matrix, and visits the column indices and the values of each chosen row.
    fn each_row(
        &self,
        matrix: &Matrix<'_>,
        mut visit: impl FnMut(&[u32], &[f64]) -> Result<()>,
    ) -> Result<()> {
        let mut rest = self.cells;
        matrix.for_each_block(&mut |block| {
            (self.proceed)()?;
            let end = block.first_row + block.rows();
            while let Some((&cell, after)) = rest.split_first().filter(|(cell, _)| **cell < end) {
                let (indices, values) = block.row(cell - block.first_row);
                visit(indices, values)?;
                rest = after;
            }
            Ok(())
        })
    }
}
