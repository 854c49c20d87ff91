//! How many neighbours in the counts are neighbours in the embedding.

use super::Groups;
use super::residuals::{Cells, select};
use crate::error::Result;
use crate::kernel::neighbours::{Search, Tick, nearest};
use crate::kernel::parts;
use crate::kernel::points::Points;
use crate::kernel::score::Score;
use crate::matrix::RowBlocks;

/// Neighbourhood sizes.
pub const SIZES: [usize; 3] = [15, 30, 50];

/// Fewest cells of a batch.
pub const LEAST_CELLS: usize = 101;

/// Genes of the reference space.
pub const GENES: usize = 2000;

/// R_NX at each of [`SIZES`], their mean, and what they were taken over.
#[derive(Debug, Clone, PartialEq)]
pub struct Preservation {
    pub at: [Score; 3],
    pub mean: Score,
    /// Cells in batches of at least [`LEAST_CELLS`] cells.
    pub eligible_cells: usize,
    pub batches: usize,
    pub notes: Vec<String>,
}

impl Preservation {
    /// NA throughout.
    pub fn missing(reason: &str) -> Preservation {
        Preservation {
            at: [(); 3].map(|()| Score::missing(reason)),
            mean: Score::missing(reason),
            eligible_cells: 0,
            batches: 0,
            notes: Vec::new(),
        }
    }
}

/// Batches of at least [`LEAST_CELLS`] cells; cells of others have none.
pub fn eligible(batches: &Groups) -> Groups {
    let large: Vec<bool> = batches.members().iter().map(|cells| cells.len() >= LEAST_CELLS).collect();
    let names: Vec<Option<&str>> = batches
        .codes
        .iter()
        .map(|code| {
            code.filter(|code| large[*code as usize]).map(|code| batches.names[code as usize].as_str())
        })
        .collect();
    Groups::of(&names)
}

/// Rescaled neighbourhood preservation `R_NX(k) = ((n - 1) Q_NX(k) - k) / (n - 1 - k)` of the raw embedding.
///
/// Q_NX(k) is the mean overlap of a cell's k nearest neighbours in the embedding with those in the reference space: Pearson
/// residuals of [`GENES`] genes (or of those there are, which the notes say; see [`super::residuals`]). Within batches of at
/// least 101 cells, then the mean over batches weighted by cells. 0 for chance, 1 for all neighbours kept; higher is
/// better. Lee et al. 2015; equals the overlap of two `sklearn.neighbors.NearestNeighbors` (scikit-learn 1.9.1).
/// NA: no batch is large enough, no gene is eligible, or the counts are not raw.
///
/// # Errors
/// What the stream of counts returns.
pub fn rnx(
    points: &Points,
    counts: &dyn RowBlocks,
    cell_of_row: &[Option<u32>],
    batches: &Groups,
    candidates: &[bool],
    tick: Tick<'_>,
) -> Result<Preservation> {
    let large = eligible(batches);
    if large.is_empty() {
        let most = batches.members().iter().map(Vec::len).max().unwrap_or(0);
        return Ok(Preservation::missing(&format!(
            "R_NX needs a batch of {LEAST_CELLS} cells, the largest has {most}"
        )));
    }
    let reference = select(counts, &Cells { cell_of_row, batches: &large, candidates }, GENES)?;
    if reference.genes.is_empty() {
        return Ok(Preservation::missing("no gene is found in 10 cells and counted 10 times"));
    }
    let members = large.members();
    let all: usize = members.iter().map(Vec::len).sum();
    let mut found = Preservation::missing("");
    (found.eligible_cells, found.batches) = (all, members.len());
    if reference.eligible < GENES {
        found.notes.push(format!("R_NX uses all {} eligible genes, fewer than {GENES}", reference.eligible));
    }
    let most = SIZES[SIZES.len() - 1];
    let mut sums = [0.0; 3];
    let of_batches = parts::each(&members, tick, |batch, cells, tick| {
        let expected = nearest(&reference.points(batch, cells), most, tick);
        let places: Vec<usize> = cells.iter().map(|&cell| cell as usize).collect();
        let kept = nearest(&points.select(&places), most, &|_| ());
        let rows = |cell: usize| (expected.row(cell).0, kept.row(cell).0);
        (overlaps(cells.len(), rows), [expected.search, kept.search])
    });
    for (cells, (overlaps, searches)) in members.iter().zip(of_batches) {
        found.notes.extend(searches.into_iter().filter_map(Search::note).map(|note| format!("R_NX: {note}")));
        for (sum, overlap) in sums.iter_mut().zip(overlaps) {
            *sum += overlap * cells.len() as f64;
        }
    }
    let values = sums.map(|sum| sum / all as f64);
    found.at = values.map(Score::number);
    found.mean = Score::number(values.iter().sum::<f64>() / values.len() as f64);
    Ok(found)
}

/// R_NX at each of [`SIZES`] for `cells` cells with two rows of neighbours each.
fn overlaps<'a>(cells: usize, rows: impl Fn(usize) -> (&'a [u32], &'a [u32])) -> [f64; 3] {
    let mut common = [0usize; 3];
    let mut known = vec![u32::MAX; cells];
    for cell in 0..cells {
        let (expected, kept) = rows(cell);
        // The rank among the expected neighbours, as a stamp that needs no clearing between sizes.
        for (rank, &other) in expected.iter().enumerate() {
            known[other as usize] = rank as u32;
        }
        for (rank, &other) in kept.iter().enumerate() {
            let last = (rank as u32).max(known[other as usize]);
            for (sum, &size) in common.iter_mut().zip(&SIZES) {
                *sum += usize::from(last < size as u32);
            }
        }
        expected.iter().for_each(|&other| known[other as usize] = u32::MAX);
    }
    let others = cells as f64 - 1.0;
    let mut values = [0.0; 3];
    for ((value, common), size) in values.iter_mut().zip(common).zip(SIZES.map(|size| size as f64)) {
        let overlap = common as f64 / (cells as f64 * size);
        *value = (others * overlap - size) / (others - size);
    }
    values
}
