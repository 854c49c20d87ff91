//! The command line before clap: what belongs to Nextflow, what to the pipeline, what to us.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use clap::{Command, CommandFactory};
use serde_json::Value;

use super::Cli;
use crate::error::{Error, Result};
use crate::plan::{Given, Source};

/// A command line taken apart.
#[derive(Debug, Default, PartialEq)]
pub struct Arguments {
    /// For clap.
    pub own: Vec<OsString>,
    /// `--name value` that the task's command does not have: parameters of the pipeline.
    pub passed: Vec<Given>,
    /// All after the first `--`, untouched.
    pub nextflow: Vec<OsString>,
    /// Of `estimate`: the options of the task that it is asked about, and all from `--` on.
    pub rest: Vec<OsString>,
}

/// Commands that hand unknown options to the pipeline and arguments after `--` to Nextflow.
const TASKS: [&str; 6] = ["embed", "transfer", "finetune", "check", "benchmark", "geometry"];

/// Takes the command line apart; the first argument is the program's name.
pub fn split(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments> {
    let all: Vec<OsString> = arguments.into_iter().collect();
    let end = all.iter().position(|argument| argument == "--").unwrap_or(all.len());
    let start = command(&all[..end]);
    if let Some(start) = start.filter(|start| all[*start] == "estimate") {
        return Ok(for_another(&all, start, end));
    }
    let Some(start) = start.filter(|start| TASKS.iter().any(|task| all[*start] == *task)) else {
        return Ok(Arguments { own: all, ..Arguments::default() });
    };
    let task = all[start].to_string_lossy().into_owned();
    let known = known_options(&task);
    let mut result = Arguments {
        own: all[..=start].to_vec(),
        nextflow: all[end..].iter().skip(1).cloned().collect(),
        ..Arguments::default()
    };
    let mut rest = all[start + 1..end].iter().peekable();
    while let Some(argument) = rest.next() {
        let Some((name, attached)) = long_option(argument) else {
            result.own.push(argument.clone());
            continue;
        };
        if let Some(takes_value) = known.get(&name) {
            result.own.push(argument.clone());
            if *takes_value && attached.is_none() {
                result.own.extend(rest.next().cloned());
            }
            continue;
        }
        refuse_respelt(&task, &name, &known)?;
        let value = match attached {
            Some(value) => Some(value),
            None => rest.next_if(|next| is_value(next)).map(|next| next.to_string_lossy().into_owned()),
        };
        let value = value.map_or(Value::Bool(true), |text| typed(&text));
        result.passed.push(Given { name, value, source: Source::Passed });
    }
    Ok(result)
}

/// The command line of `estimate`: its own options, and those of the task.
fn for_another(all: &[OsString], start: usize, end: usize) -> Arguments {
    let known = known_options("estimate");
    let short = |argument: &OsStr| ["-m", "-h", "-q", "-v"].iter().find(|flag| argument == **flag).copied();
    let mut result = Arguments { own: all[..=start].to_vec(), ..Arguments::default() };
    let mut arguments = all[start + 1..end].iter();
    while let Some(argument) = arguments.next() {
        let takes_value = match (long_option(argument), short(argument)) {
            (Some((name, attached)), _) => known.get(&name).map(|takes| *takes && attached.is_none()),
            (None, Some(flag)) => Some(flag == "-m"),
            (None, None) => None,
        };
        match takes_value {
            None => result.rest.push(argument.clone()),
            Some(takes_value) => {
                result.own.push(argument.clone());
                if takes_value {
                    result.own.extend(arguments.next().cloned());
                }
            }
        }
    }
    result.rest.extend_from_slice(&all[end..]);
    result
}

/// Where the command's name stands: the first argument after the program's that is no global option nor its value.
fn command(arguments: &[OsString]) -> Option<usize> {
    let mut position = 1;
    while position < arguments.len() {
        let text = arguments[position].to_string_lossy();
        match text.as_ref() {
            "--workspace" => position += 2,
            option if option.starts_with('-') => position += 1,
            _ => return Some(position),
        }
    }
    None
}

/// Long options of the command by name, and whether a value must follow.
fn known_options(task: &str) -> BTreeMap<String, bool> {
    let command = Cli::command();
    let mut known = BTreeMap::from([("help".to_owned(), false), ("version".to_owned(), false)]);
    let arguments = |command: &Command| {
        let describe = |argument: &clap::Arg| {
            let needs = argument.get_action().takes_values()
                && argument.get_num_args().is_none_or(|range| range.min_values() > 0);
            Some((argument.get_long()?.to_owned(), needs))
        };
        command.get_arguments().filter_map(describe).collect::<Vec<_>>()
    };
    known.extend(arguments(&command));
    known.extend(command.find_subcommand(task).map(arguments).unwrap_or_default());
    known
}

/// `--name` or `--name=value`, if the argument is one.
fn long_option(argument: &OsStr) -> Option<(String, Option<String>)> {
    let text = argument.to_string_lossy();
    let body = text.strip_prefix("--")?;
    match body.split_once('=') {
        Some((name, value)) => Some((name.to_owned(), Some(value.to_owned()))),
        None => Some((body.to_owned(), None)),
    }
}

/// Whether an argument can be the value of the option before it: not an option itself, but perhaps a negative number.
fn is_value(argument: &OsStr) -> bool {
    let text = argument.to_string_lossy();
    !text.starts_with('-') || text.parse::<f64>().is_ok()
}

/// The type a bare value has in the pipeline, as Nextflow's own command line would read it.
fn typed(text: &str) -> Value {
    match text {
        "true" => return Value::Bool(true),
        "false" => return Value::Bool(false),
        _ => {}
    }
    if let Ok(integer) = text.parse::<i64>() {
        return integer.into();
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => number.into(),
        _ => Value::String(text.to_owned()),
    }
}

/// `--batch_size` and `--dryrun` are never pipeline parameters: they are options misspelt, and would do nothing.
fn refuse_respelt(task: &str, name: &str, known: &BTreeMap<String, bool>) -> Result<()> {
    let plain = |text: &str| text.replace(['_', '-'], "").to_lowercase();
    let meant = known.keys().find(|option| plain(option) == plain(name));
    let Some(option) = meant else { return Ok(()) };
    Err(Error::usage(format_args!("--{name} is not an option of `{task}`"))
        .hint(format_args!("did you mean --{option}?")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(line: &[&str]) -> Result<Arguments> {
        split(["scfoundry"].iter().chain(line).map(OsString::from))
    }

    fn passed(line: &[&str]) -> Vec<(String, Value)> {
        arguments(line).unwrap().passed.into_iter().map(|given| (given.name, given.value)).collect()
    }

    #[test]
    fn an_estimate_leaves_the_options_of_the_task() {
        let line =
            "estimate --task transfer -m pca,scgpt --reference a --classifier=knn --json --query b -- -c x";
        let taken = arguments(&line.split(' ').collect::<Vec<_>>()).unwrap();
        assert_eq!(taken.own, ["scfoundry", "estimate", "--task", "transfer", "-m", "pca,scgpt", "--json"]);
        assert_eq!(taken.rest, ["--reference", "a", "--classifier=knn", "--query", "b", "--", "-c", "x"]);
    }

    #[test]
    fn unknown_options_become_parameters() {
        let line = [
            "embed",
            "--max_len",
            "2000",
            "--how=most expr",
            "--flag",
            "--shift",
            "-1.5",
            "--method",
            "scprint",
        ];
        let expected = [
            ("max_len".to_owned(), json!(2000)),
            ("how".to_owned(), json!("most expr")),
            ("flag".to_owned(), json!(true)),
            ("shift".to_owned(), json!(-1.5)),
        ];
        assert_eq!(passed(&line), expected);
        assert_eq!(arguments(&line).unwrap().own, ["scfoundry", "embed", "--method", "scprint"]);
    }

    #[test]
    fn values_of_known_options_are_left_alone() {
        let line = ["embed", "--data", "a.h5ad", "b.h5ad", "--gpu", "--strange", "--resume", "--dry-run"];
        let split = arguments(&line).unwrap();
        assert!(split.passed.is_empty());
        assert_eq!(split.own.len(), line.len() + 1);
    }

    #[test]
    fn all_after_the_dashes_is_nextflows() {
        let split = arguments(&["embed", "--data", "x", "--", "-c", "my conf", "--", "tail", ""]).unwrap();
        assert_eq!(split.nextflow, ["-c", "my conf", "--", "tail", ""]);
    }

    #[test]
    fn a_respelt_option_is_refused() {
        let error = arguments(&["embed", "--batch_size", "8"]).unwrap_err();
        assert_eq!(error.hints, ["did you mean --batch-size?"]);
    }

    #[test]
    fn the_command_is_the_first_word() {
        assert!(arguments(&["kernel", "check", "--spec", "x"]).unwrap().passed.is_empty());
        let split = arguments(&["--workspace", "embed", "-q", "embed", "--max_len", "5"]).unwrap();
        assert_eq!(split.passed.len(), 1);
    }

    #[test]
    fn other_commands_are_left_to_clap() {
        let split = arguments(&["list", "methods", "--strange"]).unwrap();
        assert_eq!(split.own.len(), 4);
    }
}
