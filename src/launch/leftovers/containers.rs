//! Containers of Docker and Podman, which are children of the engine's daemon and not of ours.
//!
//! Those of Apptainer and Singularity are ordinary child processes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{Account, is_below};
use crate::ask::{PATIENCE, ask};

const ENGINES: [&str; 2] = ["docker", "podman"];

/// How long an engine may take to kill and remove containers.
const REMOVAL: Duration = Duration::from_secs(30);

/// Ends the containers that work below `work`.
pub(super) fn end(work: &Path, account: &mut Account) {
    for engine in ENGINES.into_iter().filter(|engine| may_have_left(engine, work)) {
        match end_those_of(engine, work) {
            Ok(count) => account.ended("ended", count, "container"),
            Err(reason) => account.warnings.push(format!(
                "containers that work in {} may still run: {reason}; to end them: `{engine} ps`, then `{engine} kill NAME`",
                work.display()
            )),
        }
    }
}

/// Kills and removes, as the engine's own script would have done; gives how many have gone.
fn end_those_of(engine: &str, work: &Path) -> Result<usize, String> {
    let found = working_below(engine, work)?;
    if found.is_empty() {
        return Ok(0);
    }
    // Podman that is told to remove a container whose stop was cut off forgets it and lets it run, so it is killed first.
    let killed = ask(Command::new(engine).arg("kill").args(&found), REMOVAL);
    let removal = ask(Command::new(engine).args(["rm", "--force"]).args(&found), REMOVAL);
    // One that has ended meanwhile makes it fail, so what counts is what is left.
    let left = working_below(engine, work)?;
    match (left.is_empty(), killed.and(removal)) {
        (false, Err(reason)) => Err(format!("{} of them stay, {reason}", left.len())),
        (false, Ok(_)) => Err(format!("{} of them stay", left.len())),
        (true, _) => Ok(found.len()),
    }
}

/// The states of a container in which its processes live.
const ALIVE: [&str; 4] = ["running", "stopping", "paused", "restarting"];

/// The ids of the living containers whose working directory is below `work`.
fn working_below(engine: &str, work: &Path) -> Result<BTreeSet<String>, String> {
    let list = ["ps", "--all", "--no-trunc", "--format", "{{.ID}} {{.State}}"];
    let all = ask(Command::new(engine).args(list), PATIENCE)?;
    let is_alive = |state: &str| ALIVE.iter().any(|alive| state.eq_ignore_ascii_case(alive));
    let alive = all.lines().filter_map(|line| line.split_once(' ')).filter(|(_, state)| is_alive(state));
    let mut found = BTreeSet::new();
    for (id, _) in alive {
        let question = ["inspect", "--format", "{{.Config.WorkingDir}}", id];
        // One that has ended meanwhile is not known any more.
        if let Ok(answer) = ask(Command::new(engine).args(question), PATIENCE)
            && is_below(Path::new(answer.trim_end_matches('\n')), work)
        {
            found.insert(id.to_owned());
        }
    }
    Ok(found)
}

/// Whether a task on this machine was begun in a container of the engine and not ended: nobody is asked without need.
fn may_have_left(engine: &str, work: &Path) -> bool {
    task_directories(work).any(|task| {
        !task.join(".exitcode").exists()
            && fs::read(task.join(".command.run"))
                .is_ok_and(|script| starts_container(&String::from_utf8_lossy(&script), engine))
    })
}

/// The directories `12/3456…` of tasks.
fn task_directories(work: &Path) -> impl Iterator<Item = PathBuf> {
    let folders = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    folders(work).flat_map(move |group| folders(&group).collect::<Vec<_>>())
}

/// Whether the script of a task starts a container on the machine that it is started on. One that goes to a batch system
/// begins with its directives, and its containers end with the job.
fn starts_container(script: &str, engine: &str) -> bool {
    let batch = |line: &str| ["#SBATCH ", "#PBS ", "#BSUB ", "#$ "].iter().any(|mark| line.starts_with(mark));
    let start = format!("{engine} run ");
    !script.lines().any(batch) && script.lines().any(|line| line.trim_start().contains(&start))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str =
        "#!/bin/bash\n### name: 'EMBED (x)'\nnxf_launch() {\n    docker run -i --name $NXF_BOXID image\n}\n";

    #[test]
    fn the_engine_is_read_from_the_script_of_a_task() {
        assert!(starts_container(SCRIPT, "docker"));
        assert!(!starts_container(SCRIPT, "podman"));
        assert!(!starts_container(&SCRIPT.replace("### name", "#SBATCH -J x\n### name"), "docker"));
    }

    #[test]
    fn a_task_that_ended_left_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let task = folder.path().join("12/3456");
        assert!(!may_have_left("docker", folder.path()));
        fs::create_dir_all(&task).unwrap();
        fs::write(task.join(".command.run"), SCRIPT).unwrap();
        assert!(may_have_left("docker", folder.path()));
        assert!(!may_have_left("podman", folder.path()));
        fs::write(task.join(".exitcode"), "0").unwrap();
        assert!(!may_have_left("docker", folder.path()));
    }

    #[test]
    fn an_engine_that_is_not_there_is_a_warning_with_the_way_out() {
        let reason = end_those_of("no-such-engine", Path::new("/w")).unwrap_err();
        assert_eq!(reason, "no-such-engine was not found in PATH");
    }
}
