//! Embeddings as the tasks read them.

use std::path::Path;

use crate::error::{Error, Result};
use crate::h5ad::{H5ad, Slot};
use crate::kernel::points::Points;
use crate::matrix::RowBlocks;

/// The embedding in X of a file: cells x dims, every value finite.
///
/// # Errors
/// Input: X is absent, has no column, or holds values that are not finite (how many cells have one, and the first).
pub fn points(file: &H5ad) -> Result<Points> {
    let matrix = file.matrix(&Slot::X)?;
    let (cells, dims) = matrix.shape();
    if cells == 0 || dims == 0 {
        return Err(Error::input(format_args!(
            "{} is no embedding: X has {cells} cells and {dims} dimensions",
            file.path().display()
        )));
    }
    let mut values = vec![0f32; cells * dims];
    let mut broken = Vec::new();
    matrix.for_each_block(&mut |block| {
        for row in 0..block.rows() {
            let cell = block.first_row + row;
            let (columns, entries) = block.row(row);
            let target = &mut values[cell * dims..(cell + 1) * dims];
            for (column, entry) in columns.iter().zip(entries) {
                target[*column as usize] = *entry as f32;
            }
            if !target.iter().all(|value| value.is_finite()) {
                broken.push(cell);
            }
        }
        Ok(())
    })?;
    match broken.first() {
        None => Ok(Points::new(values, dims)),
        Some(&first) => Err(not_finite(file.path(), broken.len(), cells, &file.obs().index()[first])),
    }
}

/// The cells of the given rows, in that order; errors as [`points`].
pub fn rows(file: &H5ad, rows: &[usize]) -> Result<Points> {
    let all = points(file)?;
    let as_it_is = rows.iter().copied().eq(0..all.len());
    Ok(if as_it_is { all } else { all.select(rows) })
}

fn not_finite(path: &Path, broken: usize, cells: usize, first: &str) -> Error {
    Error::input(format_args!("{broken} of {cells} cells are not finite, first {first}"))
        .cause(format_args!("X of {} holds NaN or infinite values there", path.display()))
        .hint("leave those cells out, or embed them again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::cases;

    #[test]
    fn b07_says_how_many_cells_are_not_finite_and_which_is_the_first() {
        let file = cases::open("b07_nan_inf_embedding.h5ad");
        let error = points(&file).unwrap_err();
        assert_eq!(error.message, "3 of 80 cells are not finite, first cell0005");
    }

    #[test]
    fn an_embedding_is_read_whole() {
        let points = points(&cases::open("b09_four_blobs.h5ad")).unwrap();
        assert_eq!((points.len(), points.dims()), (200, 6));
    }
}
