//! The cost that a run wrote down when it ended, `cost.json`: it outlives the work directories it was measured from.

use std::io::{self, Write};
use std::path::Path;

use serde_json::Value;

use super::totals::{price, unpriced};
use super::{CostSummary, PerThousand, Rates, SCHEMA, TaskCost, per_cells};
use crate::trace::{TaskRecord, Trace};

/// Reads a `cost.json`, also one of schema 1. `None`: there is none, or another version of the program wrote other fields.
pub fn recorded(path: &Path) -> Option<CostSummary> {
    let bytes = std::fs::read(path).ok()?;
    // What this version wrote gives the same bytes when it is written again; all else is looked at field by field.
    let summary = serde_json::from_slice::<CostSummary>(&bytes).ok();
    if let Some(summary) = summary.filter(|summary| summary.schema == SCHEMA && summary.is_written_as(&bytes))
    {
        return Some(summary);
    }
    let written: Value = serde_json::from_slice(&bytes).ok()?;
    if written.get("schema") == Some(&Value::from(1)) {
        return from_first(written);
    }
    let summary = CostSummary::deserialize_whole(&written)?;
    (summary.schema == SCHEMA).then_some(summary)
}

/// A summary of schema 1, which knew neither samples nor costs per cell: its peaks of GPU memory are all the allocator's.
fn from_first(mut written: Value) -> Option<CostSummary> {
    let source = |of: &Value| match &of["peak_gpu_bytes"] {
        Value::Null => Value::Null,
        _ => Value::from("allocator"),
    };
    let add = |of: &mut Value, names: &[&str]| -> Option<()> {
        let source = source(of);
        let fields = of.as_object_mut()?;
        for name in names {
            // A field that schema 1 did not have makes it another version's.
            if fields.insert((*name).to_owned(), Value::Null).is_some() {
                return None;
            }
        }
        fields.insert("peak_gpu_source".to_owned(), source).is_none().then_some(())
    };
    written["schema"] = Value::from(SCHEMA);
    let totals = written.get_mut("totals")?;
    if let Some(price) = totals["price"].as_object_mut() {
        price.insert("sampled_kilowatt_hours".to_owned(), Value::Null);
        price.insert("grams_co2e".to_owned(), Value::Null);
    }
    add(totals, &["gpu_joules", "cells", "per_1000_cells"])?;
    for task in written.get_mut("tasks")?.as_array_mut()? {
        let new =
            ["time_limit_ms", "sampled_gpu_bytes", "gpu_utilization_percent", "gpu_joules", "per_1000_cells"];
        add(task, &new)?;
    }
    let mut summary = CostSummary::deserialize_whole(&written)?;
    for task in &mut summary.tasks {
        task.per_1000_cells = PerThousand::of_task(task);
    }
    summary.totals.cells = per_cells::cells(&summary.tasks);
    summary.totals.per_1000_cells = PerThousand::of_run(&summary.totals);
    Some(summary)
}

impl CostSummary {
    /// The summary, if writing it again gives all that was read and nothing else.
    fn deserialize_whole(written: &Value) -> Option<CostSummary> {
        let summary: CostSummary = serde_json::from_value(written.clone()).ok()?;
        (serde_json::to_value(&summary).ok()? == *written).then_some(summary)
    }

    fn is_written_as(&self, bytes: &[u8]) -> bool {
        let mut rest = Rest(bytes.trim_ascii_end());
        serde_json::to_writer_pretty(&mut rest, self).is_ok() && rest.0.is_empty()
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
        self.totals.price = rates.and_then(|rates| price(rates, &self.tasks, &self.totals, &mut self.notes));
    }
}

/// Bytes that are to be written once more; others are an error.
struct Rest<'a>(&'a [u8]);

impl Write for Rest<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.strip_prefix(bytes).ok_or(io::ErrorKind::InvalidData)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;
    use crate::cost::{GpuSource, SummaryOptions, summarise};
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
    fn a_cost_of_schema_1_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let (path, mut summary) = written(folder.path());
        summary.tasks[0].cells = Some(500);
        summary.tasks[0].peak_gpu_bytes = Some(7);
        let mut old = serde_json::to_value(&summary).unwrap();
        let remove = |of: &mut Value, names: &[&str]| {
            names.iter().for_each(|name| assert!(of.as_object_mut().unwrap().remove(*name).is_some()));
        };
        old["schema"] = json!(1);
        remove(&mut old["totals"]["price"], &["sampled_kilowatt_hours", "grams_co2e"]);
        remove(&mut old["totals"], &["gpu_joules", "cells", "per_1000_cells", "peak_gpu_source"]);
        let new = ["time_limit_ms", "sampled_gpu_bytes", "gpu_utilization_percent", "gpu_joules"];
        for task in old["tasks"].as_array_mut().unwrap() {
            remove(task, &new);
            remove(task, &["per_1000_cells", "peak_gpu_source"]);
        }
        fs::write(&path, old.to_string()).unwrap();
        let read = recorded(&path).unwrap();
        assert_eq!((read.schema, read.tasks[0].peak_gpu_source), (SCHEMA, Some(GpuSource::Allocator)));
        assert_eq!(read.totals.per_1000_cells.unwrap().seconds, Some(14_400.0));
        remove(&mut old["tasks"][0], &["device"]);
        fs::write(&path, old.to_string()).unwrap();
        assert_eq!(recorded(&path), None);
    }

    #[test]
    fn other_fields_are_of_another_version() {
        let folder = tempfile::tempdir().unwrap();
        let (path, _) = written(folder.path());
        let whole: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let changes: [fn(&mut Value); 5] = [
            |cost| cost["later"] = json!(1),
            |cost| cost["schema"] = json!(3),
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
