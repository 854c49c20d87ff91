//! What all task commands do once their arguments are read: plan, show or launch.

use std::path::PathBuf;

use serde_json::json;

use super::arguments::Arguments;
use super::groups::{Collected, RunOptions};
use super::surroundings::Surroundings;
use super::{Global, dry_run, estimate, resume};
use crate::clean;
use crate::error::Result;
use crate::launch::{self, Finished};
use crate::method::Task;
use crate::plan::{self, Plan, Request, Role, Typed};
use crate::ui::Ui;
use crate::workspace::Workspace;

/// What a task command makes of its arguments.
#[derive(Debug)]
pub struct Asked {
    pub task: Task,
    pub method: Option<String>,
    pub inputs: Vec<(Role, PathBuf)>,
    pub given: Collected,
}

/// Plans the task and shows or runs it.
pub fn run(asked: Asked, options: RunOptions, arguments: Arguments, global: &Global, ui: &Ui) -> Result<()> {
    let around = Surroundings::find(global, &options.flags())?;
    let catalogue = around.catalogue()?;
    let limits = options.limits();
    let request = request(asked, &options, arguments);
    let mut plan = make(&request, &around, &catalogue)?;
    plan.warnings.extend(misplaced(&plan));
    for warning in &plan.warnings {
        ui.warn(warning);
    }
    if options.dry_run {
        return dry_run::show(&plan, &around.settings, ui);
    }
    if let Some(run) = &plan.done_by {
        let finished = resume::taken_over(run)?;
        let name = finished.run.name();
        ui.note(format_args!("nothing to do: run {name} made these results, and nothing has changed since"));
        return report(&plan, finished, ui);
    }
    if let Some(obstacle) = plan.obstacle() {
        return Err(obstacle);
    }
    if !limits.is_empty() {
        limits
            .check(&estimate::of(&plan, &around.settings, ui)?, plan.stages.iter().any(|stage| stage.gpu))?;
    }
    let finished = launch::launch(&plan, &around.workspace, &around.settings, ui)?;
    if !plan.keep_work {
        remove_work(&finished, &around.workspace, ui);
    }
    report(&plan, finished, ui)
}

/// What was typed, as the plan is made from it.
pub fn request(asked: Asked, options: &RunOptions, arguments: Arguments) -> Request {
    let mut given = asked.given.0;
    given.extend(arguments.passed);
    Request {
        task: asked.task,
        method: asked.method,
        inputs: asked.inputs,
        given,
        strict: options.strict,
        run_name: options.run_name.clone(),
        resume: options.resume(),
        configs: options.config.clone(),
        profile: options.profile.clone(),
        nextflow_args: arguments.nextflow,
        typed: Typed(std::env::args_os().collect()),
    }
}

/// Removes what only served the tasks of a run whose results are in place.
fn remove_work(finished: &Finished, workspace: &Workspace, ui: &Ui) {
    let Some(claim) = finished.claim.as_ref().filter(|_| finished.whole) else { return };
    let run = &finished.run;
    let origin = finished.record.origin.as_deref().unwrap_or(run.path());
    if let Err(error) = clean::remove_served(run, origin, &workspace.runs(), claim) {
        let hints: String = error.hints.iter().map(|hint| format!("\n  {hint}")).collect();
        ui.warn(format_args!("the run went well, but some of its work is still there: {error}{hints}"));
    }
}

/// The local time that names a run.
pub fn stamp() -> String {
    jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string()
}

/// Decides the run, and whether an earlier one is gone on from.
pub fn make(request: &Request, around: &Surroundings, catalogue: &crate::method::Catalogue) -> Result<Plan> {
    let stamp = stamp();
    let mut plan = Plan::make(request, &around.context(catalogue, &stamp))?;
    resume::decide(request, &mut plan, &around.workspace.runs())?;
    Ok(plan)
}

fn labels_a_query(plan: &Plan) -> bool {
    matches!(plan.task, Task::Transfer | Task::Finetune)
}

/// Arguments after `--` that will not do what they look like.
fn misplaced(plan: &Plan) -> Vec<String> {
    let mut warnings = Vec::new();
    let here = std::env::current_dir().unwrap_or_default();
    for (position, argument) in plan.nextflow_text.iter().enumerate() {
        let value = plan.nextflow_text.get(position + 1);
        match (argument.as_str(), value) {
            ("--resume", _) => warnings.push(
                "`--resume` after `--` is a parameter of the pipeline; Nextflow's option is `-resume`, and ours goes before `--`"
                    .to_owned(),
            ),
            ("-c" | "-config" | "-params-file", Some(file)) if plan::is_relative_file(file, &here) => {
                warnings.push(format!(
                    "`{argument} {file}` is looked up in the run directory, not here; write the whole path"
                ));
            }
            _ => {}
        }
    }
    warnings
}

/// Tells how the run ended: the results on stdout, the cost on stderr, or the error.
fn report(plan: &Plan, finished: Finished, ui: &Ui) -> Result<()> {
    if ui.json {
        let mut document = json!({
            "schema": 1,
            "run": finished.run.path(),
            "status": finished.record.status,
            "exit_code": finished.record.exit_code,
            "computed": finished.computed,
            "outputs": finished.published,
            "cost": finished.cost,
        });
        if plan.task == Task::Check {
            document["reports"] = json!(super::report::documents(&finished)?);
        }
        if labels_a_query(plan) {
            document["report"] = json!(super::transfer::document(&finished)?);
        }
        ui.document(&document)?;
    } else {
        if plan.task == Task::Benchmark {
            super::scores::print_ranking(&finished, ui)?;
        }
        super::cost::print_after_run(&finished, ui);
        if plan.task == Task::Check {
            super::report::print_reports(&finished, ui)?;
        } else {
            if plan.task == Task::Finetune {
                super::finetune::print_validation(&finished, ui)?;
            }
            if labels_a_query(plan) {
                super::transfer::print_report(&finished, ui)?;
            }
            for path in &finished.published {
                ui.line(path.display())?;
            }
        }
    }
    match finished.error {
        Some(error) => Err(error),
        None if plan.task == Task::Check && plan.strict => super::report::verdict(&finished),
        None => Ok(()),
    }
}
