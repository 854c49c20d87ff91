use std::path::PathBuf;

use clap::ValueEnum;

use super::groups::{Collected, RunOptions};
use super::task::Asked;
use crate::error::Result;
use crate::method::Task;
use crate::plan::Role;

/// Check data sets against what methods expect of them
///
/// Looks at every value of X, the gene names, the label and batch columns, and with `--method` at the method's own needs.
/// Advisory: the exit code is 0 whatever the verdict, unless `--strict` is given; a file that cannot be read soundly
/// (truncated, not HDF5, indices that cannot be right) gives 3.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  scfoundry check --data colon.h5ad
  scfoundry check --data atlas/ --method scgpt --label-key cell_type
  scfoundry check --data colon.h5ad --role reference --strict && scfoundry embed --method pca --data colon.h5ad

See also: `scfoundry embed`, `scfoundry list methods`")]
pub struct Args {
    /// Data sets: files, a directory or a pattern
    #[arg(short, long, value_name = "PATH", num_args = 1.., required = true)]
    pub data: Vec<PathBuf>,

    /// Method whose needs are checked too
    #[arg(short, long, value_name = "NAME")]
    pub method: Option<String>,

    /// obs column with the labels [default: cell_type]
    #[arg(long, value_name = "COLUMN")]
    pub label_key: Option<String>,

    /// obs column with the batches [default: batch_id]
    #[arg(long, value_name = "COLUMN")]
    pub batch_key: Option<String>,

    /// Part the data set is to play
    #[arg(long, value_name = "ROLE")]
    pub role: Option<CheckRole>,

    #[command(flatten)]
    pub run: RunOptions,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum CheckRole {
    /// Its labels are learned from
    Reference,
    /// It is labelled
    Query,
}

pub fn run(args: Args, task: impl FnOnce(Asked, RunOptions) -> Result<()>) -> Result<()> {
    let role = args.role.map(|role| match role {
        CheckRole::Reference => "reference",
        CheckRole::Query => "query",
    });
    let asked = Asked {
        task: Task::Check,
        method: args.method,
        inputs: args.data.into_iter().map(|path| (Role::Data, path)).collect(),
        given: Collected::default()
            .add("label_key", args.label_key)
            .add("batch_key", args.batch_key)
            .add("role", role),
    };
    task(asked, args.run)
}
