//! Tasks whose engine is gone, and with it whoever would have ended them.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::group::{self, Group};

/// How long a leader that has just been killed may take to be gone.
const DYING: Duration = Duration::from_secs(1);

/// Ends the process groups that lost their leader, the engine, and work below `directory`; gives the number of directories
/// in which something has been ended. Where there is no `/proc`, nothing is found.
///
/// A shell that somebody has opened there leads its own group and is left alone.
pub fn end_orphans(directory: &Path) -> usize {
    let mut places = 0;
    let deadline = Instant::now() + DYING;
    let mut found = groups(directory);
    // An engine that is being killed lets go of its files before it is gone.
    while found.keys().any(|leader| is_alive(*leader)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
        found = groups(directory);
    }
    for (leader, found) in found.into_iter().filter(|(leader, _)| !is_alive(*leader)) {
        let group = Group::led_by(leader);
        group.sweep();
        // Those of another user stay.
        places += if group.has_members() { 0 } else { found.len() };
    }
    places
}

/// The leaders of the groups that work below the directory, with the directories they work in; not our own.
fn groups(directory: &Path) -> HashMap<Pid, BTreeSet<PathBuf>> {
    let real = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let own = rustix::process::getpgrp();
    let mut found: HashMap<Pid, BTreeSet<PathBuf>> = HashMap::new();
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let place =
            std::fs::read_link(process.path().join("cwd")).ok().filter(|place| place.starts_with(&real));
        let stat = || std::fs::read_to_string(process.path().join("stat")).ok();
        let leader = place.is_some().then(stat).flatten().and_then(|stat| group::alive_in_group(&stat));
        if let (Some(place), Some(leader)) = (place, leader.and_then(Pid::from_raw))
            && leader != own
        {
            found.entry(leader).or_default().insert(place);
        }
    }
    found
}

/// A leader that nobody has waited for, as in a container whose first process does not, is as gone as any.
fn is_alive(process: Pid) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()))
        .is_ok_and(|stat| group::alive_in_group(&stat).is_some())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn only_groups_without_a_leader_are_ended() {
        let folder = tempfile::tempdir().unwrap();
        let started = |name: &str, script: &str| {
            let place = folder.path().join(name);
            std::fs::create_dir(&place).unwrap();
            let mut command = Command::new("sh");
            command
                .args(["-c", script])
                .current_dir(place)
                .process_group(0)
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        };
        let mut with_leader = started("open", "sleep 60; :");
        // The leader leaves its child behind.
        let mut without = started("orphan", "sleep 60 & exit 0");
        without.wait().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(end_orphans(&folder.path().join("open")), 0);
        assert_eq!(end_orphans(folder.path()), 1);
        assert_eq!(end_orphans(folder.path()), 0);
        assert!(with_leader.try_wait().unwrap().is_none(), "a group with its leader was ended");
        Group::of(&with_leader).kill();
        with_leader.wait().unwrap();
    }
}
