//! Analytic Pearson residuals of raw counts: the reference space of neighbourhood preservation.
//!
//! Lause et al. 2021 as in `scanpy.experimental.pp.normalize_pearson_residuals` (scanpy 1.11.5): with the library size of a
//! cell, the share of a gene in the batch and their product mu, the residual is `(x - mu) / sqrt(mu + mu^2 / theta)`, clipped
//! at plus and minus the square root of the batch's cells.

use rayon::prelude::*;

use super::Groups;
use crate::error::Result;
use crate::kernel::points::Points;
use crate::kernel::tiles::widest;
use crate::matrix::{RowBlock, RowBlocks};

/// Overdispersion.
const THETA: f64 = 100.0;

/// A gene counts when so many cells have it, and so many molecules in all.
const LEAST: f64 = 10.0;

/// Genes whose sums one task takes.
const GENES: usize = 512;

/// Sums of residuals are kept in steps of this, as integers: their order does not matter then.
const STEPS: f64 = (1u64 << 40) as f64;

/// The cells that take part, and what each file row is.
#[derive(Debug, Clone)]
pub struct Cells<'a> {
    /// The cell that each row of the counts is, if it is used.
    pub cell_of_row: &'a [Option<u32>],
    /// Batches that are large enough; cells without one take no part.
    pub batches: &'a Groups,
    /// Genes that may be selected.
    pub candidates: &'a [bool],
}

/// Counts of the cells used at the genes selected, ready to become residuals.
#[derive(Debug, Clone)]
pub struct Reference {
    /// Columns of the counts, the most variable first.
    pub genes: Vec<u32>,
    /// Genes that could have been selected.
    pub eligible: usize,
    library: Vec<f64>,
    /// Share of each gene in all counts of a batch: batches x genes.
    shares: Vec<f64>,
    /// For each cell the genes (as positions in `genes`) and counts.
    entries: Vec<Vec<(u32, f32)>>,
}

/// Selects up to `wanted` genes by the variance of their clipped residuals and keeps their counts.
///
/// Eligible are candidates that at least 10 cells have and that were counted at least 10 times, among the cells that take
/// part. In each batch they are ranked by variance (ddof 1; ties share their mean rank), as a part of their number; the
/// order is by median rank over batches, then mean rank, then cells that have them, then the file's order. Streams the
/// counts three times; holds 8 bytes for each count kept.
///
/// # Errors
/// What the stream returns.
pub fn select(counts: &dyn RowBlocks, cells: &Cells<'_>, wanted: usize) -> Result<Reference> {
    let totals = Totals::of(counts, cells)?;
    let eligible: Vec<u32> = (0..cells.candidates.len() as u32)
        .filter(|&gene| {
            let gene = gene as usize;
            cells.candidates[gene] && totals.detected[gene] >= LEAST && totals.counted[gene] >= LEAST
        })
        .collect();
    let variances = totals.variances(counts, cells, &eligible)?;
    let order = order(&variances, &totals.detected, &eligible);
    let genes: Vec<u32> = order.into_iter().take(wanted).map(|place| eligible[place]).collect();
    let mut place_of = vec![None; cells.candidates.len()];
    for (place, &gene) in genes.iter().enumerate() {
        place_of[gene as usize] = Some(place as u32);
    }
    let mut entries = vec![Vec::new(); totals.library.len()];
    counts.for_each_block(&mut |block| {
        let of_row = |row: Row<'_>| {
            let mut kept = Vec::with_capacity(row.columns.len().min(genes.len()));
            for (gene, value) in row.columns.iter().zip(row.values) {
                kept.extend(place_of[*gene as usize].map(|place| (place, *value as f32)));
            }
            kept.shrink_to_fit();
            (row.cell, kept)
        };
        let found: Vec<(usize, Vec<(u32, f32)>)> =
            rows(&block, cells).par_iter().copied().map(of_row).collect();
        found.into_iter().for_each(|(cell, kept)| entries[cell] = kept);
        Ok(())
    })?;
    let shares = (0..cells.batches.len())
        .flat_map(|batch| genes.iter().map(move |&gene| (batch, gene as usize)))
        .map(|(batch, gene)| totals.share(batch, gene))
        .collect();
    Ok(Reference { genes, eligible: eligible.len(), library: totals.library, shares, entries })
}

impl Reference {
    /// The clipped residuals of the named cells, all of one batch.
    pub fn points(&self, batch: usize, members: &[u32]) -> Points {
        let genes = self.genes.len();
        let shares = &self.shares[batch * genes..(batch + 1) * genes];
        let limit = (members.len() as f64).sqrt();
        let mut values = vec![0f32; members.len() * genes];
        values.par_chunks_mut(genes.max(1)).zip(members).for_each(|(row, &cell)| {
            let library = self.library[cell as usize];
            widest(
                #[inline(always)]
                || zeros(library, shares, limit, row),
            );
            for &(gene, count) in &self.entries[cell as usize] {
                let mean = library * shares[gene as usize];
                row[gene as usize] = residual(f64::from(count), mean, limit) as f32;
            }
        });
        Points::new(values, genes)
    }
}

/// A clipped residual; 0 where nothing is expected.
fn residual(count: f64, mean: f64, limit: f64) -> f64 {
    if mean > 0.0 { ((count - mean) / (mean + mean * mean / THETA).sqrt()).clamp(-limit, limit) } else { 0.0 }
}

/// The counts of a cell that takes part.
#[derive(Clone, Copy)]
struct Row<'a> {
    cell: usize,
    batch: usize,
    columns: &'a [u32],
    values: &'a [f64],
}

/// The rows of a block whose cells take part.
fn rows<'a>(block: &RowBlock<'a>, cells: &Cells<'_>) -> Vec<Row<'a>> {
    let row = |row: usize| {
        let cell = cells.cell_of_row[block.first_row + row]? as usize;
        let batch = cells.batches.codes[cell]? as usize;
        let (columns, values) = block.row(row);
        Some(Row { cell, batch, columns, values })
    };
    (0..block.rows()).filter_map(row).collect()
}

/// Sums of counts. All are whole numbers, so their order does not matter.
struct Totals {
    /// Of each cell.
    library: Vec<f64>,
    /// Of each gene.
    counted: Vec<f64>,
    /// Cells that have each gene.
    detected: Vec<f64>,
    /// Share of each gene in all counts of a batch: batches x genes.
    shares: Vec<f64>,
    genes: usize,
}

impl Totals {
    fn of(counts: &dyn RowBlocks, cells: &Cells<'_>) -> Result<Totals> {
        let genes = counts.shape().1;
        let batches = cells.batches.len();
        let mut totals = Totals {
            library: vec![0.0; cells.batches.codes.len()],
            counted: vec![0.0; genes],
            detected: vec![0.0; genes],
            shares: vec![0.0; batches * genes],
            genes,
        };
        let mut by_batch = vec![0.0; batches];
        counts.for_each_block(&mut |block| {
            for Row { cell, batch, columns, values } in rows(&block, cells) {
                let by_gene = &mut totals.shares[batch * genes..(batch + 1) * genes];
                for (gene, value) in columns.iter().zip(values) {
                    by_gene[*gene as usize] += value;
                    totals.detected[*gene as usize] += 1.0;
                }
                totals.library[cell] = values.iter().sum();
                by_batch[batch] += totals.library[cell];
            }
            Ok(())
        })?;
        for (batch, whole) in by_batch.into_iter().enumerate() {
            let shares = &mut totals.shares[batch * genes..(batch + 1) * genes];
            totals.counted.iter_mut().zip(&*shares).for_each(|(counted, count)| *counted += count);
            if whole > 0.0 {
                shares.iter_mut().for_each(|count| *count /= whole);
            }
        }
        Ok(totals)
    }

    fn share(&self, batch: usize, gene: usize) -> f64 {
        self.shares[batch * self.genes + gene]
    }

    /// The variance of the clipped residuals of each eligible gene in each batch: batches x genes.
    ///
    /// As if every count were 0, which needs no counts, and then what the counts that are not change.
    fn variances(
        &self,
        counts: &dyn RowBlocks,
        cells: &Cells<'_>,
        eligible: &[u32],
    ) -> Result<Vec<Vec<f64>>> {
        let members = cells.batches.members();
        let limits: Vec<f64> = members.iter().map(|members| (members.len() as f64).sqrt()).collect();
        let mut changes = vec![Change::default(); eligible.len() * members.len()];
        counts.for_each_block(&mut |block| {
            let rows = rows(&block, cells);
            let parts = changes.par_chunks_mut(GENES * members.len()).zip(eligible.par_chunks(GENES));
            parts.for_each(|(changes, genes)| self.change(&rows, genes, &limits, changes));
            Ok(())
        })?;
        let library = |cells: &Vec<u32>| cells.iter().map(|&cell| self.library[cell as usize]).collect();
        let libraries: Vec<Vec<f64>> = members.iter().map(library).collect();
        let variance = |batch: usize, place: usize| {
            let share = self.share(batch, eligible[place] as usize);
            let (sum, squares) = as_if_zero(&libraries[batch], share, limits[batch]);
            let more = changes[place * members.len() + batch];
            let (sum, squares) = (sum + more.sum as f64 / STEPS, squares + more.squares as f64 / STEPS);
            let count = members[batch].len() as f64;
            ((squares - sum * sum / count) / (count - 1.0)).max(0.0)
        };
        Ok((0..members.len())
            .map(|batch| (0..eligible.len()).into_par_iter().map(|place| variance(batch, place)).collect())
            .collect())
    }

    /// Adds what the counts of `rows` change for `genes`, ascending; `changes` has a place for each of them and batch.
    fn change(&self, rows: &[Row<'_>], genes: &[u32], limits: &[f64], changes: &mut [Change]) {
        let (first, last) = (genes[0], genes[genes.len() - 1]);
        let mut place_of = vec![u32::MAX; (last - first) as usize + 1];
        genes.iter().zip(0..).for_each(|(gene, place)| place_of[(gene - first) as usize] = place);
        for row in rows {
            let own = row.columns.partition_point(|gene| *gene < first)
                ..row.columns.partition_point(|gene| *gene <= last);
            let (library, limit) = (self.library[row.cell], limits[row.batch]);
            let shares = &self.shares[row.batch * self.genes..][..self.genes];
            for (gene, value) in row.columns[own.clone()].iter().zip(&row.values[own]) {
                let place = place_of[(gene - first) as usize];
                let mean = library * shares[*gene as usize];
                if place == u32::MAX || mean <= 0.0 {
                    continue;
                }
                let scale = 1.0 / (mean + mean * mean / THETA).sqrt();
                let none = (-mean * scale).max(-limit);
                let some = ((value - mean) * scale).clamp(-limit, limit);
                let change = &mut changes[place as usize * limits.len() + row.batch];
                // Below 2^63 up to 8 million cells a batch; the sums of them are not.
                change.sum += i128::from(((some - none) * STEPS) as i64);
                change.squares += i128::from(((some * some - none * none) * STEPS) as i64);
            }
        }
    }
}

/// What the counts that are not 0 change in the sums of a gene's residuals, in [`STEPS`].
#[derive(Clone, Copy, Default)]
struct Change {
    sum: i128,
    squares: i128,
}

/// Sum and sum of squares of the residuals of a gene that no cell has.
fn as_if_zero(libraries: &[f64], share: f64, limit: f64) -> (f64, f64) {
    widest(
        #[inline(always)]
        || zero_sums(libraries, share, limit),
    )
}

/// In eight lanes.
#[inline(always)]
fn zero_sums(libraries: &[f64], share: f64, limit: f64) -> (f64, f64) {
    const LANES: usize = 8;
    let (mut sums, mut squares) = ([0.0; LANES], [0.0; LANES]);
    let chunks = libraries.chunks_exact(LANES);
    for library in chunks.remainder() {
        let value = zero(library * share, limit);
        sums[0] += value;
        squares[0] += value * value;
    }
    for chunk in chunks {
        for lane in 0..LANES {
            let value = zero(chunk[lane] * share, limit);
            sums[lane] += value;
            squares[lane] += value * value;
        }
    }
    (sums.iter().sum(), squares.iter().sum())
}

/// The residual of a count of 0, `-mu / sqrt(mu + mu^2 / theta)`, with one root.
#[inline(always)]
fn zero(mean: f64, limit: f64) -> f64 {
    (-(mean / (1.0 + mean / THETA)).sqrt()).max(-limit)
}

/// The residuals of a cell that has none of the genes.
#[inline(always)]
fn zeros(library: f64, shares: &[f64], limit: f64, row: &mut [f32]) {
    for (target, share) in row.iter_mut().zip(shares) {
        *target = zero(library * share, limit) as f32;
    }
}

/// Positions of the eligible genes, the most variable first.
fn order(variances: &[Vec<f64>], detected: &[f64], eligible: &[u32]) -> Vec<usize> {
    let ranks: Vec<Vec<f64>> = variances.iter().map(|variances| ranks(variances)).collect();
    let summary: Vec<(f64, f64)> = (0..eligible.len())
        .map(|place| {
            let mut own: Vec<f64> = ranks.iter().map(|ranks| ranks[place]).collect();
            own.sort_by(f64::total_cmp);
            let middle = own.len() / 2;
            let median = if own.len() % 2 == 1 { own[middle] } else { (own[middle - 1] + own[middle]) / 2.0 };
            (median, own.iter().sum::<f64>() / own.len() as f64)
        })
        .collect();
    let mut order: Vec<usize> = (0..eligible.len()).collect();
    let cells = |place: usize| detected[eligible[place] as usize];
    order.sort_by(|&a, &b| {
        let by_rank = summary[b].0.total_cmp(&summary[a].0).then(summary[b].1.total_cmp(&summary[a].1));
        by_rank.then(cells(b).total_cmp(&cells(a))).then(a.cmp(&b))
    });
    order
}

/// Average ranks from 1, ascending, as a part of their number.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for tied in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let mean = first as f64 + (tied.len() as f64 + 1.0) / 2.0;
        tied.iter().for_each(|&place| ranks[place] = mean / values.len() as f64);
        first += tied.len();
    }
    ranks
}
