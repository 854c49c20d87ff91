//! `--dry-run`: the plan as a person or a program reads it.

use serde_json::json;

use crate::error::{Error, Result};
use crate::launch;
use crate::plan::{Plan, Work};
use crate::render;
use crate::settings::Settings;
use crate::shell;
use crate::trace::units::{format_bytes, format_duration};
use crate::ui::Ui;

/// Prints the plan, the rendered configuration and the command. Nothing is written.
pub fn show(plan: &Plan, settings: &Settings, ui: &Ui) -> Result<()> {
    let plan = &launch::foresee(plan, settings, ui)?;
    if let Err(error) = launch::check_space(plan, None) {
        ui.warn(error);
    }
    let program = std::env::current_exe().map_err(Error::io("find", "scfoundry".as_ref()))?;
    let run = plan.workspace.join("runs").join(plan.task.name()).join(&plan.run_stem);
    let work = run.join("work");
    let config = render::run_config(plan, &program.to_string_lossy(), &run, &work.to_string_lossy());
    let arguments = render::arguments(plan, plan.resume.as_ref().map(|_| "SESSION"));
    if ui.json {
        let command: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
        return ui
            .document(&json!({ "plan": plan, "run": run, "nextflow_config": config, "command": command }));
    }
    for (name, value) in describe(plan) {
        ui.line(format_args!("{name:<11} {value}"))?;
    }
    ui.line(format_args!("{:<11} {}", "Run", run.display()))?;
    ui.line(format_args!("{:<11} nextflow {}", "Command", shell::line(&arguments)))?;
    ui.line(format_args!("\nnextflow.config\n{}", indented(&config)))
}

fn describe(plan: &Plan) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let with = plan.method.as_ref().map_or(String::new(), |method| format!(" with {method}"));
    lines.push(("Task", format!("{}{with}", plan.task)));
    let new = if plan.new_workspace { " (will be made)" } else { "" };
    lines.push(("Workspace", format!("{}{new}", plan.workspace.display())));
    for input in &plan.inputs {
        let size = format_bytes(input.bytes);
        let path = input.path.display();
        lines.push(("Input", format!("{path}: {} cells x {} genes, {size}", input.cells, input.genes)));
    }
    for stage in &plan.stages {
        let work = match &stage.work {
            Work::Kernel(name) => format!("native kernel {name}, no container"),
            Work::Runner(script) => {
                let place = stage.container.as_deref().unwrap_or("an environment of its own");
                let gpu = if stage.gpu { cards(plan) } else { String::new() };
                format!("{script} in {place} ({}){gpu}", plan.runtime)
            }
        };
        lines.push(("Step", format!("{}: {work}", stage.process)));
    }
    lines.push(("Executor", plan.executor.clone()));
    lines.extend(requests(plan).map(|request| ("Asks for", request)));
    for name in plan.parameters["read"].as_array().into_iter().flatten().filter_map(|name| name.as_str()) {
        if let Some(value) = plan.parameters.get(name).filter(|value| !value.is_null()) {
            lines.push(("Parameter", format!("{name} = {value}")));
        }
    }
    if let Some(batch) = &plan.batch {
        lines.push(("Batch size", batch.to_string()));
    }
    for weight in &plan.weights {
        let size = weight.bytes.map_or(String::new(), |bytes| format!(", {}", format_bytes(bytes)));
        let state = if weight.present { "there" } else { "missing" };
        lines.push(("Weights", format!("{} ({state}{size})", weight.path.display())));
    }
    for output in &plan.outputs {
        lines.push(("Output", output.path.display().to_string()));
    }
    if plan.disk.bytes > 0 {
        let shares: Vec<String> = plan
            .disk
            .shares
            .iter()
            .map(|share| format!("{} {}", share.part.name(), format_bytes(share.bytes)))
            .collect();
        lines.push(("Disk", format!("at least {} ({})", format_bytes(plan.disk.bytes), shares.join(", "))));
    }
    if let Some(origin) = &plan.resume {
        lines.push(("Resumes", origin.display().to_string()));
    }
    if let Some(run) = &plan.done_by {
        lines.push(("Done by", format!("{}: nothing to do", run.display())));
    }
    if let Some(reason) = &plan.unavailable {
        lines.push(("Cannot run", reason.clone()));
    }
    lines
}

/// The cards, and how they were chosen where that is not by number.
fn cards(plan: &Plan) -> String {
    let (numbers, choice) = (plan.gpus.to_string(), plan.gpu_wish.choice.to_string());
    match (numbers.as_str(), plan.executor.as_str()) {
        ("", _) => ", GPU none".to_owned(),
        (numbers, "local") if numbers != choice => format!(", GPU {numbers} ({choice})"),
        (numbers, "local") => format!(", GPU {numbers}"),
        _ => ", a GPU that the scheduler chooses".to_owned(),
    }
}

/// What each process asks a scheduler for, for its largest input; nothing on this machine.
fn requests(plan: &Plan) -> impl Iterator<Item = String> {
    plan.stages.iter().filter_map(move |stage| {
        let asks = &stage.asks;
        let parts = [
            asks.cpus.filter(|_| plan.executor != "local").map(|cpus| format!("{cpus} CPUs")),
            asks.memory_bytes.as_ref().map(|amount| format_bytes(amount.largest)),
            asks.time_seconds.as_ref().map(|amount| format_duration(amount.largest.saturating_mul(1000))),
            asks.accelerator.map(|count| format!("{count} GPU")),
            asks.cluster_options.clone(),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("{}: {}", stage.process, parts.join(", ")))
    })
}

fn indented(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("    {line}\n")).collect::<String>().trim_end().to_owned()
}
