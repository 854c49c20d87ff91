//! A question to another program, such as a daemon's client, with a limit on how long it may think.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long a container engine or a scheduler may take to answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// How long a killed command is waited for.
const GRACE: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(20);

/// What the command prints on stdout, if it ends well and in time.
///
/// # Errors
/// Why there is no answer, in half a sentence that begins with the name of the command.
pub(crate) fn ask(command: &mut Command, limit: Duration) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("{name} was not found in PATH"),
        _ => format!("{name} does not start: {error}"),
    })?;
    let (answer, complaint) = (read(child.stdout.take()), read(child.stderr.take()));
    let deadline = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < deadline => std::thread::sleep(POLL),
            Ok(None) => {
                // It may have ended by now, and then is only reaped; one that hangs in a driver cannot even be killed.
                let _ = child.kill();
                let reaped = Instant::now() + GRACE;
                while matches!(child.try_wait(), Ok(None)) && Instant::now() < reaped {
                    std::thread::sleep(POLL);
                }
                return Err(format!("{name} does not answer within {} s", limit.as_secs()));
            }
            Ok(Some(status)) if status.success() => return Ok(said(&answer)),
            Ok(Some(status)) => {
                // Some complain on stdout.
                let last = |words: String| {
                    words.lines().rev().find(|line| !line.trim().is_empty()).map(str::to_owned)
                };
                let words = last(said(&complaint)).or_else(|| last(said(&answer)));
                return Err(format!("{name} fails: {}", words.unwrap_or_else(|| status.to_string())));
            }
            Err(error) => return Err(format!("{name} is lost: {error}")),
        }
    }
}

/// Reads beside the waiting, so that a full pipe stops nobody.
fn read(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What could be read counts.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

/// What was read; nothing where a process in the background still holds the pipe.
fn said(receiver: &Receiver<String>) -> String {
    receiver.recv_timeout(Duration::from_secs(1)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Result<String, String> {
        ask(Command::new("sh").args(["-c", script]), limit)
    }

    #[test]
    fn an_answer_a_refusal_and_silence_are_told_apart() {
        assert_eq!(shell("seq 20000 | tail -n 1", PATIENCE), Ok("20000\n".to_owned()));
        let refusal = shell("echo 'no daemon' >&2; exit 1", PATIENCE);
        assert_eq!(refusal, Err("sh fails: no daemon".to_owned()));
        assert_eq!(shell("echo 'no card'; exit 6", PATIENCE), Err("sh fails: no card".to_owned()));
        let started = Instant::now();
        let silence = shell("exec sleep 60", Duration::from_secs(1));
        assert_eq!(silence, Err("sh does not answer within 1 s".to_owned()));
        assert!(started.elapsed() < Duration::from_secs(10));
        let absent = ask(&mut Command::new("no-such-engine"), PATIENCE);
        assert_eq!(absent, Err("no-such-engine was not found in PATH".to_owned()));
    }
}
