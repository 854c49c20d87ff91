//! Graph connectivity: whether the cells of a class reach each other through their neighbours.

use crate::kernel::neighbours::Neighbours;
use crate::kernel::points::Classes;
use crate::kernel::score::Score;

/// Neighbours of a cell that count; the reference counts the cell itself as one more.
const NEIGHBOURS: usize = 14;

/// Graph connectivity (GC) of classes on the directed graph of the 14 nearest neighbours (15 with the cell itself).
///
/// For each class: the cells of the class and the edges among them, the share of its cells that lie in the largest
/// strongly connected component; then the mean over classes. From above 0 to 1, higher is better: 1 when the cells of
/// every class reach each other. Reference: `graph_connectivity` of scib-metrics 0.5.10. The first scib took the
/// undirected graph instead, which never gives less. A class of one cell counts as connected, as it does there.
///
/// `classes` holds a class for each cell of `neighbours`. NA when no cell has a neighbour.
pub fn graph_connectivity(neighbours: &Neighbours, classes: &Classes) -> Score {
    if neighbours.is_empty() {
        return Score::missing("no cell has a neighbour");
    }
    let k = neighbours.k.min(NEIGHBOURS);
    let mut largest = vec![0usize; classes.len()];
    strong_components(neighbours, k, &classes.codes, &mut |cell, size| {
        let largest = &mut largest[classes.codes[cell] as usize];
        *largest = size.max(*largest);
    });
    let shares = largest.iter().zip(classes.sizes()).map(|(&largest, size)| largest as f64 / size as f64);
    let score = Score::number(shares.sum::<f64>() / classes.len() as f64);
    match k < NEIGHBOURS {
        true => {
            score.note(format!("{k} neighbours per cell instead of {NEIGHBOURS}: there are no more cells"))
        }
        false => score,
    }
}

/// A cell that is being searched.
struct Visit {
    cell: usize,
    /// Neighbours looked at so far.
    looked: usize,
}

/// Tarjan's strongly connected components of the edges within classes: tells a cell of each and how many it has.
fn strong_components(neighbours: &Neighbours, k: usize, codes: &[u32], found: &mut impl FnMut(usize, usize)) {
    const NEW: u32 = u32::MAX;
    const DONE: u32 = u32::MAX - 1;
    // When each cell was met; the earliest one that it reaches and that is still open.
    let mut met = vec![NEW; codes.len()];
    let mut earliest = vec![0u32; codes.len()];
    let (mut open, mut path, mut clock) = (Vec::new(), Vec::new(), 0);
    for first in 0..codes.len() {
        if met[first] != NEW {
            continue;
        }
        path.push(Visit { cell: first, looked: 0 });
        while let Some(visit) = path.last_mut() {
            let cell = visit.cell;
            if visit.looked == 0 {
                (met[cell], earliest[cell]) = (clock, clock);
                clock += 1;
                open.push(cell);
            }
            let others = &neighbours.row(cell).0[visit.looked..k];
            let next = others.iter().position(|&other| {
                let other = other as usize;
                let inside = codes[other] == codes[cell];
                if inside && met[other] < DONE {
                    earliest[cell] = earliest[cell].min(met[other]);
                }
                inside && met[other] == NEW
            });
            if let Some(step) = next {
                let child = others[step] as usize;
                visit.looked += step + 1;
                path.push(Visit { cell: child, looked: 0 });
                continue;
            }
            path.pop();
            if let Some(parent) = path.last() {
                earliest[parent.cell] = earliest[parent.cell].min(earliest[cell]);
            }
            if earliest[cell] == met[cell] {
                let start = open.iter().rposition(|&member| member == cell).unwrap_or(0);
                found(cell, open.len() - start);
                open.drain(start..).for_each(|member| met[member] = DONE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::neighbours::{Search, nearest};
    use crate::kernel::points::Points;

    fn directed(k: usize, indices: &[u32]) -> Neighbours {
        let distances = vec![1.0; indices.len()];
        Neighbours { k, indices: indices.to_vec(), distances, search: Search::Exact }
    }

    #[test]
    fn only_cells_that_reach_each_other_count() {
        // 0 -> 1 -> 2 -> 0 is a cycle, 3 only points into it; 4 and 5 point at each other.
        let neighbours = directed(1, &[1, 2, 0, 0, 5, 4]);
        let score = graph_connectivity(&neighbours, &Classes::of(&["a", "a", "a", "a", "b", "b"]));
        assert_eq!(score.value, Some((0.75 + 1.0) / 2.0));
        assert_eq!(score.notes, ["1 neighbours per cell instead of 14: there are no more cells"]);
        // Leaving the class breaks the cycle.
        let score = graph_connectivity(&neighbours, &Classes::of(&["a", "b", "a", "a", "a", "a"]));
        assert_eq!(score.value, Some((2.0 / 5.0 + 1.0) / 2.0));
    }

    #[test]
    fn a_long_chain_needs_no_deep_stack() {
        let cells = 200_000u32;
        let ring: Vec<u32> = (0..cells).map(|cell| (cell + 1) % cells).collect();
        let labels = vec!["a"; cells as usize];
        assert_eq!(graph_connectivity(&directed(1, &ring), &Classes::of(&labels)).value, Some(1.0));
        let mut line = ring;
        line[cells as usize - 1] = cells - 2;
        let value = graph_connectivity(&directed(1, &line), &Classes::of(&labels)).value;
        assert_eq!(value, Some(2.0 / f64::from(cells)));
    }

    #[test]
    fn few_cells() {
        let none = nearest(&Points::new(vec![1.0], 1), 14, &|_| ());
        assert_eq!(
            graph_connectivity(&none, &Classes::of(&["a"])),
            Score::missing("no cell has a neighbour")
        );
        let two = nearest(&Points::new(vec![1.0, 1.0], 1), 14, &|_| ());
        assert_eq!(graph_connectivity(&two, &Classes::of(&["a", "a"])).value, Some(1.0));
        assert_eq!(graph_connectivity(&two, &Classes::of(&["a", "b"])).value, Some(1.0));
    }
}
