//! A running run watched until it ends.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::error::{Error, Kind, Result};
use crate::nextflow::StopRequests;
use crate::rundir::{Record, RunDir, Status};
use crate::table::{Column, Table};
use crate::trace::units::{format_bytes, format_duration};
use crate::ui::{Live, Ui};
use crate::watch::{self, Facts, Processes, Watch};

/// Between two looks at the run.
const LOOK: Duration = Duration::from_millis(500);
/// Between two drawings of the table.
const DRAW: Duration = Duration::from_secs(2);

/// Waits until the run has ended, and tells meanwhile what becomes of its tasks; gives its record.
///
/// `data`: stdout is for data alone, so tasks are told on stderr.
///
/// # Errors
/// We were asked to stop watching: the run goes on.
pub fn until_end(run: &RunDir, data: bool, ui: &Ui) -> Result<Record> {
    let mut record = run.record()?;
    if !watch::is_running(&record) {
        return Ok(record);
    }
    let stop = StopRequests::watch()?;
    let mut live = (!data).then(|| ui.live()).flatten();
    let mut watch = Watch::new(run.clone(), record.clone());
    let mut drawn: Option<Instant> = None;
    loop {
        for task in watch.poll() {
            match (&live, data) {
                (Some(_), _) => {}
                (None, false) => ui.line(task.told_end())?,
                (None, true) => ui.note(task.told_end()),
            }
        }
        // The record that was read before the trace: all tasks of a run that has ended are told.
        if !watch::is_running(&record) {
            break;
        }
        if let Some(live) = live.as_mut().filter(|_| drawn.is_none_or(|drawn| drawn.elapsed() >= DRAW)) {
            draw(&watch, live)?;
            drawn = Some(Instant::now());
        }
        if let Some(signal) = stop.within(LOOK) {
            return Err(Error::new(
                Kind::of_signal(signal),
                format_args!("watching has stopped; run {} goes on", run.name()),
            ));
        }
        record = run.record()?;
    }
    if let Some(live) = &mut live {
        live.clear()?;
    }
    Ok(record)
}

/// What a run that has ended makes of the command that watched it.
///
/// # Errors
/// It did not go well.
pub fn verdict(run: &RunDir, record: &Record) -> Result<()> {
    if record.status == Status::Ok {
        return Ok(());
    }
    let error = Error::failed(format_args!("run {} is {}", run.name(), record.status.name()));
    Err(match (&record.message, record.status) {
        (Some(message), _) => error.cause(message),
        (None, Status::Lost) => error.cause("its process is gone without a word"),
        (None, _) => error,
    })
}

fn draw(watch: &Watch, live: &mut Live) -> Result<()> {
    let facts = watch.facts(Timestamp::now(), &Processes::default());
    let elapsed = facts.elapsed_ms.map_or(String::new(), |ms| format!(", {}", format_duration(ms)));
    live.draw(&format!("run {}{elapsed}\n{}", facts.name, table(&facts)))
}

/// The tasks of a run by process.
fn table(facts: &Facts) -> Table {
    let mut table = Table::new([
        Column::text("process"),
        Column::number("done"),
        Column::number("running"),
        Column::number("waiting"),
        Column::number("failed"),
        Column::number("wall so far"),
        Column::number("peak RSS"),
    ]);
    for stage in &facts.stages {
        let done = stage.done.to_string();
        table.row([
            stage.process.clone(),
            stage.expected.map_or(done.clone(), |expected| format!("{done}/{expected}")),
            stage.running.to_string(),
            stage.waiting.to_string(),
            stage.failed.to_string(),
            format_duration(stage.wall_ms),
            stage.peak_rss_bytes.map_or(String::new(), format_bytes),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Stage;

    #[test]
    fn the_table_has_a_row_a_process() {
        let stage = Stage {
            process: "EMBED".to_owned(),
            expected: Some(3),
            done: 1,
            running: 2,
            wall_ms: 90_000,
            peak_rss_bytes: Some(1 << 30),
            ..Stage::default()
        };
        let foreign = Stage { process: "OTHER".to_owned(), failed: 1, ..Stage::default() };
        let facts = Facts {
            name: "one".to_owned(),
            path: "/w/one".into(),
            task: "embed".to_owned(),
            method: None,
            started: None,
            elapsed_ms: None,
            forecast_end: None,
            rss_bytes: None,
            gpu_bytes: None,
            stages: vec![stage, foreign],
            tasks: Vec::new(),
        };
        let expected = "\
process  done  running  waiting  failed  wall so far  peak RSS
EMBED     1/3        2        0       0       1m 30s   1.0 GiB
OTHER       0        0        0       1         0 ms         -";
        assert_eq!(table(&facts).to_string(), expected);
    }

    #[test]
    fn a_run_that_went_wrong_fails_the_watching() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::create(folder.path(), crate::method::Task::Embed, "one").unwrap();
        let record = |rest: &str| -> Record {
            serde_json::from_str(&format!(r#"{{"task": "embed", {rest}}}"#)).unwrap()
        };
        assert!(verdict(&run, &record(r#""status": "ok""#)).is_ok());
        let error = verdict(&run, &record(r#""status": "failed", "message": "a task failed""#)).unwrap_err();
        assert_eq!(
            (error.kind, error.to_string().as_str()),
            (Kind::Failed, "run one is failed: a task failed")
        );
        let lost = verdict(&run, &record(r#""status": "lost""#)).unwrap_err();
        assert!(lost.to_string().contains("gone"), "{lost}");
    }
}
