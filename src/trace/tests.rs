use std::fs::{self, File};
use std::io::Write;

use proptest::prelude::*;

use super::*;
use crate::error::Kind;

const HEADER: &str = "task_id\thash\tname\tstatus\texit\trealtime\t%cpu\tpeak_rss\n";

fn case(name: &str) -> Trace {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cases").join(name)).unwrap()
}

fn parsed(text: impl AsRef<[u8]>) -> Trace {
    parse(Path::new("trace.txt"), text.as_ref()).unwrap()
}

#[test]
fn reads_the_default_columns_for_people() {
    let trace = case("c01_trace_units.txt");
    assert_eq!(trace.tasks.len(), 6);
    assert_eq!(trace.notes, Vec::<String>::new());
    let task = &trace.tasks[3];
    assert_eq!((task.task_id.as_str(), task.hash.as_deref()), ("3", Some("2a/087bd4")));
    assert_eq!(
        (&task.status, task.exit, task.name.as_str()),
        (&Status::Completed, Some(0), "EMBED:UCE (pbmc_a)")
    );
    assert_eq!((task.realtime_ms, task.duration_ms), (Some(97_198_000), Some(97_205_000)));
    assert_eq!((task.cpu_percent, task.peak_rss_bytes), (Some(1690.0), Some(1_649_267_441_664)));
    assert_eq!((task.wchar_bytes, task.read_bytes), (Some(512), None));
    let unmeasured = &trace.tasks[1];
    assert_eq!((unmeasured.cpu_percent, unmeasured.peak_rss_bytes), (None, None));
    assert_eq!(trace.tasks[0].peak_rss_bytes, Some(0));
    assert!(trace.tasks[5].status.is_unfinished());
}

#[test]
fn reads_raw_values_in_any_order() {
    let trace = parsed(
        "workdir\tstatus\tname\t%cpu\trealtime\tstart\tsubmit\tcomplete\tpeak_rss\tcpus\ttask_id\tnovelty\tmemory\ttime\n\
         /w/ab/cd\tCOMPLETED\tEMBED (1)\t187.5\t62000\t1741072357000\t1741072356080\t1741072419000\t1024\t4\t1\tx\t2048\t3600000\n",
    );
    let task = &trace.tasks[0];
    assert_eq!(task.workdir.as_deref(), Some(Path::new("/w/ab/cd")));
    assert_eq!(
        (task.queue_ms(), task.wall_ms(), task.cpu_time_ms()),
        (Some(920), Some(62_000), Some(116_250))
    );
    assert_eq!((task.cpus, task.memory_bytes, task.time_ms), (Some(4), Some(2_048), Some(3_600_000)));
    assert_eq!((task.end_ms(), task.hash.as_deref()), (Some(1_741_072_419_000), None));
}

/// Rows that Nextflow 24.10.8 wrote with `raw = true`; the tag of the first holds a tab.
const RAW: &str = "\
task_id\thash\tnative_id\tprocess\ttag\tname\tstatus\texit\tattempt\tsubmit\tstart\tcomplete\tduration\trealtime\t%cpu\t%mem\trss\tpeak_rss\tpeak_vmem\trchar\twchar\tread_bytes\twrite_bytes\tcpus\tmemory\tdisk\ttime\tqueue\tcontainer\tworkdir\thostname\tcpu_model
4\td1/f3454d\t27488\tTABBED\ta\tb\tTABBED (a\tb)\tCOMPLETED\t0\t1\t1796203881071\t1796203881110\t1796203881606\t535\t21\t19.4\t0.0\t0\t0\t0\t87349\t197\t20480\t0\t1\t-\t-\t-\t-\t-\t/w/d1/f3454df2\t-\tAMD EPYC
1\ta0/5bc6d1\t27602\tRETRY\t-\tRETRY\tFAILED\t1\t1\t1796203881636\t1796203881714\t1796203882011\t375\t297\t-\t-\t-\t-\t-\t-\t-\t-\t-\t1\t104857600\t-\t-\t-\t-\t/w/a0/5bc6d19d\t-\t-
5\t5d/60eea1\t27657\tEMBED\tb c\tEMBED (b c)\tCOMPLETED\t0\t1\t1796203882059\t1796203882111\t1796203883876\t1817\t1515\t22.0\t0.0\t5566464\t5566464\t8527872\t95236\t192\t0\t0\t1\t-\t-\t-\t-\t-\t/w/5d/60eea145\t-\tAMD EPYC
6\t49/01c943\t27864\tRETRY\t-\tRETRY\tCOMPLETED\t0\t2\t1796203883917\t1796203884012\t1796203885130\t1213\t1014\t1.0\t0.0\t5107712\t5107712\t7454720\t94433\t184\t4096\t0\t1\t104857600\t-\t-\t-\t-\t/w/49/01c94380\t-\tAMD EPYC
";

#[test]
fn reads_what_the_engine_writes() {
    let trace = parsed(RAW);
    assert_eq!(trace.notes.len(), 1, "{:?}", trace.notes);
    assert!(trace.notes[0].starts_with("1 row left out: line 2 with 34 has not the 32 columns"));
    let [failed, embed, retried] = trace.tasks.as_slice() else { panic!("{:?}", trace.tasks) };
    assert_eq!((failed.exit, failed.attempt, failed.memory_bytes), (Some(1), Some(1), Some(100 << 20)));
    assert_eq!((failed.wall_ms(), failed.cpu_time_ms(), failed.queue_ms()), (Some(297), None, Some(78)));
    assert_eq!((embed.tag.as_deref(), embed.cpu_time_ms()), (Some("b c"), Some(333)));
    assert_eq!(
        (embed.peak_rss_bytes, embed.rchar_bytes, embed.read_bytes),
        (Some(5_566_464), Some(95_236), Some(0))
    );
    assert_eq!((embed.memory_bytes, embed.hostname.as_deref(), embed.cpus), (None, None, Some(1)));
    assert_eq!((retried.attempt, retried.end_ms()), (Some(2), Some(1_796_203_885_130)));
}

#[test]
fn wall_time_falls_back_on_the_dates() {
    let trace = parsed("task_id\tname\tstatus\tstart\tcomplete\n1\tA\tFAILED\t1000\t3500\n");
    assert_eq!(trace.tasks[0].wall_ms(), Some(2_500));
    let backwards = parsed("task_id\tname\tstatus\tstart\tcomplete\n1\tA\tFAILED\t3500\t1000\n");
    assert_eq!(backwards.tasks[0].wall_ms(), None);
}

#[test]
fn an_empty_trace_is_no_error() {
    let empty = case("c01_trace_zero_bytes.txt");
    assert!(empty.tasks.is_empty());
    assert!(
        empty.notes[0].starts_with("no tasks") && empty.notes[0].ends_with("is empty"),
        "{:?}",
        empty.notes
    );
    let header = case("c01_trace_header_only.txt");
    assert!(header.tasks.is_empty());
    assert!(header.notes[0].ends_with("holds a header only"), "{:?}", header.notes);
    assert_eq!(parsed("\n\r\n").tasks.len(), 0);
}

#[test]
fn a_cut_last_line_is_left_out_and_said() {
    let trace = case("c01_trace_cut_last_line.txt");
    assert_eq!(trace.tasks.len(), 1);
    assert_eq!(trace.notes, ["line 3, the last, is cut short and left out"]);
}

#[test]
fn a_last_value_without_line_end_is_not_trusted() {
    let trace = parsed(format!("{HEADER}1\tab/12\tA\tCOMPLETED\t0\t1s\t5%\t51"));
    assert_eq!((trace.tasks[0].cpu_percent, trace.tasks[0].peak_rss_bytes), (Some(5.0), None));
    assert_eq!(trace.notes, ["line 2, the last, has no line end: its peak_rss is left out"]);
    let whole = parsed("task_id\tname\tstatus\n1\tA\tCOMPLETED");
    assert_eq!(whole.tasks[0].status, Status::Completed);
    assert!(whole.notes.is_empty());
}

#[test]
fn rows_with_moved_columns_are_left_out_and_said() {
    let trace = parsed(format!(
        "{HEADER}1\tab/12\tA\tCOMPLETED\t0\t1s\t5%\t1 MB\n\
         2\tab/13\tB (x\ty)\tCOMPLETED\t0\t1s\t5%\t1 MB\n\
         3\tab/14\tC (x\n\
         y)\tCOMPLETED\t0\t1s\t5%\t1 MB\n\
         4\tab/15\tD\tCOMPLETED\t0\t1s\t5%\t1 MB\n"
    ));
    let names: Vec<&str> = trace.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["A", "D"]);
    assert_eq!(
        trace.notes,
        [
            "3 rows left out: line 3 with 9, 4 with 3, 5 with 6 have not the 8 columns of the header (a tab or a line break in a tag?)"
        ]
    );
}

#[test]
fn repeated_cached_rows_count_once() {
    let trace = case("c03_trace_cached_duplicates.txt");
    assert_eq!(trace.tasks.len(), 4);
    assert_eq!(trace.notes, ["2 repeated rows dropped"]);
}

#[test]
fn attempts_of_one_task_are_not_repeats() {
    let row = |id: u32, attempt: u32, status| format!("{id}\tab/1{id}\tA\t{status}\t{attempt}\n");
    let header = "task_id\thash\tname\tstatus\tattempt\n";
    let trace = parsed(format!(
        "{header}{}{}{}",
        row(1, 1, "FAILED"),
        row(2, 2, "COMPLETED"),
        row(2, 2, "COMPLETED")
    ));
    assert_eq!(trace.tasks.len(), 2);
    assert_eq!(trace.notes, ["1 repeated row dropped"]);
}

#[test]
fn tolerates_windows_lines_a_byte_order_mark_and_broken_utf8() {
    let mut bytes =
        b"\xef\xbb\xbftask_id\tname\tstatus\trealtime\r\n1\tEMBED (caf\xe9)\tCOMPLETED\t1,5s\r\n".to_vec();
    bytes.extend_from_slice(b"\r\n");
    let trace = parsed(bytes);
    assert_eq!(trace.tasks[0].name, "EMBED (caf\u{fffd})");
    assert_eq!(trace.tasks[0].realtime_ms, Some(1_500));
    assert!(trace.notes.is_empty());
}

#[test]
fn values_that_make_no_sense_are_absent_and_said() {
    let trace = parsed(format!("{HEADER}1\tab/12\tA\tCOMPLETED\tzero\tsoon\t-\tnull\n"));
    let task = &trace.tasks[0];
    assert_eq!(
        (task.exit, task.realtime_ms, task.cpu_percent, task.peak_rss_bytes),
        (None, None, None, None)
    );
    assert_eq!(
        trace.notes,
        ["2 values not understood and left out: exit \"zero\" in line 2, realtime \"soon\" in line 2"]
    );
}

#[test]
fn an_exit_code_that_means_none_is_none() {
    assert_eq!(parsed(format!("{HEADER}1\tab/12\tA\tFAILED\t2147483647\t-\t-\t-\n")).tasks[0].exit, None);
}

#[test]
fn what_is_no_trace_is_refused_by_name() {
    let error = parse(Path::new("notes.csv"), b"a,b,c\n1,2,3\n").unwrap_err();
    assert_eq!(error.kind, Kind::Input);
    assert_eq!(error.message, "notes.csv is not a Nextflow trace");
    assert!(error.causes[0].contains("task_id, name and status"), "{error}");
    let partial = parse(Path::new("t.txt"), b"task_id\tname\trealtime\n").unwrap_err();
    assert_eq!(partial.causes, ["its header lacks the column status"]);
    assert!(parse(Path::new("x.h5ad"), b"\x89HDF\r\n\x1a\n\0\0\0\0").is_err());
    let absent = read(Path::new("/nonexistent/trace.txt")).unwrap_err();
    assert_eq!(absent.message, "cannot read /nonexistent/trace.txt");
}

#[test]
fn process_and_hash_stand_in_for_name_and_task_id() {
    let trace = parsed("hash\tprocess\ttag\tstatus\nab/12\tEMBED\tpbmc\tCOMPLETED\ncd/34\tSCORE\t-\tODD\n");
    assert_eq!((trace.tasks[0].task_id.as_str(), trace.tasks[0].name.as_str()), ("ab/12", "EMBED (pbmc)"));
    assert_eq!(trace.tasks[1].name, "SCORE");
    assert_eq!(trace.tasks[1].status, Status::Unknown("ODD".into()));
}

#[test]
fn other_separators_are_found_by_the_header() {
    let trace = parsed("task_id,name,status,realtime\n1,A,COMPLETED,2s\n2,B (x,y),COMPLETED,2s\n");
    assert_eq!(trace.tasks.len(), 1);
    assert_eq!(trace.tasks[0].realtime_ms, Some(2_000));
    assert_eq!(trace.notes.len(), 1);
}

#[test]
fn follows_a_growing_trace_by_whole_lines() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.txt");
    let mut follower = Follower::new(&path);
    assert!(follower.poll().is_empty());
    let mut file = File::create(&path).unwrap();
    let mut write = |text: &str| file.write_all(text.as_bytes()).unwrap();
    write(&HEADER[..10]);
    assert!(follower.poll().is_empty());
    write(&HEADER[10..]);
    write("1\tab/12\tA\tCOMPLETED\t0\t1s\t5%\t1 MB\n2\tab/13\tB");
    assert_eq!(follower.poll().len(), 1);
    assert!(follower.poll().is_empty());
    write("ee\tFAILED\t1\t1s\t-\t-\nbroken\n");
    let tasks = follower.poll();
    assert_eq!((tasks.len(), tasks[0].name.as_str(), &tasks[0].status), (1, "Bee", &Status::Failed));
}

#[test]
fn a_replaced_trace_is_followed_from_its_start() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.txt");
    let rows = "1\tab/12\tA\tCOMPLETED\t0\t1s\t5%\t1 MB\n2\tab/13\tB\tCOMPLETED\t0\t1s\t5%\t1 MB\n";
    fs::write(&path, format!("{HEADER}{rows}")).unwrap();
    let mut follower = Follower::new(&path);
    assert_eq!(follower.poll().len(), 2);
    fs::write(&path, format!("{HEADER}9\tcd/12\tC\tCACHED\t0\t1s\t5%\t1 MB\n")).unwrap();
    assert_eq!(follower.poll()[0].task_id, "9");
    fs::remove_file(&path).unwrap();
    assert!(follower.poll().is_empty());
}

proptest! {
    #[test]
    fn no_bytes_can_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(Path::new("t"), &bytes);
        let _ = parse(Path::new("t"), &[HEADER.as_bytes(), &bytes].concat());
    }

    #[test]
    fn cutting_a_trace_anywhere_invents_nothing(cut in 0_usize..1_200) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cases/c01_trace_units.txt");
        let bytes = fs::read(&path).unwrap();
        let whole = parse(&path, &bytes).unwrap();
        if let Ok(trace) = parse(&path, &bytes[..cut.min(bytes.len())]) {
            for (task, original) in trace.tasks.iter().zip(&whole.tasks) {
                let absent_last = TaskRecord { wchar_bytes: None, ..original.clone() };
                prop_assert!(task == original || *task == absent_last, "{task:?}");
            }
        }
    }
}

#[test]
fn a_task_that_was_refused_took_no_time() {
    let text = "task_id\tname\tstatus\texit\tsubmit\tstart\tcomplete\tduration\trealtime\n\
        1\tEMBED (a)\tFAILED\t1\t0\t0\t1796211725000\t1796211725000\t1796211725000\n";
    let task = &parse(Path::new("trace.txt"), text.as_bytes()).unwrap().tasks[0];
    assert_eq!((task.submit_ms, task.start_ms, task.wall_ms(), task.queue_ms()), (None, None, None, None));
}
