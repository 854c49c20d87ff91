//! Nextflow as a child: started, listened to, signalled, waited for.
//!
//! The child has a process group of its own, so that a Ctrl-C in the terminal reaches us alone and Nextflow is told
//! to stop exactly once: it aborts on the first signal and gives up its tidying on a later one. Containers of a daemon and
//! jobs of a cluster are not in that group: after a hard kill they go on, and `launch` ends them.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, PipeReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::{WaitId, WaitIdOptions, waitid};
use signal_hook::consts::{SIGCHLD, SIGHUP};

use super::Engine;
use super::group::{Group, isolate};
use super::signals::Watch;
use crate::error::{Error, Result};

const TICK: Duration = Duration::from_millis(200);
/// Requests closer together than this are one key press that reached us twice, through a wrapper and the terminal.
const SAME_REQUEST: Duration = Duration::from_millis(300);
/// How long the output of a process that outlives the engine is waited for.
const LAST_WORDS: Duration = Duration::from_secs(1);
const QUEUE: usize = 1024;

/// How to start the engine.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    pub engine: &'a Engine,
    /// The arguments of Nextflow itself, from `run` on.
    pub args: &'a [OsString],
    /// The directory it runs in.
    pub cwd: &'a Path,
    /// Added to the environment, after those of the engine.
    pub env: &'a [(OsString, OsString)],
    /// A file that everything the engine prints is appended to.
    pub output: Option<&'a Path>,
    /// The engine prints straight to our stdout and stderr: there are no `Line` events and nothing goes to `output`.
    pub raw: bool,
}

/// What happens while the engine runs.
#[derive(Debug, Clone)]
pub enum Event {
    /// A line from the engine's stdout or stderr, without its line end; bytes that are not UTF-8 are replaced.
    Line(String),
    /// Time has passed; about five a second.
    Tick,
    /// We were asked to stop: `number` is the signal we got. With the first request the engine is asked to stop, with
    /// the second (`count` 2) it and its tasks are killed.
    Signal { number: i32, count: u32 },
    /// The engine's output can no longer be appended to its file; the run goes on.
    OutputLost(Error),
}

/// How the engine ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The first signal that asked us to stop while it ran.
    pub interrupted: Option<i32>,
    /// It was killed with all its tasks, after a second request.
    pub killed: bool,
}

impl Outcome {
    /// It did not live to end its tasks. A code of 128 and more is a shell's word for a signal.
    pub fn violent(&self) -> bool {
        self.killed || self.code.is_none_or(|code| code >= 128)
    }

    /// It ended by itself, with code 0.
    pub fn success(&self) -> bool {
        self.code == Some(0) && self.interrupted.is_none()
    }
}

enum Message {
    Line(String),
    OutputLost(Error),
    OutputEnded,
    Signal(i32),
}

/// Starts the engine and waits for its end, telling `observer` what happens meanwhile.
///
/// Nothing of the engine outlives this call, nor this process, except containers and cluster jobs after a kill, which
/// the caller has to end. Call it from a thread that lives as long as the run; one run at a time.
///
/// # Errors
/// Of kind `Environment` when it cannot be started; its own failure is an [`Outcome`], not an error.
pub fn run(launch: Launch<'_>, observer: &mut dyn FnMut(Event)) -> Result<Outcome> {
    let (sender, receiver) = sync_channel(QUEUE);
    let output = match launch.output.filter(|_| !launch.raw) {
        Some(path) => Some(open_output(path)?),
        None => None,
    };
    let deliver = sender.clone();
    let watch = Watch::start(move |number| deliver.send(Message::Signal(number)).is_ok())
        .map_err(|error| Error::environment("cannot watch for signals").cause(error))?;
    let mut child = spawn(launch, output, sender)?;
    let group = Group::of(&child);

    let mut stop = Stop::default();
    let said_all = follow(group, &receiver, &mut stop, observer).inspect_err(|_| group.kill())?;
    if stop.first.is_some() || !ended_by_itself(group)? {
        group.sweep();
    }
    if !launch.raw && !said_all {
        drain(&receiver, observer);
    }
    let status = reap(&mut child)?;
    drop(receiver);
    drop(watch);
    Ok(stop.outcome(status))
}

fn open_output(path: &Path) -> Result<File> {
    OpenOptions::new().create(true).append(true).open(path).map_err(Error::io("write", path))
}

fn spawn(launch: Launch<'_>, output: Option<File>, sender: SyncSender<Message>) -> Result<Child> {
    let cannot = |error| {
        let program = launch.engine.program.display();
        Error::environment(format_args!("cannot start {program} in {}", launch.cwd.display())).cause(error)
    };
    let mut command = Command::new(&launch.engine.program);
    command.args(&launch.engine.prefix).args(launch.args).current_dir(launch.cwd).stdin(Stdio::null());
    // Java would announce these options in the middle of the output; Nextflow's own launcher drops them too.
    command.env_remove("JAVA_TOOL_OPTIONS");
    for (name, value) in launch.engine.env.iter().chain(launch.env) {
        command.env(name, value);
    }
    isolate(&mut command);
    if launch.raw {
        return command.spawn().map_err(cannot);
    }
    let (reader, writer) = std::io::pipe().map_err(cannot)?;
    command.stdout(writer.try_clone().map_err(cannot)?).stderr(writer);
    let child = command.spawn().map_err(cannot)?;
    let path = launch.output.map(Path::to_path_buf);
    let lost = move |error| match &path {
        Some(path) => Error::io("write", path)(error),
        None => Error::failed(error),
    };
    std::thread::spawn(move || listen(reader, output, lost, &sender));
    Ok(child)
}

/// Passes the engine's output on, line by line, until its last holder closes it.
fn listen(
    reader: PipeReader,
    mut output: Option<File>,
    lost: impl Fn(std::io::Error) -> Error,
    sender: &SyncSender<Message>,
) {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while matches!(reader.read_until(b'\n', &mut line), Ok(1..)) {
        if let Some(Err(error)) = output.as_mut().map(|file| file.write_all(&line)) {
            output = None;
            // A receiver that has gone no longer cares.
            let _ = sender.send(Message::OutputLost(lost(error)));
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        // Of a line that was written over and over, the last is what a terminal shows.
        let text = text.rsplit(|byte| *byte == b'\r').next().unwrap_or(text);
        if sender.send(Message::Line(String::from_utf8_lossy(text).into_owned())).is_err() {
            // Keep reading: an engine that outlives us must not block on a full pipe.
            output = None;
        }
        line.clear();
    }
    let _ = sender.send(Message::OutputEnded);
}

/// Tells the observer what happens until the engine has ended (but has not been waited for). Gives whether its output
/// has ended too.
fn follow(
    group: Group,
    receiver: &Receiver<Message>,
    stop: &mut Stop,
    observer: &mut dyn FnMut(Event),
) -> Result<bool> {
    let mut next_tick = Instant::now() + TICK;
    let mut said_all = false;
    loop {
        // Looked at first, so that a flood of lines does not starve the clock.
        let now = Instant::now();
        if now >= next_tick {
            next_tick = now + TICK;
            observer(Event::Tick);
            if has_ended(group)? {
                return Ok(said_all);
            }
        }
        match receiver.recv_timeout(next_tick.saturating_duration_since(now)) {
            Ok(Message::Signal(SIGCHLD)) if has_ended(group)? => return Ok(said_all),
            Ok(Message::Signal(SIGCHLD)) => {}
            Ok(Message::Signal(number)) => {
                if let Some(event) = stop.request(number, group) {
                    observer(event);
                }
            }
            Ok(Message::OutputEnded) => said_all = true,
            Ok(message) => report(message, observer),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }
}

fn report(message: Message, observer: &mut dyn FnMut(Event)) {
    match message {
        Message::Line(text) => observer(Event::Line(text)),
        Message::OutputLost(error) => observer(Event::OutputLost(error)),
        Message::OutputEnded | Message::Signal(_) => {}
    }
}

/// Reports what the engine said last.
fn drain(receiver: &Receiver<Message>, observer: &mut dyn FnMut(Event)) {
    let deadline = Instant::now() + LAST_WORDS;
    while let Ok(message) = receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        if matches!(message, Message::OutputEnded) {
            return;
        }
        report(message, observer);
    }
}

/// Whether the leader has ended. It stays a zombie, so that its number is not given to another process yet.
fn has_ended(group: Group) -> Result<bool> {
    Ok(peek(group)?.is_some())
}

/// Whether the leader, which has ended, chose to: a code of 128 and more is a shell's word for a signal.
fn ended_by_itself(group: Group) -> Result<bool> {
    let status = peek(group)?;
    Ok(status.and_then(|status| status.exit_status()).is_some_and(|code| code < 128))
}

fn peek(group: Group) -> Result<Option<rustix::process::WaitIdStatus>> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(group.leader()), options).map_err(|error| lost_child().cause(error))
}

fn reap(child: &mut Child) -> Result<ExitStatus> {
    child.wait().map_err(|error| lost_child().cause(error))
}

fn lost_child() -> Error {
    Error::failed("cannot wait for the end of nextflow")
}

/// The requests to stop so far.
#[derive(Default)]
struct Stop {
    first: Option<(i32, Instant)>,
    killed: bool,
}

impl Stop {
    /// Acts on a signal that we got: asks the engine to stop, kills it, or takes it for an echo of the last one.
    fn request(&mut self, number: i32, group: Group) -> Option<Event> {
        let Some((_, since)) = self.first else {
            self.first = Some((number, Instant::now()));
            group.ask_leader();
            return Some(Event::Signal { number, count: 1 });
        };
        // A closing terminal hangs up more than once: that is no wish to lose the tidying up.
        if self.killed || number == SIGHUP || since.elapsed() < SAME_REQUEST {
            return None;
        }
        self.killed = true;
        group.kill();
        Some(Event::Signal { number, count: 2 })
    }

    fn outcome(&self, status: ExitStatus) -> Outcome {
        Outcome {
            code: status.code(),
            signal: status.signal(),
            interrupted: self.first.map(|(number, _)| number),
            killed: self.killed,
        }
    }
}
