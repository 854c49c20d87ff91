//! Which cells make a sample.

use crate::h5ad::Labels;
use crate::kernel::sample;

/// `count` of the rows 0..`cells`, or all, ascending; the same for the same `seed`.
///
/// With labels each class gives a share of its size, rounded so that the sum is right, but one at least while there is
/// room for all; without room the largest classes give one each. Cells without a label are a class of their own.
pub(super) fn rows(labels: Option<&Labels>, cells: usize, count: usize, seed: u64) -> Vec<usize> {
    let Some(labels) = labels else {
        return sample::distinct(cells, count, seed).into_iter().map(|row| row as usize).collect();
    };
    let mut members = vec![Vec::new(); labels.classes.len() + 1];
    for (row, code) in labels.codes.iter().enumerate() {
        members[code.map_or(labels.classes.len(), |code| code as usize)].push(row);
    }
    members.retain(|rows| !rows.is_empty());
    let sizes: Vec<usize> = members.iter().map(Vec::len).collect();
    let mut random = fastrand::Rng::with_seed(seed);
    for (rows, share) in members.iter_mut().zip(shares(&sizes, count.min(cells))) {
        sample::keep(rows, share, &mut random);
    }
    let mut chosen = members.concat();
    chosen.sort_unstable();
    chosen
}

/// How many each class gives; none of them is empty, and all together have `count` at least.
fn shares(sizes: &[usize], count: usize) -> Vec<usize> {
    let by = |key: &dyn Fn(usize) -> u128| {
        let mut classes: Vec<usize> = (0..sizes.len()).collect();
        classes.sort_by_key(|&class| std::cmp::Reverse(key(class)));
        classes
    };
    let Some(left) = count.checked_sub(sizes.len()) else {
        let mut shares = vec![0; sizes.len()];
        by(&|class| sizes[class] as u128).iter().take(count).for_each(|&class| shares[class] = 1);
        return shares;
    };
    // Each gives one; what is left is shared out by what they have left.
    let total = sizes.iter().map(|size| size - 1).sum::<usize>().max(1) as u128;
    let exact = |class: usize| (sizes[class] - 1) as u128 * left as u128;
    let mut shares: Vec<usize> = (0..sizes.len()).map(|class| 1 + (exact(class) / total) as usize).collect();
    let short = count - shares.iter().sum::<usize>();
    by(&|class| exact(class) % total).iter().take(short).for_each(|&class| shares[class] += 1);
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(sizes: &[usize], missing: usize) -> Labels {
        let classes = (0..sizes.len()).map(|class| format!("class {class}")).collect();
        let codes = sizes.iter().enumerate().flat_map(|(class, &size)| vec![Some(class as u32); size]);
        Labels { classes, codes: codes.chain(vec![None; missing]).collect() }
    }

    fn counts(labels: &Labels, rows: &[usize]) -> Vec<usize> {
        let mut counts = vec![0; labels.classes.len() + 1];
        for &row in rows {
            counts[labels.codes[row].map_or(labels.classes.len(), |code| code as usize)] += 1;
        }
        counts
    }

    #[test]
    fn every_class_is_there_and_the_rest_is_in_proportion() {
        let labels = labels(&[600, 300, 95, 4, 1], 0);
        let rows = rows(Some(&labels), 1000, 100, 7);
        assert!(rows.len() == 100 && rows.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(counts(&labels, &rows), [58, 30, 10, 1, 1, 0]);
    }

    #[test]
    fn without_room_the_largest_classes_are_there() {
        let labels = labels(&[2, 9, 1, 5], 3);
        assert_eq!(counts(&labels, &rows(Some(&labels), 20, 3, 1)), [0, 1, 0, 1, 1]);
        assert_eq!(counts(&labels, &rows(Some(&labels), 20, 5, 1)), [1, 1, 1, 1, 1]);
    }

    #[test]
    fn any_number_of_cells_is_met_and_no_cell_is_drawn_twice() {
        let labels = labels(&[17, 1, 1, 40, 8], 5);
        for count in 0..=80 {
            let drawn = rows(Some(&labels), 72, count, 3);
            assert_eq!(drawn.len(), count.min(72));
            assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]) && drawn.iter().all(|&row| row < 72));
        }
        assert_eq!(rows(None, 10, 20, 3).len(), 10);
    }

    #[test]
    fn the_seed_decides() {
        let labels = labels(&[500, 500], 0);
        for labels in [None, Some(&labels)] {
            let draw = |seed| rows(labels, 1000, 50, seed);
            assert_eq!(draw(1), draw(1));
            assert_ne!(draw(1), draw(2));
        }
    }
}
