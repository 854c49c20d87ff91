//! A made-up run, at several moments of its life.

use std::fs;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};

use super::*;

const HEADER: &str = "task_id\thash\tprocess\tname\tstatus\trealtime\tpeak_rss\n";

struct Made {
    _folder: tempfile::TempDir,
    run: RunDir,
}

impl Made {
    /// A run of `scgpt` over three inputs that has just begun.
    fn new() -> Made {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::create(folder.path(), crate::method::Task::Embed, "made").unwrap();
        let record = serde_json::from_str(
            r#"{"task": "embed", "method": "scgpt", "status": "running", "started": "2026-12-03T06:00:00Z"}"#,
        );
        let mut record: Record = record.unwrap();
        record.pid = Some(std::process::id());
        record.pid_started = crate::rundir::process_started(std::process::id());
        run.save(&record).unwrap();
        let made = Made { _folder: folder, run };
        made.write("params.json", r#"{"work": {"EMBED": {}}, "inputs": [{"role": "data"}, {}, {}]}"#);
        made
    }

    fn write(&self, path: &str, text: &str) {
        self.run.write(path, text.as_bytes()).unwrap();
    }

    fn watch(&self) -> Watch {
        Watch::new(self.run.clone(), self.run.record().unwrap())
    }

    /// The engine submits tasks.
    fn submit(&self, tasks: &[(&str, &str)]) {
        let line = |(hash, name): &(&str, &str)| {
            format!("Dec-03 INFO  nextflow.Session - [{hash}] Submitted process > EMBED ({name})\n")
        };
        self.write("nextflow.log", &tasks.iter().map(line).collect::<String>());
        for (hash, _) in tasks {
            fs::create_dir_all(self.run.join("work").join(format!("{hash}ffff"))).unwrap();
        }
    }

    /// A submitted task begins to work.
    fn begin(&self, hash: &str, log: &str) {
        self.write(&format!("work/{hash}ffff/.command.begin"), "");
        self.write(&format!("work/{hash}ffff/.command.err"), log);
    }

    fn began(&self, hash: &str) -> Timestamp {
        let file = self.run.join(format!("work/{hash}ffff/.command.begin"));
        Timestamp::try_from(file.metadata().unwrap().modified().unwrap()).unwrap()
    }
}

fn after(moment: Timestamp, seconds: i64) -> Timestamp {
    moment.checked_add(SignedDuration::from_secs(seconds)).unwrap()
}

#[test]
fn a_run_is_seen_from_what_it_leaves_on_disk() {
    let made = Made::new();
    let mut watch = made.watch();
    assert_eq!(watch.poll().len(), 0);
    let facts = watch.facts("2026-12-03T06:01:30Z".parse().unwrap(), &Processes::default());
    assert_eq!((facts.done(), facts.elapsed_ms), ((0, Some(3)), Some(90_000)));
    assert_eq!((facts.stage(), facts.cells(), facts.forecast_end), (None, None, None));

    made.submit(&[("aa/111111", "one"), ("bb/222222", "two"), ("cc/333333", "three")]);
    made.begin("bb/222222", "loading\n100/400 cells\n");
    made.write("work/bb/222222ffff/.gpu.csv", "100,0,GPU-a,500,8192,0,50\n101,0,GPU-a,700,8192,0,50\n");
    made.write("trace.txt", &format!("{HEADER}1\taa/111111\tEMBED\tEMBED (one)\tFAILED\t5s\t2 MB\n"));
    let ended = watch.poll();
    assert_eq!(ended.iter().map(|task| task.told_end()).collect::<Vec<_>>(), ["EMBED (one) failed"]);
    let began = made.began("bb/222222");
    let facts = watch.facts(after(began, 10), &Processes::default());
    let expected = Stage {
        process: "EMBED".to_owned(),
        expected: Some(3),
        running: 1,
        waiting: 1,
        failed: 1,
        wall_ms: 15_000,
        peak_rss_bytes: Some(2 << 20),
        ..Stage::default()
    };
    assert_eq!(facts.stages, [expected]);
    assert_eq!((facts.cells(), facts.gpu_bytes), (Some((100, 400)), Some(700 << 20)));
    assert_eq!(facts.stage().as_deref(), Some("EMBED"));
    // 30 s of this one are left, then twice 40 s.
    let end = facts.forecast_end.unwrap();
    assert!((end.duration_since(after(began, 120)).as_secs_f64()).abs() < 0.1, "{end}");
    assert_eq!(
        facts.tasks.iter().map(|task| task.name.as_str()).collect::<Vec<_>>(),
        ["EMBED (two)", "EMBED (three)"]
    );
}

#[test]
fn a_task_that_ended_runs_no_more_and_is_told_once() {
    let made = Made::new();
    made.submit(&[("aa/111111", "one"), ("bb/222222", "two")]);
    made.begin("aa/111111", "");
    let mut watch = made.watch();
    watch.poll();
    assert_eq!(watch.facts(after(made.began("aa/111111"), 1), &Processes::default()).stages[0].running, 1);
    let row = "1\taa/111111\tEMBED\tEMBED (one)\tCOMPLETED\t5s\t2 MB\n";
    made.write("trace.txt", &format!("{HEADER}{row}"));
    assert_eq!(watch.poll().len(), 1);
    // Another file, with the same row and a further one.
    made.write("trace.txt", &format!("{HEADER}{row}2\tcc/1\tEMBED\tEMBED (x)\tCACHED\t9s\t9 MB\n"));
    assert_eq!(watch.poll().iter().map(|task| task.name.as_str()).collect::<Vec<_>>(), ["EMBED (x)"]);
    let facts = watch.facts(Timestamp::now(), &Processes::default());
    let stage = &facts.stages[0];
    assert_eq!((stage.done, stage.running, stage.waiting, stage.wall_ms), (2, 0, 1, 5000));
    assert_eq!(stage.peak_rss_bytes, Some(2 << 20));
}

#[test]
fn only_runs_with_a_living_process_run() {
    let made = Made::new();
    let runs = made.run.path().parent().and_then(Path::parent).unwrap();
    assert_eq!(running(runs).len(), 1);
    let mut record = made.run.record().unwrap();
    record.pid_started = Some(1);
    made.run.save(&record).unwrap();
    assert_eq!(running(runs).len(), 0);
    record.pid_started = crate::rundir::process_started(std::process::id());
    record.status = Status::Ok;
    made.run.save(&record).unwrap();
    assert_eq!(running(runs).len(), 0);
}
