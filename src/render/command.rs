//! The child's command line, and the same as a script to run by hand.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::plan::Plan;
use crate::shell;

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
    text.extend(shell::word(directory.as_os_str()));
    text.push(b'\n');
    for (name, value) in variables {
        text.extend_from_slice(b"export ");
        text.extend_from_slice(name.as_bytes());
        text.push(b'=');
        text.extend(shell::word(value));
        text.push(b'\n');
    }
    let words: Vec<Vec<u8>> = engine.iter().chain(arguments).map(|word| shell::word(word)).collect();
    text.extend(words.join(&b' '));
    text.extend_from_slice(b" \"$@\"\n");
    text.extend(shell::word(program.as_os_str()));
    text.extend_from_slice(b" kernel publish --spec run.json\n");
    text
}
