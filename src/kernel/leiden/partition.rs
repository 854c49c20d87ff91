//! Sums by community, and the numbering of communities.

/// Weights summed by community, cleared in the time of those touched.
pub(super) struct Tally {
    sums: Vec<f64>,
    seen: Vec<bool>,
    touched: Vec<u32>,
}

impl Tally {
    pub fn new(communities: usize) -> Tally {
        Tally { sums: vec![0.0; communities], seen: vec![false; communities], touched: Vec::new() }
    }

    #[inline(always)]
    pub fn add(&mut self, community: u32, weight: f64) {
        let place = community as usize;
        if !self.seen[place] {
            self.seen[place] = true;
            self.touched.push(community);
        }
        self.sums[place] += weight;
    }

    #[inline(always)]
    pub fn get(&self, community: u32) -> f64 {
        self.sums[community as usize]
    }

    /// Communities in the order in which they were first added to.
    pub fn touched(&self) -> &[u32] {
        &self.touched
    }

    pub fn clear(&mut self) {
        for community in self.touched.drain(..) {
            self.sums[community as usize] = 0.0;
            self.seen[community as usize] = false;
        }
    }
}

/// Renumbers communities from 0 in the order of their first node; returns how many there are.
pub(super) fn renumber(labels: &mut [u32]) -> usize {
    let mut numbers = vec![u32::MAX; labels.iter().max().map_or(0, |&last| last as usize + 1)];
    let mut count = 0;
    for label in labels {
        let number = &mut numbers[*label as usize];
        if *number == u32::MAX {
            *number = count;
            count += 1;
        }
        *label = *number;
    }
    count as usize
}

/// Numbers communities by size, largest first; equal ones by their first node.
pub(super) fn number_by_size(labels: &mut [u32]) {
    let count = renumber(labels);
    let mut sizes = vec![0usize; count];
    for &label in labels.iter() {
        sizes[label as usize] += 1;
    }
    let mut order: Vec<u32> = (0..count as u32).collect();
    order.sort_by_key(|&community| std::cmp::Reverse(sizes[community as usize]));
    let mut rank = vec![0; count];
    for (place, &community) in order.iter().enumerate() {
        rank[community as usize] = place as u32;
    }
    for label in labels {
        *label = rank[*label as usize];
    }
}
