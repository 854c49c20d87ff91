//! GenePT-w: a cell is the mean of the vectors of its genes, weighted by their expression.
//!
//! As the authors' notebook has it (Chen and Zou 2023): counts are brought to 10,000 a cell and logged (`log1p`), multiplied
//! with the table of gene vectors, and divided by the number of genes in the file. Genes without a vector add nothing, but
//! count towards the 10,000 and the divisor. Nothing is scaled to unit length.
//!
//! The matrix is streamed and never dense; what is in memory is the table of the genes that match, and a few rows. A cell's
//! embedding depends on that cell alone.

use rayon::prelude::*;

use super::pca::normalize::{Depth, Logs};
use super::tiles::widest;
use crate::error::Result;
use crate::matrix::{RowBlock, RowBlocks};

/// The total to which the counts of a cell are brought.
const TARGET_SUM: f64 = 1e4;

/// Dimensions whose sums are held in registers at once.
const GROUP: usize = 64;

/// Cells of one task.
const CELLS: usize = 16;

/// Values that are handed on at once, at most.
const VALUES: usize = 1 << 22;

/// One number for each dimension of a group; whole cache lines.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Weights([f32; GROUP]);

/// The vectors of the genes of a file.
pub struct GeneVectors {
    dims: usize,
    /// The place of each column's vector, where it has one.
    places: Vec<Option<u32>>,
    /// For each group of dimensions, the numbers of each place.
    groups: Vec<Vec<Weights>>,
}

impl GeneVectors {
    /// Takes the vector of each column of a matrix, all of `dims` numbers, where there is one.
    pub fn new(columns: &[Option<&[f32]>], dims: usize) -> GeneVectors {
        let mut next = 0..;
        let places = columns.iter().map(|vector| vector.and_then(|_| next.next())).collect();
        let group = |first: usize| {
            let weights = |vector: &[f32]| {
                let mut weights = Weights([0.0; GROUP]);
                weights.0.iter_mut().zip(&vector[first..]).for_each(|(to, from)| *to = *from);
                weights
            };
            columns.iter().flatten().map(|vector| weights(vector)).collect()
        };
        GeneVectors { dims, places, groups: (0..dims).step_by(GROUP).map(group).collect() }
    }

    /// Embeds the cells of a matrix of counts, and hands the rows on, some at a time; gives the number of cells without any
    /// count of a gene that has a vector, whose rows are zero.
    ///
    /// `progress` is called with the number of cells done.
    pub fn embed(
        &self,
        matrix: &dyn RowBlocks,
        progress: &dyn Fn(usize),
        write: &mut dyn FnMut(&[f32]) -> Result<()>,
    ) -> Result<usize> {
        let genes = matrix.shape().1 as f64;
        let most = (VALUES / self.dims.max(1)).max(1);
        let (mut without, mut rows) = (0, Vec::new());
        matrix.for_each_block(&mut |block| {
            for first in (0..block.rows()).step_by(most) {
                let count = most.min(block.rows() - first);
                rows.resize(count * self.dims, 0f32);
                without += rows
                    .par_chunks_mut(CELLS * self.dims)
                    .enumerate()
                    .map(|(task, rows)| self.place(block, first + task * CELLS, genes, rows))
                    .sum::<usize>();
                write(&rows)?;
                progress(block.first_row + first + count);
            }
            Ok(())
        })?;
        Ok(without)
    }

    /// Writes consecutive rows, and counts those that stay zero.
    fn place(&self, block: RowBlock<'_>, first: usize, genes: f64, rows: &mut [f32]) -> usize {
        let cells = rows.len() / self.dims;
        let weighted: Vec<Vec<(u32, f32)>> =
            (first..first + cells).map(|row| self.weights(block.row(row), genes)).collect();
        for (group, vectors) in self.groups.iter().enumerate() {
            widest(
                #[inline(always)]
                || {
                    for (row, weighted) in rows.chunks_exact_mut(self.dims).zip(&weighted) {
                        let mut sums = [0f32; GROUP];
                        for &(place, weight) in weighted {
                            let Weights(vector) = &vectors[place as usize];
                            sums.iter_mut().zip(vector).for_each(|(sum, value)| *sum += weight * value);
                        }
                        row[group * GROUP..].iter_mut().zip(sums).for_each(|(value, sum)| *value = sum);
                    }
                },
            );
        }
        weighted.iter().filter(|weighted| weighted.is_empty()).count()
    }

    /// The place and the weight of each gene of a cell that has a vector.
    fn weights(&self, (columns, counts): (&[u32], &[f64]), genes: f64) -> Vec<(u32, f32)> {
        let mut logs = Logs::new(Depth::of(counts, TARGET_SUM));
        let weight = |(&column, &count): (&u32, &f64)| {
            let place = self.places[column as usize].filter(|_| count != 0.0)?;
            Some((place, (logs.of(count) / genes) as f32))
        };
        columns.iter().zip(counts).filter_map(weight).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Csr;

    fn embedded(matrix: &Csr, columns: &[Option<&[f32]>], dims: usize) -> (Vec<f32>, usize) {
        let (mut values, vectors) = (Vec::new(), GeneVectors::new(columns, dims));
        let without = vectors.embed(matrix, &|_| (), &mut |rows| {
            values.extend_from_slice(rows);
            Ok(())
        });
        (values, without.unwrap())
    }

    #[test]
    fn a_cell_is_the_weighted_sum_of_its_genes_over_all_genes() {
        let matrix = Csr {
            columns: 3,
            indptr: vec![0, 2, 3, 3, 5],
            indices: vec![0, 2, 1, 1, 2],
            values: vec![3.0, 1.0, 5.0, 2.0, 2.0],
        };
        let (a, c) = ([1.0, -2.0], [0.5, 4.0]);
        let (values, without) = embedded(&matrix, &[Some(&a), None, Some(&c)], 2);
        let log = |part: f64| (part * 1e4).ln_1p() / 3.0;
        let expected = [
            [log(0.75) + 0.5 * log(0.25), -2.0 * log(0.75) + 4.0 * log(0.25)],
            [0.0, 0.0],
            [0.0, 0.0],
            [0.5 * log(0.5), 4.0 * log(0.5)],
        ];
        for (value, expected) in values.iter().zip(expected.concat()) {
            assert!((f64::from(*value) - expected).abs() < 1e-5, "{values:?}");
        }
        assert_eq!(without, 2);
    }

    #[test]
    fn threads_do_not_change_a_bit_in_more_dimensions_than_a_group_has() {
        let (genes, dims, cells) = (40u32, 150, 300);
        let mut matrix = Csr { columns: genes as usize, indptr: vec![0], ..Csr::default() };
        for cell in 0..cells {
            for gene in (0..genes).filter(|gene| (gene * 7 + cell) % 3 == 0) {
                matrix.indices.push(gene);
                matrix.values.push(f64::from(1 + (gene + cell) % 5));
            }
            matrix.indptr.push(matrix.indices.len());
        }
        let table: Vec<f32> =
            (0..genes as usize * dims).map(|place| ((place * 31 % 97) as f32) - 48.0).collect();
        let columns: Vec<Option<&[f32]>> = table.chunks(dims).map(Some).collect();
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| embedded(&matrix, &columns, dims))
        };
        let (one, many) = (run(1), run(5));
        assert!(one == many && one.1 == 0);
        let (columns_of, counts) = (&matrix.indices[..14], &matrix.values[..14]);
        assert_eq!(matrix.indptr[1], 14);
        let total: f64 = counts.iter().sum();
        let expected: f64 = columns_of
            .iter()
            .zip(counts)
            .map(|(&gene, count)| {
                (count / total * 1e4).ln_1p() / 40.0 * f64::from(table[gene as usize * dims + 149])
            })
            .sum();
        assert!((f64::from(one.0[149]) - expected).abs() < 1e-4, "{} {expected}", one.0[149]);
    }
}
