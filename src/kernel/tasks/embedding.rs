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
    rows(file, &(0..file.n_obs()).collect::<Vec<usize>>())
}

/// The cells of the given rows, each once, in that order; the rest of X is not kept. Errors as [`points`], for all of X.
pub fn rows(file: &H5ad, rows: &[usize]) -> Result<Points> {
    let matrix = file.matrix(&Slot::X)?;
    let (cells, dims) = matrix.shape();
    if cells == 0 || dims == 0 {
        return Err(Error::input(format_args!(
            "{} is no embedding: X has {cells} cells and {dims} dimensions",
            file.path().display()
        )));
    }
    let mut place_of = vec![None; cells];
    rows.iter().enumerate().for_each(|(place, &row)| place_of[row] = Some(place));
    let mut values = vec![0f32; rows.len() * dims];
    let mut broken = Vec::new();
    matrix.for_each_block(&mut |block| {
        for row in 0..block.rows() {
            let cell = block.first_row + row;
            let (columns, entries) = block.row(row);
            // What float32 cannot hold is as bad as what is not finite.
            if !entries.iter().all(|entry| (*entry as f32).is_finite()) {
                broken.push(cell);
            } else if let Some(place) = place_of[cell] {
                let target = &mut values[place * dims..(place + 1) * dims];
                for (column, entry) in columns.iter().zip(entries) {
                    target[*column as usize] = *entry as f32;
                }
            }
        }
        Ok(())
    })?;
    match broken.first() {
        None => Ok(Points::new(values, dims)),
        Some(&first) => Err(not_finite(file.path(), broken.len(), cells, &file.obs().index()[first])),
    }
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
