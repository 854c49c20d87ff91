use clap::Subcommand;
use serde_json::json;

use super::Global;
use super::surroundings::Surroundings;
use crate::error::Result;
use crate::method::{Catalogue, Origin, Profile, RunnerKind, Task, built_in_runner};
use crate::settings::Flags;
use crate::table::{Column, Table, terminal_width};
use crate::ui::Ui;

/// List methods or tasks
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  scfoundry list methods
  scfoundry list methods --task finetune
  scfoundry list methods --json | jq -r '.methods[] | select(.gpu) | .name'")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the methods, the workspace's own among them
    Methods {
        /// Only methods that can do this task
        #[arg(long, value_name = "TASK")]
        task: Option<Task>,
    },
    /// List the tasks and how many methods can do each
    Tasks,
}

pub fn run(args: Args, global: &Global, ui: &Ui) -> Result<()> {
    let catalogue = Surroundings::find(global, &Flags::default())?.catalogue()?;
    match args.what {
        What::Methods { task } => methods(&catalogue, task, ui),
        What::Tasks => tasks(&catalogue, ui),
    }
}

fn methods(catalogue: &Catalogue, task: Option<Task>, ui: &Ui) -> Result<()> {
    let wanted = |profile: &&Profile| match task {
        Some(task) if task.is_done_by_a_method() => profile.supports(task),
        _ => true,
    };
    let profiles: Vec<&Profile> = catalogue.iter().filter(wanted).collect();
    if ui.json {
        return ui.document(&json!({ "schema": 1, "methods": profiles }));
    }
    let mut table = Table::new([
        Column::text("method"),
        Column::text("category"),
        Column::text("tasks"),
        Column::text("GPU"),
        Column::text("genes"),
        Column::number("dim"),
        Column::number("batch"),
        Column::number("cost"),
        Column::text("runs here"),
    ]);
    for profile in profiles {
        let tasks: Vec<&str> = profile.tasks.iter().map(|task| task.name()).collect();
        let number = |value: Option<u32>| value.map_or(String::new(), |value| value.to_string());
        table.row([
            profile.name.clone(),
            profile.category.to_string(),
            tasks.join(" "),
            yes(profile.gpu),
            format!("{:?}", profile.genes.ids).to_lowercase(),
            number(profile.dimension),
            number(profile.batch(task.unwrap_or(Task::Embed)).map(|(_, size)| size)),
            profile.cost_class.to_string(),
            yes(runs_here(profile, catalogue, task)),
        ]);
    }
    ui.line(table.render(terminal_width()))
}

/// Its kernel or its script is in this build, or its script beside its profile.
fn runs_here(profile: &Profile, catalogue: &Catalogue, task: Option<Task>) -> bool {
    match (profile.runner.kind, catalogue.origin(&profile.name)) {
        (RunnerKind::Native, _) => crate::kernel::NAMES.contains(&profile.runner.entry.as_str()),
        (_, Some(Origin::File(toml))) => toml.with_file_name(&profile.runner.entry).is_file(),
        _ => built_in_runner(&profile.runner.entry)
            .is_some_and(|runner| task.is_none_or(|task| runner.tasks.contains(&task))),
    }
}

fn yes(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

fn tasks(catalogue: &Catalogue, ui: &Ui) -> Result<()> {
    let count = |task: Task| match task.is_done_by_a_method() {
        true => Some(catalogue.for_task(task).count()),
        false => None,
    };
    if ui.json {
        let tasks: Vec<_> = Task::ALL
            .iter()
            .map(|task| json!({ "task": task, "about": about(*task), "methods": count(*task) }))
            .collect();
        return ui.document(&json!({ "schema": 1, "tasks": tasks }));
    }
    let mut table =
        Table::new([Column::text("task"), Column::number("methods"), Column::text("what it does")]);
    for task in Task::ALL {
        let methods = count(task).map_or(String::new(), |count| count.to_string());
        table.row([task.name().to_owned(), methods, about(task).to_owned()]);
    }
    ui.line(table.render(terminal_width()))
}

fn about(task: Task) -> &'static str {
    match task {
        Task::Embed => "embed cells with a method",
        Task::Transfer => "label a query with a classifier on a reference's embedding",
        Task::Finetune => "train a method's model on labelled cells, label others with it",
        Task::Check => "check data sets against what methods expect",
        Task::Benchmark => "score embeddings against labels and batches",
        Task::Geometry => "probe the geometry of embeddings",
    }
}
