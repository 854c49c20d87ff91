//! The signals that concern a run, as messages.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use std::time::Duration;

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::error::{Error, Result};

/// Set while nothing runs: the signals then end the program, as if they had never been watched.
///
/// A disposition belongs to the whole process, and so does this flag.
static IDLE: LazyLock<io::Result<Arc<AtomicBool>>> = LazyLock::new(|| {
    let idle = Arc::new(AtomicBool::new(true));
    for signal in stop_signals() {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&idle))?;
    }
    Ok(idle)
});

/// SIGINT is among them even where it was ignored when we started, as it is for `scfoundry … &` in a script: a run
/// that reserves a cluster must be stoppable. SIGHUP is left alone where it is ignored, as it is under `nohup`.
fn stop_signals() -> impl Iterator<Item = i32> {
    let hang_up = (!ignored(SIGHUP)).then_some(SIGHUP);
    [SIGINT, SIGTERM].into_iter().chain(hang_up)
}

/// Whether this process ignores a signal, as Linux tells it.
fn ignored(signal: i32) -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return false };
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Watches SIGINT, SIGTERM, SIGHUP and SIGCHLD until dropped. One at a time.
///
/// A child that is started meanwhile has the default disposition for each of them: caught signals are reset by exec.
pub(super) struct Watch {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
    idle: Arc<AtomicBool>,
}

impl Watch {
    /// Calls `deliver` with the number of each signal, from a thread of its own, until it says `false`.
    pub(super) fn start(deliver: impl Fn(i32) -> bool + Send + 'static) -> io::Result<Watch> {
        let idle = match &*IDLE {
            Ok(idle) => Arc::clone(idle),
            Err(error) => return Err(error.kind().into()),
        };
        let mut signals = Signals::new(stop_signals().chain([SIGCHLD]))?;
        let handle = signals.handle();
        let thread = std::thread::Builder::new().name("signals".into()).spawn(move || {
            for signal in signals.forever() {
                if !deliver(signal) {
                    break;
                }
            }
        })?;
        idle.store(false, Ordering::SeqCst);
        Ok(Watch { handle, thread: Some(thread), idle })
    }
}

/// Requests to stop this program while it waits for something other than an engine.
pub struct StopRequests {
    receiver: Receiver<i32>,
    _watch: Watch,
}

impl StopRequests {
    /// # Errors
    /// Environment: signals cannot be watched.
    pub fn watch() -> Result<StopRequests> {
        let (sender, receiver) = channel();
        let watch = Watch::start(move |signal| signal == SIGCHLD || sender.send(signal).is_ok())
            .map_err(|error| Error::environment("cannot watch for signals").cause(error))?;
        Ok(StopRequests { receiver, _watch: watch })
    }

    /// The number of the signal, if one comes within the time; else the time passes.
    pub fn within(&self, limit: Duration) -> Option<i32> {
        self.receiver.recv_timeout(limit).ok()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.idle.store(true, Ordering::SeqCst);
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            // It only forwards numbers: there is nothing of its end to report.
            let _ = thread.join();
        }
    }
}
