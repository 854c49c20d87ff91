//! Probes: a task is really run on samples of its data, so that what the whole will take can be told from it.
//!
//! ```text
//! request -> choice, samples -> plan, launch, history -> what the samples took
//! ```

mod choice;
mod folder;
mod samples;
#[cfg(test)]
mod tests;

use std::path::Path;

use serde_json::Value;

use crate::clean::{self, Part, Target};
use crate::error::{Error, Kind, Result};
use crate::history::Entry;
use crate::launch::{self, Finished};
use crate::plan::{Context, Plan, Request};
use crate::rundir::RunDir;
use crate::settings::{Origin, Setting, Settings};
use crate::ui::Ui;
use folder::Folder;
use samples::Sampler;

/// Runs what the request asks for on a sample of a third of `cells` cells and on one of `cells`, and gives what each took.
///
/// An input with the most cells gives `cells` of them, the others in proportion. Cells are drawn by the column that the
/// option `label_key` names, where it is there, else evenly; the same request draws the same. The runs are ordinary ones
/// in the workspace of `context`, with its executor, its containers and its cards, but for their results, which nobody
/// sees; the history gets an entry of each. Samples, results and runs are removed, however the probe ends.
///
/// # Errors
/// Usage: there are not more cells than that. Signal: it was stopped. Else what a run of the sample, or of the whole, fails
/// with.
pub fn measure(request: &Request, context: &Context<'_>, cells: usize, ui: &Ui) -> Result<Vec<Entry>> {
    let request = &Request { resume: None, run_name: None, ..request.clone() };
    let whole = Plan::make(request, context)?;
    if let Some(obstacle) = whole.obstacle() {
        return Err(obstacle);
    }
    let most = whole.inputs.iter().map(|input| input.cells).max().unwrap_or(0);
    if cells == 0 {
        return Err(Error::usage("a probe needs at least one cell"));
    }
    if cells >= most {
        return Err(Error::usage(format_args!("a probe with {cells} cells would be the run itself"))
            .cause(format_args!("the data have {most} cells"))
            .hint("name a smaller number of cells, or start the run"));
    }
    let folder = Folder::create(context.workspace, request.task)?;
    let probe = Probe { request, context, whole: &whole, most, folder: folder.path(), ui };
    let mut sizes = vec![(cells as f64 / 3.0).round().max(1.0) as usize, cells];
    sizes.dedup();
    let measured = sizes.into_iter().map(|size| probe.run(size)).collect();
    folder.remove(ui);
    measured
}

struct Probe<'a> {
    request: &'a Request,
    context: &'a Context<'a>,
    whole: &'a Plan,
    /// Cells of the largest input.
    most: usize,
    folder: &'a Path,
    ui: &'a Ui,
}

impl Probe<'_> {
    /// Runs the task on a sample of `cells` cells.
    fn run(&self, cells: usize) -> Result<Entry> {
        let what = self.whole.method.as_deref().unwrap_or(self.whole.task.name());
        self.ui.note(format_args!("probe: {what} on {cells} of {} cells", self.most));
        let sampler = Sampler {
            plan: self.whole,
            label: self.label(),
            share: (cells, self.most),
            folder: self.folder.join(format!("{cells}")),
        };
        let mut inputs = sampler.write()?;
        inputs.extend(self.request.inputs.iter().filter(|(role, _)| !role.is_data()).cloned());
        let request = Request { inputs, ..self.request.clone() };
        let outdir = Setting { value: sampler.folder.join("results"), origin: Origin::Default };
        let settings = Settings { outdir, ..self.context.settings.clone() };
        let context = Context { settings: &settings, ..*self.context };
        let mut plan = Plan::make(&request, &context)?;
        plan.probe = true;
        let failed = |error: Error| error.within(format_args!("the probe with {cells} cells failed"));
        let finished = launch::launch(&plan, context.workspace, &settings, self.ui).map_err(failed)?;
        let Finished { run, record, error, entry, claim, .. } = finished;
        // Only who holds no claim may remove it.
        drop(claim);
        let status = record.status;
        let error = error.map(|error| without_run(error, &run));
        self.remove(run, status);
        match (error, entry) {
            (Some(Error { kind: kind @ Kind::Signal(_), .. }), _) => Err(stopped(kind)),
            (Some(error), _) => Err(failed(error)),
            (None, Some(entry)) => Ok(entry),
            (None, None) => Err(failed(
                Error::failed("it went well, but what it took was not recorded")
                    .hint("leave out what changes the trace, such as `-- -with-trace` or `-stub-run`"),
            )),
        }
    }

    /// The column that cells are drawn by: what the user named, else what the task reads.
    fn label(&self) -> Option<&str> {
        let given = self.request.given.iter().find(|given| given.name == "label_key");
        let value = given.map(|given| &given.value).or_else(|| self.whole.parameters.get("label_key"));
        value.and_then(Value::as_str)
    }

    fn remove(&self, run: RunDir, status: crate::rundir::Status) {
        let target = Target {
            name: run.name(),
            path: run.path().to_owned(),
            part: Part::Run,
            run: Some((run, status)),
            age: None,
        };
        if let Err(error) = clean::remove(&target, self.ui) {
            self.ui.warn(format_args!("some of the probe is still there: {error}"));
        }
    }
}

/// An error without hints at a run that is no more.
fn without_run(mut error: Error, run: &RunDir) -> Error {
    error.hints.retain(|hint| !hint.contains(&run.name()));
    error
}

fn stopped(kind: Kind) -> Error {
    Error::new(kind, "the probe was stopped")
}
