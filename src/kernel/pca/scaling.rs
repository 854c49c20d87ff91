//! From a row of counts to a row of scaled values, as sparse as it came.

use super::Params;
use super::normalize::{Depth, Logs};
use super::statistics::Statistics;

/// Column that is not kept.
const DROPPED: u32 = u32::MAX;

/// Standardises the kept genes of a cell: `(log1p(count / depth) - mean) / sd`, clipped.
///
/// Kept genes are numbered 0, 1, … in column order: a number is a *slot*.
pub(super) struct Scaling {
    /// Column of each slot, ascending.
    pub genes: Vec<u32>,
    pub mean: Vec<f64>,
    pub sd: Vec<f64>,
    /// What a zero count becomes in each slot.
    pub zero: Vec<f64>,
    pub target_sum: f64,
    pub max_value: Option<f64>,
    /// Slot of each column, or [`DROPPED`].
    slots: Vec<u32>,
}

impl Scaling {
    /// A gene that is constant is divided by 1, as in scanpy's `pp.scale`. Without `params.scale` all are.
    pub fn new(statistics: &Statistics, genes: Vec<u32>, params: &Params) -> Self {
        let kept = || genes.iter().map(|&gene| &statistics.genes[gene as usize]);
        let mean = kept().map(|gene| gene.log_mean).collect();
        let deviation = |variance: f64| if params.scale && variance > 0.0 { variance.sqrt() } else { 1.0 };
        let sd = kept().map(|gene| deviation(gene.log_variance)).collect();
        let max_value = params.max_value.filter(|_| params.scale);
        Scaling::from_parts(statistics.genes.len(), genes, mean, sd, params.target_sum, max_value)
    }

    /// The scaling of kept `genes` out of `columns`.
    pub fn from_parts(
        columns: usize,
        genes: Vec<u32>,
        mean: Vec<f64>,
        sd: Vec<f64>,
        target_sum: f64,
        max_value: Option<f64>,
    ) -> Self {
        let mut slots = vec![DROPPED; columns];
        for (slot, &gene) in (0u32..).zip(&genes) {
            slots[gene as usize] = slot;
        }
        let mut scaling = Scaling { genes, mean, sd, zero: Vec::new(), target_sum, max_value, slots };
        scaling.zero = (0..scaling.genes.len()).map(|slot| scaling.value(slot, 0.0)).collect();
        scaling
    }

    /// The scaled value of a logged count.
    fn value(&self, slot: usize, log: f64) -> f64 {
        let value = (log - self.mean[slot]) / self.sd[slot];
        self.max_value.map_or(value, |most| value.clamp(-most, most))
    }

    /// Calls `visit` with slot and scaled value of every stored count of a row that is kept, in column order.
    ///
    /// The slots it does not name hold [`Scaling::zero`].
    pub fn visit_row(&self, (columns, counts): (&[u32], &[f64]), mut visit: impl FnMut(usize, f64)) {
        let mut logs = Logs::new(Depth::of(counts, self.target_sum));
        for (&column, &count) in columns.iter().zip(counts) {
            let slot = self.slots[column as usize];
            if slot != DROPPED {
                visit(slot as usize, self.value(slot as usize, logs.of(count)));
            }
        }
    }
}
