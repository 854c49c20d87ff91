//! The child's command line, and the same as a script to run by hand.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::plan::Plan;

/// The arguments of Nextflow from `run` on. What the user gave after `--` ends them, untouched and in order.
pub fn arguments(plan: &Plan, session: Option<&str>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["run".into(), "pipeline/main.nf".into()];
    if plan.nextflow_option("-ansi-log").is_none() {
        arguments.extend(["-ansi-log".into(), "false".into()]);
    }
    if plan.nextflow_option("-params-file").is_none() {
        arguments.extend(["-params-file".into(), "params.json".into()]);
    }
    for config in &plan.configs {
        arguments.extend(["-c".into(), config.into()]);
    }
    if let Some(profile) = &plan.profile {
        arguments.extend(["-profile".into(), profile.into()]);
    }
    if let Some(session) = session
        && plan.nextflow_option("-resume").is_none()
    {
        arguments.extend(["-resume".into(), session.into()]);
    }
    arguments.extend(plan.nextflow_args.iter().cloned());
    arguments
}

/// `command.sh`: runs the engine again in the run directory, then publishes what it made.
pub fn script(
    directory: &Path,
    variables: &[(OsString, OsString)],
    engine: &[OsString],
    arguments: &[OsString],
    program: &Path,
) -> Vec<u8> {
    let mut text = b"#!/usr/bin/env bash\n# Runs this run again by hand; -resume reuses the tasks whose work is still there.\nset -e\ncd ".to_vec();
    text.extend(shell_word(directory.as_os_str()));
    text.push(b'\n');
    for (name, value) in variables {
        text.extend_from_slice(b"export ");
        text.extend_from_slice(name.as_bytes());
        text.push(b'=');
        text.extend(shell_word(value));
        text.push(b'\n');
    }
    let words: Vec<Vec<u8>> = engine.iter().chain(arguments).map(|word| shell_word(word)).collect();
    text.extend(words.join(&b' '));
    text.extend_from_slice(b" \"$@\"\n");
    text.extend(shell_word(program.as_os_str()));
    text.extend_from_slice(b" kernel publish --spec run.json\n");
    text
}

/// Words as one line that a shell takes apart again; for people to read.
pub fn line(words: &[OsString]) -> String {
    let words: Vec<Vec<u8>> = words.iter().map(|word| shell_word(word)).collect();
    String::from_utf8_lossy(&words.join(&b' ')).into_owned()
}

/// A word for a POSIX shell: as it is where nothing in it is special, else in single quotes. Any byte may occur.
fn shell_word(word: &OsStr) -> Vec<u8> {
    let bytes = word.as_bytes();
    let safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./=:,@%+".contains(byte);
    if !bytes.is_empty() && bytes.iter().all(safe) {
        return bytes.to_vec();
    }
    let mut quoted = vec![b'\''];
    for byte in bytes {
        match byte {
            b'\'' => quoted.extend_from_slice(b"'\\''"),
            other => quoted.push(*other),
        }
    }
    quoted.push(b'\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_gives_the_shell_back_every_byte() {
        let hostile: Vec<OsString> =
            ["", "two words", "it's", "$HOME;`id`", "\\", "γδ", "a\nb"].map(OsString::from).into();
        let mut line = b"printf '%s\\0'".to_vec();
        for word in &hostile {
            line.push(b' ');
            line.extend(shell_word(word));
        }
        let output =
            std::process::Command::new("sh").arg("-c").arg(OsStr::from_bytes(&line)).output().unwrap();
        let words: Vec<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
        let expected: Vec<&[u8]> = hostile.iter().map(|word| word.as_bytes()).collect();
        assert_eq!(words[..words.len() - 1], expected[..]);
    }
}
