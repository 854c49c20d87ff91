//! What a classifier says of the query's cells.

/// A probability for every cell and class.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    classes: usize,
    /// Row-major cells x classes; every row adds up to 1.
    probabilities: Vec<f64>,
}

impl Prediction {
    pub(super) fn new(classes: usize, probabilities: Vec<f64>) -> Prediction {
        Prediction { classes, probabilities }
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.probabilities.len().checked_div(self.classes).unwrap_or(0)
    }

    /// Whether there is no cell.
    pub fn is_empty(&self) -> bool {
        self.probabilities.is_empty()
    }

    /// The probabilities of one cell, class by class.
    pub fn row(&self, cell: usize) -> &[f64] {
        &self.probabilities[cell * self.classes..(cell + 1) * self.classes]
    }

    /// The most probable class of every cell; of equals the first.
    pub fn labels(&self) -> Vec<u32> {
        let most = |row: &[f64]| {
            let mut best = 0;
            for (class, &probability) in row.iter().enumerate() {
                if probability > row[best] {
                    best = class;
                }
            }
            best as u32
        };
        self.probabilities.chunks_exact(self.classes.max(1)).map(most).collect()
    }
}
