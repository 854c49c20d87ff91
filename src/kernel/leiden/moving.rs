//! Local moving: nodes join the neighbouring community that gains most, until none can gain.

use std::collections::VecDeque;

use fastrand::Rng;

use super::network::Network;
use super::partition::{Tally, renumber};

/// The least gain that moves a node, as a share of its strength: above the rounding of sums.
const LEAST_GAIN: f64 = 1e-12;

/// Improves `labels` (numbers below the number of nodes) and renumbers them; returns the number of communities.
///
/// `penalty` is resolution / total strength: a node of strength `k` in a community of strength `K` gains
/// `weight to it - penalty k K`.
pub(super) fn move_nodes<W: Copy + Into<f64>>(
    network: Network<'_, W>,
    labels: &mut [u32],
    penalty: f64,
    random: &mut Rng,
) -> usize {
    let nodes = network.len();
    let mut communities = Communities::of(network.strengths, labels);
    let mut tally = Tally::new(nodes);
    let mut order: Vec<u32> = (0..nodes as u32).collect();
    random.shuffle(&mut order);
    let mut queue = VecDeque::from(order);
    let mut waits = vec![true; nodes];
    while let Some(node) = queue.pop_front() {
        let node = node as usize;
        waits[node] = false;
        for (other, weight) in network.edges(node) {
            tally.add(labels[other], weight);
        }
        let (own, strength) = (labels[node], network.strengths[node]);
        let target = communities.best(own, strength, penalty, &tally);
        tally.clear();
        if target == own {
            continue;
        }
        communities.shift(strength, own, target);
        labels[node] = target;
        for (other, _) in network.edges(node) {
            if !waits[other] && labels[other] != target {
                waits[other] = true;
                queue.push_back(other as u32);
            }
        }
    }
    renumber(labels)
}

/// Strengths and sizes of communities, and numbers that are free.
struct Communities {
    strengths: Vec<f64>,
    sizes: Vec<u32>,
    free: Vec<u32>,
}

impl Communities {
    fn of(node_strengths: &[f64], labels: &[u32]) -> Communities {
        let (mut strengths, mut sizes) = (vec![0.0; labels.len()], vec![0; labels.len()]);
        for (&label, strength) in labels.iter().zip(node_strengths) {
            strengths[label as usize] += strength;
            sizes[label as usize] += 1;
        }
        let free = (0..labels.len() as u32).rev().filter(|&label| sizes[label as usize] == 0).collect();
        Communities { strengths, sizes, free }
    }

    /// Where a node of `own` gains most: there, in a neighbouring community, or alone.
    #[inline(always)]
    fn best(&self, own: u32, strength: f64, penalty: f64, tally: &Tally) -> u32 {
        let share = penalty * strength;
        let stay = tally.get(own) - share * (self.strengths[own as usize] - strength);
        let (mut best, mut most) = (own, stay + LEAST_GAIN * strength);
        for &community in tally.touched() {
            let gain = tally.get(community) - share * self.strengths[community as usize];
            if gain > most && community != own {
                (best, most) = (community, gain);
            }
        }
        match self.free.last() {
            Some(&alone) if most < 0.0 && self.sizes[own as usize] > 1 => alone,
            _ => best,
        }
    }

    fn shift(&mut self, strength: f64, from: u32, to: u32) {
        if self.sizes[to as usize] == 0 {
            self.free.pop();
            self.strengths[to as usize] = 0.0;
        }
        self.strengths[from as usize] -= strength;
        self.sizes[from as usize] -= 1;
        self.strengths[to as usize] += strength;
        self.sizes[to as usize] += 1;
        if self.sizes[from as usize] == 0 {
            self.free.push(from);
        }
    }
}
