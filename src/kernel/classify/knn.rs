//! Votes of the nearest reference cells.

use super::npy::{Array, Values};
use super::{Arrays, Prediction, unit_rows};
use crate::error::{Error, Result};
use crate::kernel::neighbours::{Tick, nearest_of};
use crate::kernel::points::{Classes, Points};

/// The reference at unit length; a query cell has the class of most of its `k` nearest cells.
///
/// Near by cosine, which orders rows of unit length as the Euclidean distance does. Every neighbour has one vote;
/// a probability is the share of votes, and of classes with equally many the first is taken (scikit-learn 1.9.1,
/// `KNeighborsClassifier(weights="uniform")`).
#[derive(Debug, Clone, PartialEq)]
pub struct Knn {
    k: usize,
    classes: usize,
    reference: Points,
    codes: Vec<u32>,
}

impl Knn {
    /// The file of the reference at unit length (float32, cells x dims).
    const REFERENCE: &str = "reference";
    /// The file of its cells' classes (uint32, cells).
    const CODES: &str = "labels";

    /// Notes say where `k` is more than there are cells, or than the smallest class has.
    pub(super) fn fit(points: &Points, classes: &Classes, k: usize) -> (Knn, Vec<String>) {
        let mut notes = Vec::new();
        let most = points.len();
        if k > most {
            notes.push(format!(
                "knn: {k} neighbours were asked for, the reference has {most} labelled cells: all vote"
            ));
        }
        let k = k.min(most);
        let smallest = classes.sizes().into_iter().zip(&classes.names).min();
        if let Some((size, name)) = smallest.filter(|(size, _)| k > *size && classes.len() > 1) {
            notes.push(format!(
                "knn: class {name:?} has fewer cells ({size}) than the {k} that vote, so it can hardly win; \
                 a smaller --knn-k helps"
            ));
        }
        let knn =
            Knn { k, classes: classes.len(), reference: unit_rows(points), codes: classes.codes.clone() };
        (knn, notes)
    }

    /// The second value says with what recall neighbours were found, where the search was approximate.
    pub(super) fn predict(&self, points: &Points, tick: Tick<'_>) -> (Prediction, Option<String>) {
        let neighbours = nearest_of(&self.reference, &unit_rows(points), self.k, tick);
        let mut probabilities = vec![0.0; points.len() * self.classes];
        for (cell, votes) in probabilities.chunks_exact_mut(self.classes).enumerate() {
            for &neighbour in neighbours.row(cell).0 {
                votes[self.codes[neighbour as usize] as usize] += 1.0;
            }
            votes.iter_mut().for_each(|votes| *votes /= neighbours.k as f64);
        }
        let note = neighbours.search.note().map(|note| format!("knn: {note}"));
        (Prediction::new(self.classes, probabilities), note)
    }

    /// Neighbours that vote: as asked for, but at most the cells there are.
    pub fn k(&self) -> usize {
        self.k
    }

    pub(super) fn arrays(&self) -> Vec<(&'static str, Array)> {
        let (cells, dims) = (self.reference.len(), self.reference.dims());
        let reference =
            Array { shape: vec![cells, dims], values: Values::Float32(self.reference.values().to_vec()) };
        let codes = Array { shape: vec![cells], values: Values::Unsigned(self.codes.clone()) };
        vec![(Self::REFERENCE, reference), (Self::CODES, codes)]
    }

    pub(super) fn from_arrays(arrays: &mut Arrays, classes: usize, dims: usize, k: usize) -> Result<Knn> {
        let cells = arrays.length(Self::CODES)?;
        let reference = Points::new(arrays.float32(Self::REFERENCE, &[cells, dims])?, dims);
        let codes = arrays.unsigned(Self::CODES, &[cells])?;
        if let Some(code) = codes.iter().find(|&&code| code as usize >= classes) {
            return Err(Error::input(format_args!(
                "labels.npy has the class {code}, of {classes} from 0 up"
            )));
        }
        if k == 0 || k > cells {
            return Err(Error::input(format_args!(
                "{k} neighbours cannot vote among {cells} reference cells"
            )));
        }
        Ok(Knn { k, classes, reference, codes })
    }
}
