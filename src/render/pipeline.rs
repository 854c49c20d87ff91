//! The pipeline of a task: one workflow and the modules it uses, embedded in the binary.

use crate::method::Task;

macro_rules! pipeline_file {
    ($path:literal) => {
        include_str!(concat!("../../templates/pipeline/", $path))
    };
}

/// Paths below the run directory and contents of the files that the task's pipeline consists of, `main.nf` first.
///
/// Only what the task uses is written, since the engine compiles all that it finds included.
pub fn pipeline(task: Task) -> Vec<(&'static str, &'static str)> {
    let specification = ("pipeline/modules/specification.nf", pipeline_file!("modules/specification.nf"));
    let embed = ("pipeline/modules/embed.nf", pipeline_file!("modules/embed.nf"));
    match task {
        Task::Embed => vec![("pipeline/main.nf", pipeline_file!("embed.nf")), embed, specification],
        Task::Transfer => vec![
            ("pipeline/main.nf", pipeline_file!("transfer.nf")),
            embed,
            ("pipeline/modules/project.nf", pipeline_file!("modules/project.nf")),
            ("pipeline/modules/classify.nf", pipeline_file!("modules/classify.nf")),
            specification,
        ],
        Task::Finetune => vec![
            ("pipeline/main.nf", pipeline_file!("finetune.nf")),
            ("pipeline/modules/train.nf", pipeline_file!("modules/train.nf")),
            ("pipeline/modules/predict.nf", pipeline_file!("modules/predict.nf")),
            specification,
        ],
        Task::Check => vec![
            ("pipeline/main.nf", pipeline_file!("check.nf")),
            ("pipeline/modules/check.nf", pipeline_file!("modules/check.nf")),
            specification,
        ],
        Task::Benchmark => vec![
            ("pipeline/main.nf", pipeline_file!("benchmark.nf")),
            ("pipeline/modules/benchmark.nf", pipeline_file!("modules/benchmark.nf")),
            ("pipeline/modules/rank.nf", pipeline_file!("modules/rank.nf")),
            specification,
        ],
        Task::Geometry => vec![
            ("pipeline/main.nf", pipeline_file!("geometry.nf")),
            ("pipeline/modules/geometry.nf", pipeline_file!("modules/geometry.nf")),
            ("pipeline/modules/tabulate.nf", pipeline_file!("modules/tabulate.nf")),
            specification,
        ],
    }
}
