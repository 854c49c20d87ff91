use std::fs;
use std::path::Path;

use serde_json::Value;

use super::*;
use crate::trace::{self, Trace};
use crate::usage::Usage;

fn fixture(name: &str) -> Trace {
    trace::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cases").join(name)).unwrap()
}

fn parsed(path: &Path, text: &str) -> Trace {
    trace::parse(path, text.as_bytes()).unwrap()
}

fn summary(trace: &Trace) -> CostSummary {
    summarise(trace, &SummaryOptions::default())
}

fn of_text(text: &str) -> CostSummary {
    summary(&parsed(Path::new("/nonexistent/trace.txt"), text))
}

#[test]
fn units_dashes_zeros_and_running_rows() {
    let summary = summary(&fixture("c01_trace_units.txt"));
    let totals = &summary.totals;
    assert_eq!((totals.completed, totals.unfinished, totals.executed, totals.tasks), (5, 1, 5, 6));
    assert_eq!(totals.run_time_ms, Some(102_383_306));
    assert_eq!(totals.cpu_time_ms, Some(1_649_626_825));
    assert_eq!(totals.without_metrics, 2);
    assert_eq!(totals.peak_rss_bytes, Some(1_649_267_441_664));
    assert_eq!(totals.gpu_hours, None);
    assert_eq!(summary.status, RunStatus::Unfinished);
    assert_eq!(
        summary.notes,
        [
            "2 tasks are without metrics: CPU time is the sum over the other 3",
            "1 task is unfinished and not counted",
        ]
    );
    // 09:12:30.010 until the scoring task's end at 12:20:00 plus 24m 22s, the next day.
    assert_eq!(totals.span_ms, Some(99_111_990));
}

#[test]
fn empty_traces_have_no_tasks_and_no_error() {
    for name in ["c01_trace_header_only.txt", "c01_trace_zero_bytes.txt"] {
        let summary = summary(&fixture(name));
        assert_eq!(
            (summary.status, summary.totals.tasks, summary.totals.run_time_ms),
            (RunStatus::Empty, 0, None)
        );
        assert!(summary.notes[0].starts_with("no tasks"));
        assert!(!summary.suspect());
    }
    let cut = summary(&fixture("c01_trace_cut_last_line.txt"));
    assert_eq!((cut.status, cut.totals.completed, cut.totals.run_time_ms), (RunStatus::Ok, 1, Some(300)));
}

#[test]
fn cached_tasks_cost_this_run_nothing() {
    let summary = summary(&fixture("c03_trace_cached_duplicates.txt"));
    let totals = &summary.totals;
    assert_eq!((totals.executed, totals.cached), (2, 2));
    assert_eq!((totals.run_time_ms, totals.cpu_time_ms), (Some(630_000), Some(630_000)));
    assert_eq!(totals.saved_ms, 6_950_000);
    assert_eq!(totals.peak_rss_bytes, Some(2 << 30));
    assert_eq!(totals.span_ms, Some(691_000));
    assert_eq!(summary.status, RunStatus::Ok);
    assert_eq!(
        summary.notes,
        ["2 repeated rows dropped", "2 tasks are cached: 1h 56m saved, no part of this run's cost"]
    );
}

#[test]
fn a_memory_kill_behind_exit_0_is_found() {
    let summary = summary(&fixture("f01_slurm_oom/trace.txt"));
    assert!(summary.suspect());
    assert_eq!(summary.status, RunStatus::Suspect);
    let line = summary.tasks[0].memory_kill.as_deref().unwrap();
    assert!(line.starts_with("slurmstepd: error: Detected 1 oom_kill event"), "{line}");
    assert!(
        summary.notes[0].starts_with("EMBED:UCE (big) was killed for memory although exit 0, peak 7.9 GiB: "),
        "{:?}",
        summary.notes
    );
    let table = task_table(&summary).to_string();
    assert!(table.contains("killed for memory"), "{table}");
}

#[test]
fn a_hash_leads_to_its_own_directory_only() {
    let root = tempfile::tempdir().unwrap();
    for name in ["7e/e97eb7aa", "7e/e97eb8bb", "7e/e97eb8cc"] {
        fs::create_dir_all(root.path().join(name)).unwrap();
    }
    let task = |hash: &str| {
        let mut task = trace::TaskRecord::new("1", "A", Status::Completed);
        task.hash = Some(hash.to_owned());
        task
    };
    let find = |hash| work_directory(hash, root.path());
    assert_eq!(find("7e/e97eb7"), Some(root.path().join("7e/e97eb7aa")));
    assert_eq!(find("7e/e97eb8"), None);
    for hash in ["7e/ffffff", "7e/", "../7e", "7e", "/", "7e/../7e"] {
        assert_eq!(find(hash), None, "{hash}");
    }
    let mut by_column = task("7e/e97eb8");
    by_column.workdir = Some(root.path().join("7e/e97eb8cc"));
    let of_task = |task: &trace::TaskRecord| {
        let root = evidence::WorkRoot::new(root.path(), std::slice::from_ref(task));
        root.directory(task).map(|directory| directory.path().to_owned())
    };
    assert_eq!(of_task(&by_column), by_column.workdir);
    by_column.workdir = Some("/nonexistent".into());
    assert_eq!(of_task(&by_column), None);
}

const HEADER: &str =
    "task_id\thash\tname\tstatus\tattempt\tsubmit\tstart\tcomplete\trealtime\t%cpu\tpeak_rss\tcpus\n";

#[test]
fn failed_attempts_are_waste() {
    let failed = "1\tab/11\tEMBED (a)\tFAILED\t1\t0\t1000\t61000\t60000\t-\t-\t2\n";
    let retried = "2\tab/12\tEMBED (a)\tCOMPLETED\t2\t61000\t62000\t182000\t120000\t50.0\t1048576\t2\n";
    let summary = of_text(&format!("{HEADER}{failed}{retried}"));
    let totals = &summary.totals;
    assert_eq!((totals.failed, totals.completed, totals.executed), (1, 1, 2));
    assert_eq!(
        (totals.run_time_ms, totals.wasted_ms, totals.cpu_time_ms),
        (Some(180_000), 60_000, Some(60_000))
    );
    assert_eq!(
        (totals.cpu_percent, totals.queue_ms, totals.span_ms),
        (Some(50.0), Some(2_000), Some(182_000))
    );
    assert_eq!(summary.status, RunStatus::Ok);
    assert!(summary.notes.contains(&"1 task failed: 1m 00s of the run time was wasted".to_owned()));
    assert_eq!(of_text(&format!("{HEADER}{failed}")).status, RunStatus::Failed);
    let other = retried.replace("(a)", "(b)");
    assert_eq!(of_text(&format!("{HEADER}{failed}{other}")).status, RunStatus::Failed);
}

#[test]
fn aborted_and_unknown_tasks_make_a_run_unfinished() {
    let row = |status: &str| format!("{HEADER}1\tab/11\tA\t{status}\t1\t0\t-\t-\t-\t-\t-\t-\n");
    let aborted = of_text(&row("ABORTED"));
    assert_eq!(
        (aborted.status, aborted.totals.aborted, aborted.totals.without_run_time),
        (RunStatus::Unfinished, 1, 1)
    );
    assert_eq!(aborted.notes, ["run time leaves out 1 task, of unknown length", "1 task is aborted"]);
    let odd = of_text(&row("SKIPPED"));
    assert_eq!((odd.status, odd.totals.unknown, odd.totals.executed), (RunStatus::Unfinished, 1, 0));
}

/// A trace beside a work directory whose only task left the given `usage.json`.
fn with_usage(usage: &str) -> (tempfile::TempDir, Trace) {
    let root = tempfile::tempdir().unwrap();
    let work = root.path().join("work/ab/11ffff");
    fs::create_dir_all(&work).unwrap();
    fs::write(work.join("usage.json"), usage).unwrap();
    let row = "1\tab/11\tEMBED (a)\tCOMPLETED\t1\t0\t0\t3600000\t3600000\t-\t0\t4\n";
    let trace = parsed(&root.path().join("trace.txt"), &format!("{HEADER}{row}"));
    (root, trace)
}

#[test]
fn usage_fills_what_the_trace_cannot_know() {
    let usage = Usage {
        cells: Some(700),
        batch_size_asked: Some(64),
        batch_size_used: Some(16),
        halvings: Some(2),
        device: Some("NVIDIA T4".into()),
        peak_gpu_bytes_allocated: Some(10 << 30),
        peak_gpu_bytes_reserved: Some(12 << 30),
        peak_rss_bytes: Some(3 << 30),
        cpu_seconds: Some(1800.0),
        warnings: vec!["3 genes are not in the vocabulary".into()],
        ..Usage::new("runner")
    };
    let (_root, trace) = with_usage(&serde_json::to_string(&usage).unwrap());
    let rates = Rates {
        cpu_hour: Some(0.1),
        gpu_hour: Some(2.0),
        currency: Some("EUR".into()),
        gpu_watts: Some(70.0),
        cpu_watts: None,
        co2e_per_kwh: None,
    };
    let summary = summarise(&trace, &SummaryOptions { rates: Some(rates), ..SummaryOptions::default() });
    let task = &summary.tasks[0];
    assert_eq!(
        (task.peak_rss_bytes, task.peak_gpu_bytes, task.gpus),
        (Some(3 << 30), Some(12 << 30), Some(1))
    );
    assert_eq!((task.cpu_time_ms, task.cpu_percent), (Some(1_800_000), Some(50.0)));
    assert_eq!((task.cells, task.batch_size_used), (Some(700), Some(16)));
    assert_eq!((summary.totals.gpu_hours, summary.totals.without_metrics), (Some(1.0), 0));
    let price = summary.totals.price.clone().unwrap();
    assert!((price.money.unwrap() - 2.4).abs() < 1e-9);
    assert!((price.kilowatt_hours.unwrap() - 0.07).abs() < 1e-9);
    assert_eq!(
        remarks(&summary),
        [
            "elapsed, first submission to last completion: 1h 00m; tasks waited 0 ms in the queue, added up",
            "GPU-hours: 1.000",
            "per 1000 of 700 cells: 5143 s, 0.714 CPU-hours, 1.43 GPU-hours",
            "price: 2.40 EUR; energy: 0.070 kWh",
            "EMBED (a): GPU memory ran out, so the batch size was halved 2 times down to 16",
            "EMBED (a): 3 genes are not in the vocabulary",
        ]
    );
    assert!(task_table(&summary).to_string().lines().next().unwrap().contains("peak GPU"));
}

#[test]
fn damaged_usage_is_said_and_left_out() {
    let (_root, trace) = with_usage("{\"kind\": \"runner\", \"cells\": ");
    let summary = summary(&trace);
    assert_eq!(summary.tasks[0].cells, None);
    assert!(summary.notes[0].starts_with("EMBED (a): ") && summary.notes[0].contains("is damaged"));
    assert_eq!(summary.status, RunStatus::Ok);
}

#[test]
fn the_caller_may_know_which_processes_hold_cards() {
    let row = "1\tab/11\tEMBED (a)\tCOMPLETED\t1\t0\t0\t1800000\t1800000\t100.0\t0\t4\n";
    let trace = parsed(Path::new("/nonexistent/trace.txt"), &format!("{HEADER}{row}"));
    let options =
        SummaryOptions { gpu_processes: vec!["EMBED".into()], gpus_per_task: 2, ..SummaryOptions::default() };
    assert_eq!(summarise(&trace, &options).totals.gpu_hours, Some(1.0));
    assert_eq!(summary(&trace).totals.gpu_hours, None);
}

#[test]
fn a_price_says_what_it_leaves_out() {
    let row = "1\tab/11\tA\tFAILED\t1\t0\t0\t1800000\t1800000\t-\t-\t-\n";
    let trace = parsed(Path::new("/nonexistent/trace.txt"), &format!("{HEADER}{row}"));
    let rates = Rates { cpu_hour: Some(1.0), ..Rates::default() };
    let summary = summarise(&trace, &SummaryOptions { rates: Some(rates), ..SummaryOptions::default() });
    assert_eq!(summary.totals.price, None);
    assert!(summary.notes.contains(&"the price leaves out the cores of 1 of 1 tasks".to_owned()));
}

#[test]
fn the_table_of_a_trace() {
    let table = task_table(&summary(&fixture("c01_trace_units.txt"))).to_string();
    let expected = "\
task                        wall  CPU time     %CPU  peak RSS  attempts  status
EMBED:PCA (pbmc_a)        300 ms      0 ms     0.0%       0 B         -  completed
EMBED:PREPARE (pbmc_a)      6 ms         -        -         -         -  completed
EMBED:SCGPT (pbmc_a)      1h 02m    1h 56m   187.5%  11.7 GiB         -  completed
EMBED:UCE (pbmc_a)        1d 03h   19d 00h  1690.0%   1.5 TiB         -  completed
BENCHMARK:SCORE (pbmc_a)  24m 22s         -        -         -         -  completed
GEOMETRY:PROBE (pbmc_a)        -         -        -         -         -  running";
    for line in expected.lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(
            table.lines().any(|shown| shown.split_whitespace().eq(words.iter().copied())),
            "{line}\nis not in\n{table}"
        );
    }
    let last = table.lines().last().unwrap();
    assert!(last.starts_with("total, 5 executed") && last.ends_with("unfinished"), "{table}");
}

#[test]
fn runs_side_by_side() {
    let options = |run: &str| SummaryOptions {
        run: Some(run.into()),
        method: Some("pca".into()),
        ..SummaryOptions::default()
    };
    let runs = [
        summarise(&fixture("c01_trace_units.txt"), &options("one")),
        summarise(&fixture("f01_slurm_oom/trace.txt"), &options("two")),
    ];
    let table = comparison_table(&runs).to_string();
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1], ["one", "pca", "6", "1d", "04h", "19d", "02h", "1.5", "TiB", "-", "unfinished"]);
    assert_eq!(rows[2], ["two", "pca", "1", "1m", "58s", "1m", "57s", "7.9", "GiB", "-", "suspect"]);
}

#[test]
fn json_keeps_the_absent_null_and_names_its_units() {
    let runs = [summary(&fixture("c01_trace_units.txt"))];
    let json: Value = serde_json::to_value(Comparison::new(&runs)).unwrap();
    assert_eq!(json["schema"], 2);
    let run = &json["runs"][0];
    assert_eq!((&run["schema"], &run["status"]), (&Value::from(2), &Value::from("unfinished")));
    assert_eq!(run["totals"]["run_time_ms"], 102_383_306);
    assert_eq!(run["totals"]["peak_rss_bytes"], 1_649_267_441_664_u64);
    assert_eq!(run["tasks"][1]["cpu_time_ms"], Value::Null);
    assert_eq!(run["tasks"][0]["cpu_time_ms"], 0);
    assert_eq!(run["tasks"][5]["status"], "RUNNING");
}

#[test]
fn log_tails_are_plain_text() {
    let directory = tempfile::tempdir().unwrap();
    assert!(log_tail(directory.path(), 5).is_empty());
    fs::write(directory.path().join(".command.log"), "only the log\n").unwrap();
    assert_eq!(log_tail(directory.path(), 5), ["only the log"]);
    let error =
        "first\n\u{1b}[31mred\u{1b}[0m text\r\n 10%\r 50%\r100% done\n\n\u{1b}]0;title\u{7}last\tline\u{8}\n";
    fs::write(directory.path().join(".command.err"), error).unwrap();
    assert_eq!(log_tail(directory.path(), 3), ["red text", "100% done", "last line"]);
    assert_eq!(log_tail(directory.path(), 9).len(), 4);
    let long = "x".repeat(100_000) + "\nend\n";
    fs::write(directory.path().join(".command.err"), long).unwrap();
    assert_eq!(log_tail(directory.path(), 9), ["end"]);
}

#[test]
fn a_memory_kill_is_read_from_several_batch_systems() {
    let kills = [
        "slurmstepd: error: Detected 1 oom_kill event in StepId=1.batch.",
        "slurmstepd: error: Detected 1 oom-kill event(s) in step 1.batch cgroup.",
        "slurmstepd: error: Exceeded job memory limit at some point.",
        "=>> PBS: job killed: memory 9000000kb exceeded limit 8388608kb",
        "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.",
    ];
    for line in kills {
        assert!(evidence::is_memory_kill(line), "{line}");
    }
    for line in [
        "loading weights",
        "CUDA out of memory, batch halved",
        "memory limit is 8 GB",
        "job killed: walltime",
    ] {
        assert!(!evidence::is_memory_kill(line), "{line}");
    }
}

const SAMPLES: &str = "time,index,uuid,memory_used_mib,memory_total_mib,utilization_percent,power_watts
1000,0,GPU-a,5,8192,0,50\n1001,0,GPU-a,4096,8192,50,150\n1002,0,GPU-a,2048,8192,100,250\n";

/// The cost of one task with the given samples and `usage.json`.
fn with_samples(samples: &str, usage: &Usage) -> CostSummary {
    let (root, trace) = with_usage(&serde_json::to_string(usage).unwrap());
    fs::write(root.path().join("work/ab/11ffff/.gpu.csv"), samples).unwrap();
    summary(&trace)
}

#[test]
fn peaks_of_gpu_memory_say_who_measured_them() {
    let of = |samples: &str, allocated: Option<u64>| {
        let usage = Usage { peak_gpu_bytes_allocated: allocated, ..Usage::new("runner") };
        let summary = with_samples(samples, &usage);
        let task = summary.tasks[0].clone();
        assert_eq!(summary.totals.peak_gpu_source, task.peak_gpu_source);
        assert!(task_table(&summary).to_string().contains(task.peak_gpu_source.unwrap().name()));
        task
    };
    let alone = of(SAMPLES, None);
    assert_eq!((alone.peak_gpu_bytes, alone.peak_gpu_source), (Some(4 << 30), Some(GpuSource::Sampled)));
    assert_eq!((alone.gpu_utilization_percent, alone.gpu_joules), (Some(50.0), Some(300.0)));
    assert_eq!(alone.gpus, Some(1));
    let busy = of(&SAMPLES.replace(",5,", ",3000,"), None);
    assert_eq!((busy.peak_gpu_bytes, busy.peak_gpu_source), (Some(4 << 30), Some(GpuSource::Shared)));
    let own = of(SAMPLES, Some(3 << 30));
    assert_eq!((own.peak_gpu_bytes, own.peak_gpu_source), (Some(3 << 30), Some(GpuSource::Allocator)));
    assert_eq!(own.sampled_gpu_bytes, Some(4 << 30));
}

#[test]
fn a_sampler_that_saw_nothing_says_why() {
    let (root, trace) = with_usage(r#"{"kind": "runner", "device": "NVIDIA T4"}"#);
    fs::write(root.path().join("work/ab/11ffff/.gpu.err"), "nvidia-smi: not found\n").unwrap();
    let notes = summary(&trace).notes;
    assert!(
        notes.contains(&"EMBED (a): GPU memory was not sampled: nvidia-smi: not found".to_owned()),
        "{notes:?}"
    );
}

#[test]
fn sampled_energy_takes_the_place_of_the_rate() {
    let mut summary = with_samples(SAMPLES, &Usage::new("runner"));
    let rates = Rates { gpu_watts: Some(1e6), co2e_per_kwh: Some(400.0), ..Rates::default() };
    summary.price_at(Some(&rates));
    let price = summary.totals.price.clone().unwrap();
    assert_eq!(
        (price.kilowatt_hours, price.sampled_kilowatt_hours),
        (Some(300.0 / 3.6e6), Some(300.0 / 3.6e6))
    );
    assert!((price.grams_co2e.unwrap() - 400.0 * 300.0 / 3.6e6).abs() < 1e-12);
}

const ASKED: &str = "task_id\thash\tname\tstatus\texit\trealtime\t%cpu\tpeak_rss\tcpus\tmemory\ttime\n";

#[test]
fn advice_is_what_was_used_with_headroom() {
    let gib = |count: f64| ((count * (1_u64 << 30) as f64) as u64).to_string();
    let row = |name: &str, status: &str, peak: &str| {
        format!("1\tab/11\t{name}\t{status}\t0\t300000\t150.0\t{peak}\t8\t{}\t86400000\n", gib(32.0))
    };
    let text = format!(
        "{ASKED}{}{}{}",
        row("EMBED (a)", "COMPLETED", &gib(2.0)),
        row("EMBED (b)", "COMPLETED", &gib(3.5)),
        // Neither what failed nor what was not measured says what would do.
        row("EMBED (c)", "FAILED", &gib(31.0)),
    );
    let config = advice(&of_text(&text)).unwrap();
    let expected = "process {
    withName: 'EMBED' {
        // asked for 32.0 GiB, used 3.5 GiB
        memory = '5 GB'
        // asked for 8, kept 2 busy
        cpus = 2
        // asked for 1d 00h, took 5m 00s
        time = '10 min'
    }
}";
    assert_eq!(config, expected);
    let fitting = format!("{ASKED}1\tab/11\tA\tCOMPLETED\t0\t9\t150.0\t{}\t2\t{}\t-\n", gib(3.0), gib(4.0));
    assert_eq!(advice(&of_text(&fitting)), None);
    let tight = fitting.replace(&gib(4.0), &gib(3.0));
    assert!(advice(&of_text(&tight)).unwrap().contains("memory = '4 GB'"));
    assert_eq!(advice(&summary(&fixture("c03_trace_cached_duplicates.txt"))), None);
}

#[test]
fn runs_are_compared_by_the_cell() {
    let of = |cells: u64, batch: u64| {
        let usage = Usage { cells: Some(cells), batch_size_used: Some(batch), ..Usage::new("runner") };
        let (_root, trace) = with_usage(&serde_json::to_string(&usage).unwrap());
        summary(&trace)
    };
    let runs = [of(1000, 64), of(500, 32)];
    let ratios = Comparison::new(&runs).ratios;
    assert_eq!((ratios[0].run_time, ratios[1].run_time, ratios[1].peak_gpu), (Some(1.0), Some(2.0), None));
    let table = ratio_table(&runs).to_string();
    let words: Vec<&str> = table.lines().nth(2).unwrap().split_whitespace().skip(1).collect();
    assert_eq!(words, ["500", "32", "7200", "-", "-", "2.00", "-", "-"], "{table}");
}

#[test]
fn many_failed_attempts_take_no_time() {
    let rows: String = (0..60_000)
        .map(|number| format!("{number}\tab/11\tEMBED (x{number})\tFAILED\t1\t0\t0\t1\t1\t-\t-\t2\n"))
        .collect();
    let good = rows.replace("FAILED\t1", "COMPLETED\t2");
    assert_eq!(of_text(&format!("{HEADER}{rows}{good}")).status, RunStatus::Ok);
    assert_eq!(of_text(&format!("{HEADER}{good}{rows}")).status, RunStatus::Failed);
}
