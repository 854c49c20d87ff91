//! Options that several commands share.

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use crate::estimate::Limits;
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

    /// GPUs to use: `auto`, `0`, `0,1`, a UUID or `none` [env: SCFOUNDRY_GPU]
    ///
    /// Numbers are those of nvidia-smi. `auto` takes a free card, the one with most free memory. A card belongs to one run at a
    /// time: others wait for it, and go on as soon as it is given back. One on which other programs compute is left alone by
    /// `auto`, and used with a warning where it was named. On a cluster the scheduler gives the cards. Default: `params.gpu_id`
    /// of nextflow.config. `scfoundry gpus` shows the cards and who has them.
    #[arg(long, value_name = "CARDS", allow_hyphen_values = true)]
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

    /// Start nothing that may take longer, by what such runs have taken
    ///
    /// In hours, such as 0.5. The upper bound of `scfoundry estimate` counts, with the engine's start. A run of which nothing was
    /// ever measured is not started either: a limit is a promise.
    #[arg(long, value_name = "HOURS", value_parser = hours)]
    pub max_hours: Option<f64>,

    /// Start nothing whose tasks may need more memory of a GPU, such as 20G, by what such runs have needed
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_gpu_memory: Option<u64>,

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

    pub fn limits(&self) -> Limits {
        Limits { hours: self.max_hours, gpu_bytes: self.max_gpu_memory }
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

/// A positive number of hours, for clap.
pub fn hours(text: &str) -> Result<f64, String> {
    let hours = text.parse().ok().filter(|hours: &f64| hours.is_finite() && *hours > 0.0);
    hours.ok_or_else(|| "not a positive number of hours, such as 0.5 or 12".to_owned())
}

/// Bytes, as `20G`, `800M` or a plain number, for clap. Units are those of 1,024.
pub fn size(text: &str) -> Result<u64, String> {
    let plain = text.trim().to_uppercase();
    let plain = plain.trim_end_matches('B').trim_end_matches('I');
    let (digits, factor) = match plain.strip_suffix(['K', 'M', 'G', 'T']) {
        Some(digits) => (digits, 1_u64 << (10 * (1 + "KMGT".find(&plain[digits.len()..]).unwrap_or(0)))),
        None => (plain, 1),
    };
    let number = digits.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number
        .map(|number| (number * factor as f64) as u64)
        .ok_or_else(|| "not a size, such as 20G or 800M".to_owned())
}

/// A number of cells or `auto`, for clap.
pub fn batch_size(text: &str) -> Result<Value, String> {
    match text {
        "auto" => Ok(text.into()),
        _ => positive(text).map(Value::from).map_err(|error| format!("{error}, nor `auto`")),
    }
}

/// A number of at least 1, for clap.
pub fn positive(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number) if number >= 1 => Ok(number),
        _ => Err("not a whole number of at least 1".to_owned()),
    }
}
