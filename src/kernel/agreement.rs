//! How far two partitions of the same cells agree.

/// How many cells each pair of classes shares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contingency {
    /// Cells in each true class; a code that no cell has is 0.
    pub truth: Vec<u64>,
    /// Cells in each predicted class.
    pub predicted: Vec<u64>,
    /// The pairs of a true and a predicted class that share cells, in order, with their number.
    pub shared: Vec<(u32, u32, u64)>,
}

/// Counts shared cells in time and memory of cells + classes.
///
/// `truth` and `predicted` hold codes of the same cells, in the same order, counted from 0 without large gaps.
pub fn contingency(truth: &[u32], predicted: &[u32]) -> Contingency {
    let (rows, columns) = (sizes(truth), sizes(predicted));
    let mut next: Vec<usize> =
        rows.iter().scan(0, |start, &size| Some(std::mem::replace(start, *start + size as usize))).collect();
    let mut by_truth = vec![0u32; truth.len()];
    for (&row, &column) in truth.iter().zip(predicted) {
        by_truth[next[row as usize]] = column;
        next[row as usize] += 1;
    }
    let mut shared = Vec::new();
    let (mut counts, mut touched, mut rest) = (vec![0u64; columns.len()], Vec::new(), by_truth.as_slice());
    for (row, &size) in rows.iter().enumerate() {
        let (own, others) = rest.split_at(size as usize);
        rest = others;
        for &column in own {
            if counts[column as usize] == 0 {
                touched.push(column);
            }
            counts[column as usize] += 1;
        }
        touched.sort_unstable();
        let pairs = touched.drain(..).map(|column| {
            let count = std::mem::take(&mut counts[column as usize]);
            (row as u32, column, count)
        });
        shared.extend(pairs);
    }
    Contingency { truth: rows, predicted: columns, shared }
}

fn sizes(codes: &[u32]) -> Vec<u64> {
    let mut sizes = vec![0; codes.iter().max().map_or(0, |&last| last as usize + 1)];
    for &code in codes {
        sizes[code as usize] += 1;
    }
    sizes
}

/// Agreement of true and predicted classes, as scikit-learn 1.9.1 defines it, edge cases included.
///
/// Higher is better throughout, 1 for equal partitions whatever their names. Logarithms are natural, pairs of cells
/// are counted in whole numbers. Never NaN: two partitions without structure agree by definition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Agreement {
    /// Normalised mutual information, 0 to 1: the information over the arithmetic mean of both entropies
    /// (`normalized_mutual_info_score`). 1 when both have one class, 0 when one has.
    pub nmi: f64,
    /// Homogeneity, 0 to 1: 1 when every predicted class lies in one true class (`homogeneity_score`). 1 when there is
    /// one true class.
    pub homogeneity: f64,
    /// Completeness, 0 to 1: 1 when every true class lies in one predicted class (`completeness_score`). 1 when there
    /// is one predicted class.
    pub completeness: f64,
    /// Fowlkes-Mallows index, 0 to 1: geometric mean of precision and recall over pairs of cells
    /// (`fowlkes_mallows_score`). 0 when no two cells are together in both, so for singletons too.
    pub fowlkes_mallows: f64,
    /// Adjusted Rand index, -0.5 to 1, 0 expected by chance (`adjusted_rand_score`).
    pub adjusted_rand: f64,
}

impl Agreement {
    /// Compares two partitions of the same cells, as [`contingency`] takes them.
    pub fn of(truth: &[u32], predicted: &[u32]) -> Agreement {
        Agreement::from(&contingency(truth, predicted))
    }
}

impl From<&Contingency> for Agreement {
    fn from(table: &Contingency) -> Agreement {
        let information = table.information();
        let (truth, predicted) = (entropy(&table.truth), entropy(&table.predicted));
        let (truths, predictions) = (classes(&table.truth), classes(&table.predicted));
        // What holds exactly is exactly 1, whatever the logarithms round to.
        let (homogeneous, complete) = (table.shared.len() == predictions, table.shared.len() == truths);
        let share = |whole: bool, of: f64| if whole || of == 0.0 { 1.0 } else { (information / of).min(1.0) };
        let nmi = match information == 0.0 && (truths > 1 || predictions > 1) {
            true => 0.0,
            false => share(homogeneous && complete, f64::midpoint(truth, predicted)),
        };
        let pairs = table.pairs();
        Agreement {
            nmi,
            homogeneity: share(homogeneous, truth),
            completeness: share(complete, predicted),
            fowlkes_mallows: pairs.fowlkes_mallows(),
            adjusted_rand: pairs.adjusted_rand(),
        }
    }
}

impl Contingency {
    /// Mutual information in nats, never below 0.
    fn information(&self) -> f64 {
        if classes(&self.truth) <= 1 || classes(&self.predicted) <= 1 {
            return 0.0;
        }
        let cells = total(&self.truth) as f64;
        let terms = self.shared.iter().map(|&(row, column, count)| {
            let product = u128::from(self.truth[row as usize]) * u128::from(self.predicted[column as usize]);
            let count = count as f64;
            let term = count / cells * (count.ln() + cells.ln() - (product as f64).ln());
            if term.abs() < f64::EPSILON { 0.0 } else { term }
        });
        terms.sum::<f64>().max(0.0)
    }

    /// Ordered pairs of different cells by whether they are together.
    fn pairs(&self) -> Pairs {
        let cells = i128::from(total(&self.truth));
        let both = self.shared.iter().map(|&(_, _, count)| square(count)).sum::<i128>();
        Pairs {
            both: both - cells,
            truth: self.truth.iter().map(|&size| square(size)).sum::<i128>() - both,
            predicted: self.predicted.iter().map(|&size| square(size)).sum::<i128>() - both,
            all: cells * (cells - 1),
        }
    }
}

/// Numbers of ordered pairs of cells.
struct Pairs {
    /// Together in both partitions.
    both: i128,
    /// Together in the true one only.
    truth: i128,
    /// Together in the predicted one only.
    predicted: i128,
    all: i128,
}

impl Pairs {
    fn fowlkes_mallows(&self) -> f64 {
        if self.both == 0 {
            return 0.0;
        }
        let both = self.both as f64;
        let (recall, precision) =
            (both / (self.both + self.truth) as f64, both / (self.both + self.predicted) as f64);
        precision.sqrt() * recall.sqrt()
    }

    fn adjusted_rand(&self) -> f64 {
        let Pairs { both, truth, predicted, all } = *self;
        if truth == 0 && predicted == 0 {
            return 1.0;
        }
        let neither = all - both - truth - predicted;
        let gain = both * neither - truth * predicted;
        let range = (both + truth) * (truth + neither) + (both + predicted) * (predicted + neither);
        2.0 * gain as f64 / range as f64
    }
}

fn total(sizes: &[u64]) -> u64 {
    sizes.iter().sum()
}

fn classes(sizes: &[u64]) -> usize {
    sizes.iter().filter(|&&size| size > 0).count()
}

fn square(count: u64) -> i128 {
    i128::from(count) * i128::from(count)
}

fn entropy(sizes: &[u64]) -> f64 {
    if classes(sizes) <= 1 {
        return 0.0;
    }
    let cells = total(sizes) as f64;
    let present = sizes.iter().filter(|&&size| size > 0).map(|&size| size as f64);
    -present.map(|size| size / cells * (size.ln() - cells.ln())).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(truth: &[u32], predicted: &[u32]) -> [f64; 5] {
        let Agreement { nmi, homogeneity, completeness, fowlkes_mallows, adjusted_rand } =
            Agreement::of(truth, predicted);
        [nmi, homogeneity, completeness, fowlkes_mallows, adjusted_rand]
    }

    fn assert_close(ours: [f64; 5], expected: [f64; 5]) {
        for (a, b) in ours.iter().zip(expected) {
            assert!((a - b).abs() < 1e-12, "{ours:?} {expected:?}");
        }
    }

    #[test]
    fn contingency_counts_shared_cells() {
        let table = contingency(&[0, 0, 1, 3, 3, 0], &[2, 2, 0, 0, 2, 0]);
        assert_eq!(table.truth, [3, 1, 0, 2]);
        assert_eq!(table.predicted, [3, 0, 3]);
        assert_eq!(table.shared, [(0, 0, 1), (0, 2, 2), (1, 0, 1), (3, 0, 1), (3, 2, 1)]);
    }

    #[test]
    fn values_of_scikit_learn() {
        // scikit-learn 1.9.1.
        assert_close(
            values(&[0, 0, 1, 1, 2, 2], &[0, 0, 1, 2, 2, 2]),
            [
                0.7396673768007593,
                0.7103099178571526,
                0.7715561736794712,
                0.5773502691896257,
                0.4444444444444444,
            ],
        );
        assert_close(values(&[0, 0, 1, 1], &[0, 1, 0, 1]), [0.0, 0.0, 0.0, 0.0, -0.5]);
    }

    #[test]
    fn partitions_without_structure() {
        assert_eq!(values(&[], &[]), [1.0, 1.0, 1.0, 0.0, 1.0]);
        assert_eq!(values(&[0], &[0]), [1.0, 1.0, 1.0, 0.0, 1.0]);
        assert_eq!(values(&[0, 0, 0], &[0, 0, 0]), [1.0; 5]);
        assert_eq!(values(&[0, 0, 0], &[0, 1, 2]), [0.0, 1.0, 0.0, 0.0, 0.0]);
        assert_eq!(values(&[0, 1, 2], &[5, 5, 5]), [0.0, 0.0, 1.0, 0.0, 0.0]);
        assert_close(values(&[0, 1, 2], &[2, 0, 1]), [1.0, 1.0, 1.0, 0.0, 1.0]);
    }

    #[test]
    fn a_million_cells_do_not_overflow() {
        let truth: Vec<u32> = (0..1_000_000).map(|cell| cell % 2).collect();
        let predicted: Vec<u32> = (0..1_000_000).map(|cell| cell / 500_000).collect();
        assert_close(values(&truth, &truth), [1.0; 5]);
        let half = values(&truth, &predicted);
        assert_close([half[0], half[1], half[2], 0.0, half[4]], [0.0, 0.0, 0.0, 0.0, -1.0 / 999_998.0]);
    }
}
