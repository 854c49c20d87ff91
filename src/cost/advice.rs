//! What was asked for against what was used, as settings to paste into `nextflow.config`.

use std::collections::BTreeMap;

use super::{CostSummary, TaskCost};
use crate::render::groovy::{Script, Value};
use crate::trace::Status;
use crate::trace::units::{format_bytes, format_duration};

const GIB: u64 = 1 << 30;
const HOUR_MS: u64 = 3_600_000;
const TEN_MINUTES_MS: u64 = HOUR_MS / 6;

/// What the tasks of one process asked for and used at most.
#[derive(Debug, Default)]
struct Use {
    memory: Pair,
    time_ms: Pair,
    cpus: Pair,
}

#[derive(Debug, Default)]
struct Pair {
    asked: Option<u64>,
    used: Option<u64>,
}

impl Pair {
    fn add(&mut self, asked: Option<u64>, used: Option<u64>) {
        self.asked = self.asked.max(asked);
        self.used = self.used.max(used);
    }

    /// A request with `percent` of headroom, in whole `step`s, if what was asked for is twice as much or too near the peak.
    fn better(&self, percent: u64, step: u64) -> Option<(u64, u64, u64)> {
        let (asked, used) = (self.asked?, self.used.filter(|&used| used > 0)?);
        let wanted = used.saturating_add(used / 100 * percent).div_ceil(step).saturating_mul(step);
        let (wasteful, tight) = (asked / 2 >= wanted, asked < used.saturating_add(used / 20));
        (wasteful || tight && wanted > asked).then_some((wanted, asked, used))
    }
}

/// A `process` block of Nextflow's configuration that fits what the completed tasks used better than what they asked for; `None`
/// where nothing differs by much.
///
/// Memory gets 25 % of headroom in whole GB, time 100 %, CPUs are rounded up.
pub fn advice(summary: &CostSummary) -> Option<String> {
    let mut uses: BTreeMap<&str, Use> = BTreeMap::new();
    for task in summary.tasks.iter().filter(|task| task.status == Status::Completed) {
        let found = uses.entry(task.process_name()).or_default();
        found.memory.add(task.memory_bytes, task.peak_rss_bytes);
        found.time_ms.add(task.time_limit_ms, task.wall_ms);
        found.cpus.add(task.cpus.map(u64::from), busy_cores(task));
    }
    let mut script = Script::default();
    let mut any = false;
    script.scope("process", |process| {
        for (name, found) in &uses {
            let settings = settings(found);
            if !settings.is_empty() {
                any = true;
                process.scope(&format!("withName: {}", Value::from(*name)), |scope| {
                    for (setting, value, reason) in settings {
                        scope.comment(&reason);
                        scope.set(setting, value);
                    }
                });
            }
        }
    });
    any.then(|| script.finish().trim_end().to_owned())
}

fn settings(found: &Use) -> Vec<(&'static str, Value, String)> {
    let mut settings = Vec::new();
    if let Some((wanted, asked, used)) = found.memory.better(25, GIB) {
        let reason = format!("asked for {}, used {}", format_bytes(asked), format_bytes(used));
        settings.push(("memory", Value::from(format!("{} GB", wanted / GIB)), reason));
    }
    if let Some((wanted, asked, used)) = found.cpus.better(0, 1) {
        settings.push(("cpus", Value::Int(wanted as i64), format!("asked for {asked}, kept {used} busy")));
    }
    let step = if found.time_ms.used.unwrap_or(0) < HOUR_MS { TEN_MINUTES_MS } else { HOUR_MS };
    if let Some((wanted, asked, used)) = found.time_ms.better(100, step) {
        let reason = format!("asked for {}, took {}", format_duration(asked), format_duration(used));
        settings.push(("time", Value::from(format!("{} min", wanted / 60_000)), reason));
    }
    settings
}

/// Cores that the task kept busy on average, rounded up.
fn busy_cores(task: &TaskCost) -> Option<u64> {
    task.cpu_percent.map(|percent| (percent / 100.0).ceil().max(1.0) as u64)
}
