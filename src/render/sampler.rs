//! What runs before a task, outside its container: the user's own, the choice of cards, and the sampler of these cards.

use std::path::Path;

use super::groovy::{Script, Value};
use crate::plan::{Plan, Preamble, Stage, Work};
use crate::shell;

/// As many threads as the task was given cores. Not in the script of the task: the number changes no result, and so must not
/// keep a finished task from being reused.
const KERNEL_THREADS: &str = "\"export RAYON_NUM_THREADS=${task.cpus}\"";
const KERNEL_THREADS_ALONE: &str = "{ \"export RAYON_NUM_THREADS=${task.cpus}\" }";

/// The script that writes down what the cards of a task do: its place below the run directory, and its text.
pub const SAMPLER: (&str, &str) =
    ("pipeline/gpu-sampler.sh", include_str!("../../templates/tasks/gpu-sampler.sh"));

/// Whether tasks of the plan have cards to sample.
pub fn samples(plan: &Plan) -> bool {
    plan.stages.iter().any(|stage| is_sampled(plan, stage))
}

fn is_sampled(plan: &Plan, stage: &Stage) -> bool {
    stage.gpu && !plan.gpus.is_empty() && stage.preamble != Preamble::Foreign
}

/// Bash that starts the sampler and leaves it, for the run in the directory `run`. It holds none of the task's files.
pub(super) fn start(plan: &Plan, stage: &Stage, run: &Path) -> Option<String> {
    is_sampled(plan, stage).then(|| {
        let cards = match plan.executor.as_str() {
            "local" => format!("${{SCFOUNDRY_CARD:-{}}}", plan.gpus),
            _ => "${CUDA_VISIBLE_DEVICES-}".to_owned(),
        };
        let script = shell::text(run.join(SAMPLER.0));
        format!("(bash {script} $$ \"{cards}\" </dev/null >/dev/null 2>.gpu.err &)")
    })
}

/// Sets `beforeScript` where there is anything of ours to run.
pub(super) fn before_script(scope: &mut Script, stage: &Stage, sampler: Option<String>) {
    let own = match &stage.preamble {
        Preamble::Text(text) => Some(text.clone()),
        Preamble::None | Preamble::Foreign => None,
    };
    match (&stage.work, own) {
        (Work::Kernel(_), _) if stage.preamble == Preamble::Foreign => {}
        (Work::Kernel(_), Some(own)) => scope.set("beforeScript", Value::Preceded(own, KERNEL_THREADS)),
        (Work::Kernel(_), None) => scope.set("beforeScript", Value::Code(KERNEL_THREADS_ALONE)),
        (Work::Runner(_), own) => {
            let ours: Vec<String> = stage.surroundings.before_script.iter().cloned().chain(sampler).collect();
            if !ours.is_empty() {
                let all: Vec<String> = own.into_iter().chain(ours).collect();
                scope.set("beforeScript", all.join("\n"));
            }
        }
    }
}
