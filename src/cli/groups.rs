//! Options that several commands share.

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use crate::plan::{Given, Resume, Role, Source};
use crate::settings::Flags;

/// Options of every task that runs through Nextflow.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Run options")]
pub struct RunOptions {
    /// Directory for results [default: <workspace>/results]
    #[arg(long, value_name = "DIR")]
    pub outdir: Option<PathBuf>,

    /// Name of the run directory [default: <time>_<method>_<input>]
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub run_name: Option<String>,

    /// Go on from an earlier run, reusing its finished tasks
    ///
    /// Without RUN: the newest run of the same task, method and input. RUN is the name or path of a run directory. Where a run
    /// has done it all, and parameters, inputs and results are as they were, nothing is computed; else what differs is named.
    /// A run that went well has removed its work, and its tasks are then done anew; --keep-work spares that.
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "")]
    pub resume: Option<String>,

    /// Keep the work directory of a run that goes well, as all others do [env: SCFOUNDRY_KEEP_WORK]
    ///
    /// Else its work directory and task cache go once the results are in place; record, trace, cost and log stay.
    #[arg(long)]
    pub keep_work: bool,

    /// GPUs to use, as nvidia-smi numbers them: `0`, `0,1` or `none` [env: SCFOUNDRY_GPU]
    #[arg(long, value_name = "N[,M]", allow_hyphen_values = true)]
    pub gpu: Option<String>,

    /// Directory of model weights [default: <workspace>/data/model_weights] [env: SCFOUNDRY_WEIGHTS_DIR]
    #[arg(long, value_name = "DIR")]
    pub weights_dir: Option<PathBuf>,

    /// Directory for images and environments [default: <workspace>/cache] [env: SCFOUNDRY_CACHE_DIR]
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,

    /// Further Nextflow configuration file; can be given several times
    #[arg(short, long, value_name = "FILE")]
    pub config: Vec<PathBuf>,

    /// Configuration profile of nextflow.config, such as `slurm` [env: SCFOUNDRY_PROFILE]
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,

    /// Nextflow to use [default: PATH, else the managed one] [env: SCFOUNDRY_NEXTFLOW]
    #[arg(long, value_name = "PATH")]
    pub nextflow: Option<PathBuf>,

    /// Java for the managed Nextflow [env: SCFOUNDRY_JAVA]
    #[arg(long, value_name = "PATH")]
    pub java: Option<PathBuf>,

    /// Show the plan, the configuration and the command; write and run nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Turn warnings about unused options into errors
    #[arg(long)]
    pub strict: bool,
}

impl RunOptions {
    pub fn flags(&self) -> Flags {
        Flags {
            nextflow: self.nextflow.clone(),
            java: self.java.clone(),
            weights_dir: self.weights_dir.clone(),
            cache_dir: self.cache_dir.clone(),
            outdir: self.outdir.clone(),
            gpu: self.gpu.clone(),
            keep_work: self.keep_work,
        }
    }

    pub fn resume(&self) -> Option<Resume> {
        self.resume.as_ref().map(|name| match name.as_str() {
            "" => Resume::Latest,
            name => Resume::Named(name.to_owned()),
        })
    }
}

/// The inputs of a task that learns from one data set and labels another.
#[derive(Debug, Clone, Args)]
pub struct Pair {
    /// Labelled data set to learn from
    #[arg(long, value_name = "FILE", required_unless_present = "fitted", conflicts_with = "fitted")]
    pub reference: Option<PathBuf>,

    /// Data set to label
    #[arg(long, value_name = "FILE", required_unless_present = "reference")]
    pub query: Option<PathBuf>,

    /// Model of an earlier run, in place of a reference
    #[arg(long, value_name = "DIR", requires = "query")]
    pub fitted: Option<PathBuf>,
}

impl Pair {
    pub fn inputs(self) -> Vec<(Role, PathBuf)> {
        let roles =
            [(Role::Reference, self.reference), (Role::Query, self.query), (Role::Fitted, self.fitted)];
        roles.into_iter().filter_map(|(role, path)| Some((role, path?))).collect()
    }
}

/// The inputs of a task that scores embeddings.
#[derive(Debug, Clone, Args)]
pub struct Embeddings {
    /// Embeddings: files, a directory or a pattern
    #[arg(short, long, value_name = "PATH", num_args = 1.., required = true)]
    pub embedding: Vec<PathBuf>,

    /// Label of the method in the tables [default: name of the embedding's directory]
    #[arg(short, long, value_name = "LABEL")]
    pub method: Option<String>,
}

impl Embeddings {
    pub fn inputs(self) -> impl Iterator<Item = (Role, PathBuf)> {
        self.embedding.into_iter().map(|path| (Role::Embedding, path))
    }
}

/// Collects the options that a user gave a value.
#[derive(Debug, Default)]
pub struct Collected(pub Vec<Given>);

impl Collected {
    pub fn add<T: Into<Value>>(mut self, name: &str, value: Option<T>) -> Self {
        if let Some(value) = value {
            self.0.push(Given { name: name.to_owned(), value: value.into(), source: Source::Option });
        }
        self
    }
}

/// A number of at least 1, for clap.
pub fn positive(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number) if number >= 1 => Ok(number),
        _ => Err("not a whole number of at least 1".to_owned()),
    }
}
