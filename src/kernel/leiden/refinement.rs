//! Refinement: communities are rebuilt from single nodes, so that each part is well connected.

use fastrand::Rng;

use super::network::{Members, Network};
use super::partition::{Tally, renumber};

/// How far a merge may be from the best one: chances go with exp(gain / RANDOMNESS). igraph calls it beta.
const RANDOMNESS: f64 = 0.01;

/// Splits each of the `count` communities into well-connected parts, numbered by first node; returns labels and number.
pub(super) fn refine<W: Copy + Into<f64>>(
    network: Network<'_, W>,
    labels: &[u32],
    count: usize,
    penalty: f64,
    random: &mut Rng,
) -> (Vec<u32>, usize) {
    let nodes = network.len();
    let mut order: Vec<u32> = (0..nodes as u32).collect();
    random.shuffle(&mut order);
    let members = Members::in_order(labels, count, order.into_iter());
    let mut parts = Parts {
        of_node: (0..nodes as u32).collect(),
        strengths: network.strengths.to_vec(),
        outward: vec![0.0; nodes],
        alone: vec![true; nodes],
    };
    let (mut tally, mut choices) = (Tally::new(nodes), Vec::new());
    for community in 0..count {
        let own = members.of_group(community);
        if own.len() == 1 {
            continue;
        }
        let inside = |edge: &(usize, f64)| labels[edge.0] as usize == community;
        let mut whole = 0.0;
        for &node in own {
            let node = node as usize;
            whole += network.strengths[node];
            parts.outward[node] = network.edges(node).filter(inside).map(|(_, weight)| weight).sum();
        }
        for &node in own {
            let node = node as usize;
            if !parts.alone[node] || !parts.well_connected(node as u32, whole, penalty) {
                continue;
            }
            for (other, weight) in network.edges(node).filter(inside) {
                tally.add(parts.of_node[other], weight);
            }
            let target = parts.choose(node, whole, penalty, &tally, &mut choices, random);
            if target != node as u32 {
                parts.merge(node, target, tally.get(target));
            }
            tally.clear();
        }
    }
    let mut refined = parts.of_node;
    let count = renumber(&mut refined);
    (refined, count)
}

/// Parts of communities; each has the number of the node that it began with.
struct Parts {
    of_node: Vec<u32>,
    strengths: Vec<f64>,
    /// Weight from a part to the rest of its community.
    outward: Vec<f64>,
    /// Whether the part that began with a node is still that node alone.
    alone: Vec<bool>,
}

impl Parts {
    /// Whether a part is tied to the rest of its community (of strength `whole`) more than by chance.
    #[inline(always)]
    fn well_connected(&self, part: u32, whole: f64, penalty: f64) -> bool {
        let strength = self.strengths[part as usize];
        self.outward[part as usize] >= penalty * strength * (whole - strength)
    }

    /// Draws a part for a lone node among those where it loses nothing, itself included.
    #[inline(always)]
    fn choose(
        &self,
        node: usize,
        whole: f64,
        penalty: f64,
        tally: &Tally,
        choices: &mut Vec<(u32, f64)>,
        random: &mut Rng,
    ) -> u32 {
        let share = penalty * self.strengths[node];
        choices.clear();
        choices.push((node as u32, 0.0));
        let mut most = 0.0f64;
        for &part in tally.touched() {
            let gain = tally.get(part) - share * self.strengths[part as usize];
            if gain >= 0.0 && self.well_connected(part, whole, penalty) {
                most = most.max(gain);
                choices.push((part, gain));
            }
        }
        let mut total = 0.0;
        for (_, gain) in choices.iter_mut() {
            total += ((*gain - most) / RANDOMNESS).exp();
            *gain = total;
        }
        let drawn = random.f64() * total;
        choices.iter().find(|&&(_, up_to)| drawn < up_to).map_or(node as u32, |&(part, _)| part)
    }

    fn merge(&mut self, node: usize, target: u32, between: f64) {
        let into = target as usize;
        self.of_node[node] = target;
        self.alone[into] = false;
        self.strengths[into] += self.strengths[node];
        self.outward[into] += self.outward[node] - 2.0 * between;
    }
}
