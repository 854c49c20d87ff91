//! What every run needs on this machine.

use super::super::surroundings::Surroundings;
use super::{Check, Level};
use crate::gpu;
use crate::nextflow;
use crate::plan::{Runtime, docker_answers};
use crate::trace::units::format_bytes;
use crate::workspace::Config;

pub(super) fn checks(around: &Surroundings, config: &Config) -> Vec<Check> {
    let engine = engine(&nextflow::inspect(&nextflow::Request::of(&around.settings)));
    let mut checks = vec![workspace(around), engine];
    checks.extend(["bash", "ps"].map(tool));
    checks.push(containers(Runtime::of(config)));
    checks.push(gpu());
    checks
}

fn workspace(around: &Surroundings) -> Check {
    let root = around.workspace.root().display();
    match around.workspace.exists() {
        true => Check { name: "workspace", level: Level::Ok, found: root.to_string(), mend: None },
        false => Check {
            name: "workspace",
            level: Level::Note,
            found: format!("none here; the first run makes one in {root}"),
            mend: Some("scfoundry init".to_owned()),
        },
    }
}

fn engine(inspection: &nextflow::Inspection) -> Check {
    let version = inspection.version.as_deref().unwrap_or("of unknown version");
    let java = inspection.java.as_ref().map_or(String::new(), |java| format!(", Java {}", java.version));
    let found = format!("Nextflow {version} ({}){java}", inspection.origin);
    let name = "nextflow";
    if let Some(problem) = &inspection.problem {
        let mend = problem.hints.first().cloned();
        return Check { name, level: Level::Fail, found: problem.to_string(), mend };
    }
    if inspection.missing.is_empty() {
        return Check { name, level: Level::Ok, found, mend: None };
    }
    let mend = Some(format!("the first run brings {}", inspection.missing.join(" and ")));
    Check { name, level: Level::Note, found, mend }
}

/// Nextflow needs `bash` to run a task and `ps` to measure it.
fn tool(name: &'static str) -> Check {
    match which::which(name) {
        Ok(path) => Check { name, level: Level::Ok, found: path.display().to_string(), mend: None },
        Err(_) => {
            let package = if name == "ps" { "procps" } else { name };
            let mend = Some(format!("apt-get install {package}"));
            Check { name, level: Level::Fail, found: "not in PATH".to_owned(), mend }
        }
    }
}

fn containers(runtime: Runtime) -> Check {
    let name = "containers";
    let works = match runtime {
        Runtime::None => {
            return Check {
                name,
                level: Level::Note,
                found: "none: native methods run, models need an engine".to_owned(),
                mend: Some("turn one on in nextflow.config, as in `docker.enabled = true`".to_owned()),
            };
        }
        Runtime::Docker => docker_answers(),
        other => which::which(other.name()).is_ok(),
    };
    match works {
        true => Check { name, level: Level::Ok, found: runtime.to_string(), mend: None },
        false => Check {
            name,
            level: Level::Note,
            found: format!("{runtime} is on in nextflow.config, but does not answer here"),
            mend: Some(format!("start or install {runtime}, or turn another engine on")),
        },
    }
}

fn gpu() -> Check {
    let name = "gpu";
    match gpu::survey() {
        Ok(cards) => {
            let each = cards.iter().map(|card| {
                let memory =
                    card.total_bytes.map_or(String::new(), |bytes| format!(", {}", format_bytes(bytes)));
                format!("{}: {}{memory}", card.index, card.name)
            });
            Check::ok(name, each.collect::<Vec<_>>().join("; "))
        }
        Err(unseen) => {
            Check::note(name, format!("none: {}; methods that need one would be very slow", unseen.reason))
        }
    }
}
