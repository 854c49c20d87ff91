//! Seeded samples of cells.

/// Distinct numbers below `cells`, ascending: `count` of them, or all.
pub(crate) fn distinct(cells: usize, count: usize, seed: u64) -> Vec<u32> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut left = count.min(cells);
    let mut drawn = Vec::with_capacity(left);
    for cell in 0..cells {
        if random.usize(..cells - cell) < left {
            drawn.push(cell as u32);
            left -= 1;
        }
    }
    drawn
}

/// Keeps `count` of `members`, each as likely, in a random order; all if there are no more.
pub(crate) fn keep<T>(members: &mut Vec<T>, count: usize, random: &mut fastrand::Rng) {
    // The first places of a shuffle.
    for place in 0..count.min(members.len()) {
        let other = random.usize(place..members.len());
        members.swap(place, other);
    }
    members.truncate(count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_evenly_and_never_twice() {
        let mut hits = [0; 20];
        for seed in 0..2000 {
            let drawn = distinct(20, 5, seed);
            assert!(drawn.len() == 5 && drawn.windows(2).all(|pair| pair[0] < pair[1]));
            drawn.iter().for_each(|&cell| hits[cell as usize] += 1);
        }
        assert!(hits.iter().all(|&hits| (400..600).contains(&hits)), "{hits:?}");
        assert_eq!(distinct(3, 9, 1), [0, 1, 2]);
    }
}
