//! The cost that a run wrote down when it ended, `cost.json`: it outlives the work directories it was measured from.

use std::path::Path;

use serde_json::Value;

use super::totals::{price, unpriced};
use super::{CostSummary, Rates, SCHEMA, TaskCost};
use crate::trace::{TaskRecord, Trace};

/// Reads a `cost.json`. `None`: there is none, or another version of the program wrote other fields.
pub fn recorded(path: &Path) -> Option<CostSummary> {
    let written: Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    let summary = CostSummary::deserialize_whole(&written)?;
    (summary.schema == SCHEMA).then_some(summary)
}

impl CostSummary {
    /// The summary, if writing it again gives all that was read and nothing else.
    fn deserialize_whole(written: &Value) -> Option<CostSummary> {
        let summary: CostSummary = serde_json::from_value(written.clone()).ok()?;
        (serde_json::to_value(&summary).ok()? == *written).then_some(summary)
    }

    /// Whether this is the cost of just these tasks. It is not where the engine was run again by hand.
    pub fn is_of(&self, trace: &Trace) -> bool {
        let same = |(cost, task): (&TaskCost, &TaskRecord)| {
            (&cost.task_id, &cost.hash, &cost.status) == (&task.task_id, &task.hash, &task.status)
                && cost.wall_ms == task.wall_ms()
        };
        self.tasks.len() == trace.tasks.len() && self.tasks.iter().zip(&trace.tasks).all(same)
    }

    /// Reckons money and energy anew, at other rates or at none.
    pub fn price_at(&mut self, rates: Option<&Rates>) {
        let old_note = unpriced(&self.tasks);
        self.notes.retain(|note| Some(note) != old_note.as_ref());
        self.totals.price =
            rates.and_then(|rates| price(rates, &self.tasks, self.totals.gpu_hours, &mut self.notes));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;
    use crate::cost::{SummaryOptions, summarise};
    use crate::trace;

    const ROWS: &str = "task_id\thash\tname\tstatus\trealtime\tcpus\t%cpu\n\
        1\tab/123456\tEMBED (a)\tCOMPLETED\t1h\t2\t33.3%\n2\tab/123457\tEMBED (b)\tCOMPLETED\t1h\t-\t-\n";

    fn rates(cpu_hour: f64) -> Rates {
        Rates { cpu_hour: Some(cpu_hour), ..Rates::default() }
    }

    fn trace(rows: &str) -> Trace {
        trace::parse(Path::new("trace.txt"), rows.as_bytes()).unwrap()
    }

    /// The cost of two tasks, as a run writes it down.
    fn written(folder: &Path) -> (PathBuf, CostSummary) {
        let options = SummaryOptions { rates: Some(rates(1.0)), ..SummaryOptions::default() };
        let mut summary = summarise(&trace(ROWS), &options);
        summary.tasks[0].device = Some("NVIDIA T4".to_owned());
        let path = folder.join("cost.json");
        fs::write(&path, serde_json::to_string_pretty(&summary).unwrap()).unwrap();
        (path, summary)
    }

    #[test]
    fn what_was_written_is_read_and_priced_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (path, summary) = written(folder.path());
        let mut read = recorded(&path).unwrap();
        assert_eq!(read, summary);
        assert!(read.is_of(&trace(ROWS)));
        assert!(!read.is_of(&trace(&ROWS.replace("ab/123457", "ab/123458"))));
        assert!(!read.is_of(&trace(ROWS.split_inclusive('\n').take(2).collect::<String>().as_str())));
        let money = |summary: &CostSummary| summary.totals.price.as_ref().and_then(|price| price.money);
        assert_eq!(money(&read), Some(2.0));
        read.price_at(Some(&rates(3.0)));
        assert_eq!((money(&read), &read.notes), (Some(6.0), &summary.notes));
        read.price_at(None);
        assert_eq!((&read.totals.price, read.notes.len()), (&None, summary.notes.len() - 1));
    }

    #[test]
    fn other_fields_are_of_another_version() {
        let folder = tempfile::tempdir().unwrap();
        let (path, _) = written(folder.path());
        let whole: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let changes: [fn(&mut Value); 5] = [
            |cost| cost["later"] = json!(1),
            |cost| cost["schema"] = json!(2),
            |cost| drop(cost["totals"].as_object_mut().unwrap().remove("saved_ms")),
            |cost| drop(cost["tasks"][0].as_object_mut().unwrap().remove("device")),
            |cost| cost["status"] = json!("splendid"),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut cost = whole.clone();
            change(&mut cost);
            fs::write(&path, cost.to_string()).unwrap();
            assert_eq!(recorded(&path), None, "change {number}");
        }
        fs::write(&path, "{").unwrap();
        assert_eq!(recorded(&path), None);
        assert_eq!(recorded(&folder.path().join("none")), None);
    }
}
