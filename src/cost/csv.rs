//! The costs of several runs as one CSV table.

use std::fmt::Display;
use std::io::Write;

use super::{CostSummary, GpuSource, PerThousand, TaskCost};
use crate::error::{Error, Kind, Result};

type Cell = fn(&CostSummary, &TaskCost) -> String;

/// The columns in order: their names, with units, and their values; an absent value is an empty cell.
const COLUMNS: [(&str, Cell); 44] = [
    ("run", |run, _| optional(run.run.as_ref())),
    ("method", |run, _| optional(run.method.as_ref())),
    ("task_id", |_, task| task.task_id.clone()),
    ("name", |_, task| task.name.clone()),
    ("process", |_, task| optional(task.process.as_ref())),
    ("hash", |_, task| optional(task.hash.as_ref())),
    ("status", |_, task| task.status.to_string()),
    ("exit", |_, task| optional(task.exit)),
    ("attempt", |_, task| optional(task.attempt)),
    ("cached", |_, task| task.cached.to_string()),
    ("wall_ms", |_, task| optional(task.wall_ms)),
    ("cpu_time_ms", |_, task| optional(task.cpu_time_ms)),
    ("cpu_percent", |_, task| optional(task.cpu_percent)),
    ("cpus", |_, task| optional(task.cpus)),
    ("peak_rss_bytes", |_, task| optional(task.peak_rss_bytes)),
    ("memory_bytes", |_, task| optional(task.memory_bytes)),
    ("time_limit_ms", |_, task| optional(task.time_limit_ms)),
    ("peak_gpu_bytes", |_, task| optional(task.peak_gpu_bytes)),
    ("peak_gpu_source", |_, task| optional(task.peak_gpu_source.map(GpuSource::name))),
    ("sampled_gpu_bytes", |_, task| optional(task.sampled_gpu_bytes)),
    ("gpu_samples", |_, task| optional(task.gpu_samples)),
    ("card_bytes", |_, task| optional(task.card_bytes)),
    ("gpu_utilization_percent", |_, task| optional(task.gpu_utilization_percent)),
    ("gpu_joules", |_, task| optional(task.gpu_joules)),
    ("gpus", |_, task| optional(task.gpus)),
    ("device", |_, task| optional(task.device.as_ref())),
    ("read_bytes", |_, task| optional(task.read_bytes)),
    ("write_bytes", |_, task| optional(task.write_bytes)),
    ("rchar_bytes", |_, task| optional(task.rchar_bytes)),
    ("wchar_bytes", |_, task| optional(task.wchar_bytes)),
    ("queue_ms", |_, task| optional(task.queue_ms)),
    ("cells", |_, task| optional(task.cells)),
    ("genes", |_, task| optional(task.genes)),
    ("batch_size_asked", |_, task| optional(task.batch_size_asked)),
    ("batch_size_used", |_, task| optional(task.batch_size_used)),
    ("halvings", |_, task| optional(task.halvings)),
    ("seconds_per_1000_cells", |_, task| per_cells(task, |per| per.seconds)),
    ("cpu_hours_per_1000_cells", |_, task| per_cells(task, |per| per.cpu_hours)),
    ("gpu_hours_per_1000_cells", |_, task| per_cells(task, |per| per.gpu_hours)),
    ("memory_kill", |_, task| optional(task.memory_kill.as_ref())),
    ("disk_bytes", |_, task| optional(task.disk_bytes)),
    ("run_results_bytes", |run, _| optional(run.disk.map(|disk| disk.results_bytes))),
    ("run_work_bytes", |run, _| optional(run.disk.map(|disk| disk.work_bytes))),
    ("run_left_bytes", |run, _| optional(run.disk.map(|disk| disk.left_bytes))),
];

/// Writes one row per task, with its run in the first column. A closed pipe is the error that ends quietly.
pub fn write_csv(summaries: &[CostSummary], writer: impl Write) -> Result<()> {
    let mut table = csv::Writer::from_writer(writer);
    table.write_record(COLUMNS.map(|(name, _)| name)).map_err(failed)?;
    for summary in summaries {
        for task in &summary.tasks {
            table.write_record(COLUMNS.map(|(_, cell)| cell(summary, task))).map_err(failed)?;
        }
    }
    table.flush().map_err(|error| failed(error.into()))
}

fn per_cells(task: &TaskCost, of: fn(PerThousand) -> Option<f64>) -> String {
    optional(task.per_1000_cells.and_then(of))
}

fn optional(value: Option<impl Display>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

fn failed(error: csv::Error) -> Error {
    match error.kind() {
        csv::ErrorKind::Io(io) if io.kind() == std::io::ErrorKind::BrokenPipe => {
            Error::new(Kind::BrokenPipe, "")
        }
        _ => Error::failed("cannot write the cost table as CSV").cause(error),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::cost::{SummaryOptions, summarise};
    use crate::trace;

    #[test]
    fn absent_values_are_empty_and_names_are_quoted() {
        let text = "task_id\tname\tstatus\trealtime\n1\tEMBED (a,\"b\")\tCOMPLETED\t1.5s\n";
        let trace = trace::parse(Path::new("trace.txt"), text.as_bytes()).unwrap();
        let options = SummaryOptions { run: Some("one".into()), ..SummaryOptions::default() };
        let mut out = Vec::new();
        write_csv(&[summarise(&trace, &options)], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let mut lines = text.lines();
        assert!(
            lines.next().unwrap().starts_with("run,method,task_id,name,process,hash,status,exit,attempt")
        );
        let expected =
            "one,,1,\"EMBED (a,\"\"b\"\")\",,,COMPLETED,,,false,1500,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,";
        assert_eq!(lines.next(), Some(expected));
    }

    #[test]
    fn a_closed_pipe_ends_quietly() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        assert_eq!(write_csv(&[], Closed).unwrap_err().kind, Kind::BrokenPipe);
    }
}
