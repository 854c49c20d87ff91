//! The process group of a child: nothing that it started outlives it.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, getppid};

/// How long the members of a group may take to end after SIGTERM before they are killed.
const GRACE: Duration = Duration::from_secs(3);
/// How long they may take to end by themselves, because the engine has told them to.
const LEAVE: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(20);

/// A child in a process group of its own, and everything it started there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    leader: Pid,
}

impl Group {
    pub(super) fn of(child: &Child) -> Group {
        Group { leader: Pid::from_child(child) }
    }

    /// The group of a leader that is gone; its number is free again only once the group is empty.
    pub(super) fn led_by(leader: Pid) -> Group {
        Group { leader }
    }

    pub(super) fn leader(self) -> Pid {
        self.leader
    }

    /// Asks the leader alone to stop: an engine ends its own tasks, and must not be told twice.
    pub(super) fn ask_leader(self) {
        // It may have ended meanwhile: then there is nobody left to ask.
        let _ = rustix::process::kill_process(self.leader, Signal::TERM);
    }

    pub(super) fn kill(self) {
        self.signal(Signal::KILL);
    }

    /// Ends whatever is left of the group once its leader has ended, gently first.
    ///
    /// The leader must not have been waited for yet, or the group have members: its number then still belongs to it.
    pub(super) fn sweep(self) {
        self.wait_until_empty(LEAVE);
        if self.has_members() {
            self.signal(Signal::TERM);
            self.wait_until_empty(GRACE);
        }
        self.kill();
        // Nobody survives that, but dying takes a moment.
        self.wait_until_empty(LEAVE);
    }

    fn wait_until_empty(self, limit: Duration) {
        let deadline = Instant::now() + limit;
        while self.has_members() && Instant::now() < deadline {
            std::thread::sleep(POLL);
        }
    }

    fn signal(self, signal: Signal) {
        let _ = rustix::process::kill_process_group(self.leader, signal);
    }

    /// Whether a process of the group is alive. Read from `/proc`; where there is none, nobody is seen.
    pub(super) fn has_members(self) -> bool {
        let Ok(processes) = std::fs::read_dir("/proc") else { return false };
        processes
            .flatten()
            .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok())
            .any(|stat| alive_in_group(&stat) == Some(self.leader.as_raw_nonzero().get()))
    }
}

/// The process group in a line of `/proc/PID/stat`, unless that process is only waiting to be reaped.
pub(super) fn alive_in_group(stat: &str) -> Option<i32> {
    // The second field is the command's name in brackets, which may hold spaces and brackets itself.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    let group = fields.nth(1)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(group)
}

/// Gives the child a process group of its own and has it sent SIGTERM when we end, however we end.
///
/// The signal comes when the *thread* that starts the child ends: start it from one that waits for it.
pub(super) fn isolate(command: &mut Command) {
    command.process_group(0);
    end_with_parent(command);
}

#[cfg(target_os = "linux")]
pub(super) fn end_with_parent(command: &mut Command) {
    let parent = getpid();
    let tie = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
        // Too late to be told if the parent has gone before the line above.
        if getppid() == Some(parent) { Ok(()) } else { Err(std::io::ErrorKind::NotFound.into()) }
    };
    // SAFETY: between fork and exec the closure makes two system calls (prctl, getppid), which are async-signal-safe,
    // on values copied into it; it allocates nothing and takes no lock.
    unsafe { command.pre_exec(tie) };
}

#[cfg(not(target_os = "linux"))]
pub(super) fn end_with_parent(_command: &mut Command) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_is_read_past_an_odd_command_name() {
        assert_eq!(alive_in_group("12 (a) b (c) S 1 77 77 0 -1"), Some(77));
        assert_eq!(alive_in_group("12 (sleep) Z 1 77 77 0 -1"), None);
        assert_eq!(alive_in_group(""), None);
    }

    #[test]
    fn sweep_ends_what_ignores_sigterm() {
        let mut command = Command::new("sh");
        command.args(["-c", "(trap '' TERM; echo ready; sleep 60; sleep 60) & sleep 0.2; exit 0"]);
        isolate(&mut command);
        let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
        let group = Group::of(&child);
        std::thread::sleep(Duration::from_millis(500));
        assert!(group.has_members());
        group.sweep();
        std::thread::sleep(Duration::from_millis(100));
        assert!(!group.has_members());
        assert!(child.wait().unwrap().success());
    }
}
