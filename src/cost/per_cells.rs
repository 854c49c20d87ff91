//! Costs per 1,000 cells: what makes runs on different data comparable.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{TaskCost, Totals};
use crate::trace::Status;

const MILLISECONDS_PER_HOUR: f64 = 3_600_000.0;

/// What 1,000 cells cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PerThousand {
    /// Time at work.
    pub seconds: Option<f64>,
    pub cpu_hours: Option<f64>,
    pub gpu_hours: Option<f64>,
}

impl PerThousand {
    /// `None` where the cells are not known or none.
    fn of(
        cells: Option<u64>,
        wall_ms: Option<u64>,
        cpu_ms: Option<u64>,
        gpu_hours: Option<f64>,
    ) -> Option<Self> {
        let thousands = cells.filter(|&cells| cells > 0)? as f64 / 1000.0;
        Some(PerThousand {
            seconds: wall_ms.map(|ms| ms as f64 / 1000.0 / thousands),
            cpu_hours: cpu_ms.map(|ms| ms as f64 / MILLISECONDS_PER_HOUR / thousands),
            gpu_hours: gpu_hours.map(|hours| hours / thousands),
        })
    }

    /// Of a task that computed; a cached one cost nothing and a failed one did nobody's cells.
    pub(super) fn of_task(task: &TaskCost) -> Option<PerThousand> {
        let gpu_hours = match (task.gpus, task.wall_ms) {
            (Some(gpus), Some(wall)) if gpus > 0 => {
                Some(f64::from(gpus) * wall as f64 / MILLISECONDS_PER_HOUR)
            }
            _ => None,
        };
        let cells = task.cells.filter(|_| task.status == Status::Completed);
        PerThousand::of(cells, task.wall_ms, task.cpu_time_ms, gpu_hours)
    }

    /// Of a run: all that it did, failed attempts too, over the cells that it got done.
    pub(super) fn of_run(totals: &Totals) -> Option<PerThousand> {
        PerThousand::of(totals.cells, totals.run_time_ms, totals.cpu_time_ms, totals.gpu_hours)
    }
}

/// The cells that a run got done: of its processes, which see the same cells one after the other, the one with most.
pub(super) fn cells(tasks: &[TaskCost]) -> Option<u64> {
    let mut by_process: HashMap<&str, u64> = HashMap::new();
    for task in tasks.iter().filter(|task| task.status == Status::Completed) {
        if let Some(cells) = task.cells {
            let sum = by_process.entry(task.process_name()).or_default();
            *sum = sum.saturating_add(cells);
        }
    }
    by_process.into_values().max()
}
