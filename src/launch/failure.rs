//! Whether a run went well, and if not, the one error that says why.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::cost::{self, CostSummary, Facts};
use crate::error::{Error, Kind};
use crate::nextflow::{self, Outcome};
use crate::plan::{Plan, Runtime};
use crate::rundir::RunDir;
use crate::trace::{Status, TaskRecord, Trace};

/// Lines of a failed task's log that are shown.
const TAIL: usize = 8;

/// Lines that are shown of what the engine printed, from its first error on: it names the command before its words.
const ENGINE_LINES: usize = 16;

/// What a run is judged by.
pub struct Evidence<'a> {
    pub outcome: Outcome,
    pub trace: Option<&'a Trace>,
    pub cost: Option<&'a CostSummary>,
    /// Results that are in place.
    pub published: &'a [PathBuf],
    /// Why a result could not be put in place.
    pub unplaced: Option<Error>,
}

/// The error of a run, or `None` when it went well.
pub fn judge(plan: &Plan, run: &RunDir, evidence: Evidence<'_>) -> Option<Error> {
    let Evidence { outcome, trace, cost, published, unplaced } = evidence;
    if let Some(signal) = outcome.interrupted {
        return Some(
            Error::new(Kind::of_signal(signal), "the run was stopped")
                .hint(format_args!("go on with `{}`", plan.typed.resume(&run.name()))),
        );
    }
    let tasks = trace.map_or(&[][..], |trace| trace.tasks.as_slice());
    let failed: Vec<&TaskRecord> = unrepaired(tasks);
    if let Some(first) = failed.first() {
        return Some(failed_tasks(plan, run, &failed, first, tasks.len()));
    }
    if !outcome.success() {
        return Some(engine_failure(plan, run, &outcome));
    }
    if let Some(task) = cost.and_then(|cost| cost.tasks.iter().find(|task| task.memory_kill.is_some())) {
        return Some(
            Error::failed(format_args!(
                "{} was killed for memory although it ended with exit code 0",
                task.name
            ))
            .cause(task.memory_kill.clone().unwrap_or_default())
            .hint("its output may be cut short; give it more memory in nextflow.config and run it again"),
        );
    }
    unplaced.or_else(|| unseen_end(plan, tasks)).or_else(|| missing_outputs(plan, tasks, published))
}

/// A task that is called complete although nobody saw its exit code. In a trace of the user's the column may be left out.
fn unseen_end(plan: &Plan, tasks: &[TaskRecord]) -> Option<Error> {
    let own = plan.nextflow_option("-with-trace").is_none() && plan.nextflow_option("-stub-run").is_none();
    let task = tasks.iter().find(|task| own && task.status == Status::Completed && task.exit.is_none())?;
    Some(
        Error::failed(format_args!("{} is called complete, but without an exit code", task.name))
            .cause("its end was not seen, so its output may be cut short")
            .hint("ask the batch system about its job, and run it again"),
    )
}

/// Failed tasks that no later attempt made good.
fn unrepaired(tasks: &[TaskRecord]) -> Vec<&TaskRecord> {
    let good: HashSet<&str> = tasks
        .iter()
        .filter(|task| matches!(task.status, Status::Completed | Status::Cached))
        .map(|task| task.name.as_str())
        .collect();
    tasks.iter().filter(|task| task.status == Status::Failed && !good.contains(task.name.as_str())).collect()
}

fn failed_tasks(plan: &Plan, run: &RunDir, failed: &[&TaskRecord], first: &TaskRecord, all: usize) -> Error {
    let folder = first.workdir.as_deref();
    let words = folder.map(|folder| cost::log_tail(folder, TAIL)).unwrap_or_default();
    let exit = first.exit.map_or("no exit code".to_owned(), |code| format!("exit {code}"));
    // A native kernel says itself what is wrong with its input, in our own words.
    let own = words.iter().position(|line| line.starts_with("error: "));
    if let (true, Some(position)) = (failed.iter().all(|task| task.exit == Some(3)), own) {
        return rejected(run, &words[position..], failed.len());
    }
    let message = match failed.len() {
        1 => format!("{} failed, {exit}", first.name),
        count => format!("{count} of {all} tasks failed; first: {}, {exit}", first.name),
    };
    let mut error = Error::failed(message);
    let facts = facts(plan);
    match cost::diagnose(first, folder, &facts) {
        Some(diagnosis) => error = error.cause(diagnosis.what).hint(diagnosis.hint),
        None if !words.is_empty() => error = error.cause(words.join("\n")),
        // It said nothing, as when a scheduler refused it: then the engine knows why.
        None => error = error.cause(last_words(&output(run)).join("\n")),
    }
    if let Some(folder) = folder {
        error = error.hint(format_args!("its log: {}", folder.join(".command.log").display()));
    }
    error.hint(format_args!("once mended, go on with `{}`", plan.typed.resume(&run.name())))
}

/// The kernel's own error, told again: the message, its causes and its hints.
fn rejected(run: &RunDir, lines: &[String], count: usize) -> Error {
    let mut error = Error::input(lines[0].trim_start_matches("error: "));
    for line in &lines[1..] {
        if let Some(cause) = line.trim_start().strip_prefix("Caused by: ") {
            error = error.cause(cause);
        } else if let Some(hint) = line.strip_prefix("hint: ") {
            error = error.hint(hint);
        }
    }
    if count > 1 {
        error = error.cause(format_args!(
            "{} other inputs were rejected too, see {}",
            count - 1,
            run.path().display()
        ));
    }
    error
}

fn facts(plan: &Plan) -> Facts {
    let number = |name: &str| plan.parameters.get(name).and_then(serde_json::Value::as_u64);
    let batch_size = number("batch_size").or_else(|| number("integration_batch_size"));
    Facts {
        batch_size,
        ignores_batch_size: batch_size.is_none(),
        engine: (plan.runtime != Runtime::None).then(|| plan.runtime.name().to_owned()),
        gpu: !plan.gpus.is_empty() && plan.stages.iter().any(|stage| stage.gpu),
    }
}

/// Nextflow ended badly with no failed task to show for it.
fn engine_failure(plan: &Plan, run: &RunDir, outcome: &Outcome) -> Error {
    let output = output(run);
    if let Some(error) = nextflow::outdated(&output) {
        return error;
    }
    let kind = match (outcome.code, outcome.signal) {
        (_, Some(_)) | (Some(0 | 1) | None, _) => Kind::Failed,
        (Some(code), _) => Kind::Engine(u8::try_from(code).unwrap_or(1)),
    };
    let how = match (outcome.code, outcome.signal) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "no exit code".to_owned(),
    };
    let mut error = Error::new(kind, format_args!("Nextflow failed, {how}"));
    let said = last_words(&output);
    let known = cost::diagnose_log(&said.join("\n"), &facts(plan));
    if let Some(diagnosis) = known {
        error = error.cause(diagnosis.what).hint(diagnosis.hint);
    } else if !said.is_empty() {
        error = error.cause(said.join("\n"));
    }
    error = error.hint(format_args!("its log: {}", run.join("nextflow.log").display()));
    match run.join(".nextflow/history").is_file() {
        true => error.hint(format_args!("once mended, go on with `{}`", plan.typed.resume(&run.name()))),
        false => error,
    }
}

/// What the engine printed.
fn output(run: &RunDir) -> String {
    let bytes = std::fs::read(run.join("nextflow.out")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The end of what the engine printed, from its first error on.
fn last_words(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let start =
        lines.iter().position(|line| line.contains("ERROR")).unwrap_or(lines.len().saturating_sub(TAIL));
    lines[start..].iter().take(ENGINE_LINES).map(|line| line.to_string()).collect()
}

/// An engine that did its tasks and left no result has not done its work. One that ran no task (`-preview`) was not asked to.
fn missing_outputs(plan: &Plan, tasks: &[TaskRecord], published: &[PathBuf]) -> Option<Error> {
    let missing = plan.outputs.iter().find(|output| !published.contains(&output.path))?;
    if tasks.is_empty() {
        return None;
    }
    Some(
        Error::failed(format_args!("the run ended well but {} was not written", missing.path.display()))
            .hint("this is a fault of scfoundry's pipeline; please report it with the run directory"),
    )
}
