//! How long it takes from Enter to the first task: the managed engine against the same Nextflow started plainly.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use scfoundry::nextflow::{Engine, Request, locate, run};
use scfoundry::ui::Ui;

use crate::driver::{launch, stand_in};
use crate::managed::{path, shared_cache};

const PIPELINE: &str = r#"
process FIRST {
    output: path 'started'
    script: "date +%s.%N > started"
}
workflow { FIRST().view { file -> "started ${file.text.trim()}" } }
"#;
const ROUNDS: usize = 7;

#[test]
#[ignore = "engine: measures starts, for some minutes on a busy machine"]
fn engine_starts_faster_than_plain() {
    let plain = std::env::var_os("SCFOUNDRY_TEST_NEXTFLOW_PLAIN").map(PathBuf::from);
    let plain = stand_in(&plain.expect("set SCFOUNDRY_TEST_NEXTFLOW_PLAIN, as tests/engines.sh prints it"));
    let variables = [("SCFOUNDRY_CACHE".into(), shared_cache().into()), ("PATH".into(), path())];
    let managed = || locate(&Request::new(None, None, variables.clone()), &Ui::default()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("main.nf"), PIPELINE).unwrap();
    managed();

    let mut seconds = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        // In turn, so that both see the same neighbours on the machine.
        seconds[0].push(first_task(|| plain.clone(), directory.path()));
        seconds[1].push(first_task(managed, directory.path()));
    }
    let [plain, managed] = seconds.map(median);
    println!("plain {plain:.2} s, managed {managed:.2} s, ratio {:.2}", managed / plain);
    assert!(managed < 0.8 * plain);
}

/// Seconds until the first task runs, with the search for the engine.
fn first_task(engine: impl Fn() -> Engine, directory: &Path) -> f64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
    let engine = engine();
    let args = ["run", "main.nf", "-ansi-log", "false"].map(Into::into);
    let mut started = None;
    let outcome = run(launch(&engine, &args, directory, None, false), &mut |event| {
        if let scfoundry::nextflow::Event::Line(line) = event {
            started = started.or(line.strip_prefix("started ").and_then(|text| text.parse::<f64>().ok()));
        }
    });
    assert!(outcome.unwrap().success());
    started.unwrap() - now
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
