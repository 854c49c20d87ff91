//! What an exit code tells by itself, where no line of a log did.

use super::signs::no_shared_memory;
use super::{Case, Diagnosis, quoted};

/// Says what the exit code of a failed task means, if it is one of those that tell.
pub(super) fn explain(case: &Case<'_>, logs: &[String]) -> Option<Diagnosis> {
    let Some(code) = case.exit() else {
        return Some(Diagnosis::new(
            "ended without an exit code: killed from outside, cancelled, or its machine was lost",
            "ask the batch system about the job, then resume the run",
        ));
    };
    Some(match code {
        0 => Diagnosis::new(
            "ended well but without the files it should leave",
            "read its log for warnings, and report this with the log if it says nothing",
        ),
        125 => Diagnosis::new(
            "the container did not start",
            format!(
                "try the \"{} run\" line of .command.run in the task's work directory by hand",
                if case.engine().is_empty() { "docker" } else { case.engine() }
            ),
        ),
        126 => Diagnosis::new(
            "a command was found but may not be executed",
            "check its mode, and that the image was built for this machine's processor",
        ),
        127 => missing_command(case, logs),
        // 9 and 15 are what some batch systems make of 137 and 143.
        137 | 9 => case.out_of_memory(),
        140 => case.out_of_time("exit 140"),
        143 | 15 => case.out_of_time("signal TERM"),
        130 => Diagnosis::new("interrupted", "resume the run to go on"),
        132 => Diagnosis::new(
            "an illegal instruction: the software was built for a newer processor (AVX?)",
            "use a newer machine, or an image built for this one",
        ),
        134 => Diagnosis::new("the program aborted itself", "read the last lines of its log"),
        135 => no_shared_memory(case),
        139 => Diagnosis::new(
            "a segmentation fault: the program touched memory that is not its own",
            "often a driver or library that does not fit the image; run \"scfoundry doctor\"",
        ),
        _ => return None,
    })
}

fn missing_command(case: &Case<'_>, logs: &[String]) -> Diagnosis {
    let line = logs.iter().flat_map(|log| log.lines().rev()).find(|line| line.contains("not found"));
    let place =
        if case.engine().is_empty() { "on this machine".to_owned() } else { format!("in {}", case.image()) };
    Diagnosis::new(
        match line {
            Some(line) => format!("a command is missing: {}", quoted(line)),
            None => "a command is missing".to_owned(),
        },
        format!("it must be installed {place}"),
    )
}
