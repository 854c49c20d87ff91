//! The typed form of one method profile (`templates/methods/*.toml`).

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// What a user asks for. The first three are done by a method; the others are the same for all.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    Embed,
    Transfer,
    Finetune,
    Check,
    Benchmark,
    Geometry,
}

impl Task {
    pub const ALL: [Task; 6] =
        [Task::Embed, Task::Transfer, Task::Finetune, Task::Check, Task::Benchmark, Task::Geometry];

    pub fn name(self) -> &'static str {
        match self {
            Task::Embed => "embed",
            Task::Transfer => "transfer",
            Task::Finetune => "finetune",
            Task::Check => "check",
            Task::Benchmark => "benchmark",
            Task::Geometry => "geometry",
        }
    }

    /// Whether a method does it, rather than a kernel that is the same for all methods.
    pub fn is_done_by_a_method(self) -> bool {
        matches!(self, Task::Embed | Task::Transfer | Task::Finetune)
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a method comes to its embedding. The order is the order of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// A pretrained model, used as it is.
    ZeroShot,
    /// A pretrained reference or a plain baseline fitted on the input.
    Reference,
    /// Fitted on the input with its batches, to remove their effect.
    Integration,
}

impl Category {
    /// As written in a profile.
    pub fn name(self) -> &'static str {
        match self {
            Category::ZeroShot => "zero-shot",
            Category::Reference => "reference",
            Category::Integration => "integration",
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Which gene identifiers a method looks up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GeneIds {
    Symbols,
    Ensembl,
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Species {
    Human,
    Mouse,
    Other,
}

/// One method: everything the program knows of it. Unknown keys are errors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Lower case, digits and `_`: the word after `--method`.
    pub name: String,
    /// One line, no full stop.
    pub description: String,
    pub category: Category,
    /// Tasks the method can do: any of embed, transfer, finetune.
    pub tasks: Vec<Task>,
    /// Container image; absent: runs natively, with no container.
    #[serde(default)]
    pub image: Option<String>,
    /// Whether inference asks for a GPU.
    pub gpu: bool,
    /// 1 (seconds on a CPU) … 5 (hours on a large GPU) for 10,000 cells.
    pub cost_class: u8,
    /// Embedding dimensions of the default model.
    #[serde(default)]
    pub dimension: Option<u32>,
    /// Whether the map is fitted on the input: files embedded apart are then not comparable, and a transfer has to
    /// project its query with the fit of the reference.
    #[serde(default)]
    pub fits_input: bool,
    /// Licence of code and weights, where a user must know it.
    #[serde(default)]
    pub licence: Option<String>,
    /// Whether the licence of code or weights forbids commercial use.
    #[serde(default)]
    pub non_commercial: bool,
    pub genes: Genes,
    pub input: Input,
    pub runner: Runner,
    /// What a task of the method asks a scheduler for; absent: by kind of runner and cost class.
    #[serde(default)]
    pub resources: Option<Resources>,
    #[serde(default)]
    pub embed: Option<EmbedOptions>,
    #[serde(default)]
    pub finetune: Option<FinetuneOptions>,
    /// Further pipeline parameters (`--name value`) that the method reads.
    #[serde(default)]
    pub parameters: Vec<Parameter>,
    /// Model variants; the first is the default.
    #[serde(default)]
    pub models: Vec<Model>,
    /// What a user must know before believing the result; each one sentence.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Columns of var that hold gene names by custom, looked at before the others.
pub const GENE_COLUMNS: [&str; 12] = [
    "feature_name",
    "gene_symbol",
    "gene_symbols",
    "gene_name",
    "gene_names",
    "gene_short_name",
    "symbol",
    "gene_ids",
    "gene_id",
    "ensembl_id",
    "feature_id",
    "ensembl",
];

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Genes {
    pub ids: GeneIds,
    /// Species whose genes the vocabulary holds; empty: any.
    #[serde(default)]
    pub species: Vec<Species>,
    /// Number of genes in the vocabulary of the default model, without special tokens, where it is fixed.
    #[serde(default)]
    pub vocabulary: Option<u32>,
    /// A smaller share of the input's genes found in the vocabulary stops the run.
    #[serde(default)]
    pub minimum_matched: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Whether X must hold raw counts.
    pub counts: bool,
    /// obs columns without which the method cannot run.
    #[serde(default)]
    pub obs: Vec<String>,
    /// obsm entries without which the method cannot run.
    #[serde(default)]
    pub obsm: Vec<String>,
    /// Fewest cells of a batch.
    #[serde(default)]
    pub minimum_batch_cells: Option<u32>,
}

/// Who does the work of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runner {
    /// `native`: a kernel of this binary; `python` or `r`: a script in the image or environment.
    pub kind: RunnerKind,
    /// Name of the kernel, or file name of the script.
    pub entry: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunnerKind {
    Native,
    Python,
    R,
}

/// What a task asks a scheduler for. GB is 2^30 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    pub cpus: u32,
    /// Before the first cell: the program, its libraries, the model.
    pub memory_gb: f64,
    pub memory_gb_per_100k_cells: f64,
    pub hours: f64,
    pub hours_per_100k_cells: f64,
}

impl Resources {
    /// For a kernel of this binary: more than twice what `tests/bench` has measured at up to a million cells.
    pub fn native() -> Resources {
        Resources {
            cpus: 4,
            memory_gb: 2.0,
            memory_gb_per_100k_cells: 0.5,
            hours: 0.5,
            hours_per_100k_cells: 0.5,
        }
    }

    /// For a model: the matrix in memory and a copy, and hours by the class of its cost.
    fn model(cost_class: u8) -> Resources {
        let hours = [1.0, 2.0, 4.0, 12.0, 24.0];
        Resources {
            cpus: 4,
            memory_gb: 16.0,
            memory_gb_per_100k_cells: 10.0,
            hours: 1.0,
            hours_per_100k_cells: hours[usize::from(cost_class.clamp(1, 5)) - 1],
        }
    }
}

/// A batch size that a task honours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchSize {
    /// Pipeline parameter that carries it: `batch_size` or `integration_batch_size`.
    pub parameter: String,
    pub default: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbedOptions {
    /// Absent: the method has no batches and `--batch-size` does nothing.
    #[serde(default)]
    pub batch: Option<BatchSize>,
    /// Whether a cell's embedding depends on the other cells of its batch, so that the batch size changes results.
    #[serde(default)]
    pub batch_dependent: bool,
    /// Whether the method reads `--batch-key`.
    #[serde(default)]
    pub batch_key: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinetuneOptions {
    pub epochs: u32,
    /// Epochs without a better validation score after which training ends.
    #[serde(default)]
    pub patience: Option<u32>,
    /// Absent: `--batch-size` does nothing in training.
    #[serde(default)]
    pub batch: Option<u32>,
    /// Absent: `--predict_batch_size` does nothing.
    #[serde(default)]
    pub predict_batch: Option<u32>,
    /// Share of the reference held out for validation (`--finetune_eval_size`).
    #[serde(default = "default_eval_size")]
    pub eval_size: f64,
}

fn default_eval_size() -> f64 {
    0.2
}

/// A method's own pipeline parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// As typed: `--name value`.
    pub name: String,
    /// Absent: not set unless given.
    #[serde(default)]
    pub default: Option<Value>,
    /// The only values it can take; empty: any of the default's type.
    #[serde(default)]
    pub choices: Vec<String>,
    /// Tasks that read it.
    pub tasks: Vec<Task>,
    /// One line, no full stop.
    pub help: String,
    /// Whether lowering it lowers GPU memory: the second lever after the batch size.
    #[serde(default)]
    pub lever: bool,
    /// Whether it is a number of worker processes: host memory and CPUs, never the result.
    #[serde(default)]
    pub workers: bool,
}

/// A parameter's value, of the type written in the profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

/// A model variant with the files that make it up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// As typed after `--model`, a path below the weights directory.
    pub name: String,
    /// One line, no full stop.
    #[serde(default)]
    pub description: Option<String>,
    /// Embedding dimensions, where not those of the method.
    #[serde(default)]
    pub dimension: Option<u32>,
    /// Number of genes in the vocabulary, where not that of the method.
    #[serde(default)]
    pub vocabulary: Option<u32>,
    /// Species it was trained on, where not those of the method.
    #[serde(default)]
    pub species: Vec<Species>,
    /// Parameters whose default is another with this model.
    #[serde(default)]
    pub parameters: BTreeMap<String, Value>,
    #[serde(default)]
    pub files: Vec<WeightFile>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightFile {
    /// Path below the weights directory; ends in `/` for a whole folder.
    pub path: String,
    /// Where it comes from, in words that name a public place, its identifier last: `hub OWNER/NAME`,
    /// `github OWNER/NAME`, `zenodo RECORD`, `figshare FILE`, `google drive FILE`, `google drive folder FOLDER`,
    /// `dropbox folder FOLDER`, `s3 BUCKET`.
    pub source: String,
    /// Path at the source (inside the archive, if there is one), where it is not the last part of `path`.
    #[serde(default)]
    pub remote: Option<String>,
    /// Archive at the source that holds it.
    #[serde(default)]
    pub archive: Option<String>,
    /// Commit at the source that is meant, where the name alone is not enough.
    #[serde(default)]
    pub revision: Option<String>,
    /// Other places that hold the same file, in the words of `source`.
    #[serde(default)]
    pub mirrors: Vec<String>,
    /// Size in bytes of the file (of a folder: its files together, or the archive they come in), where known.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// Whether `bytes` is read off a page rather than measured.
    #[serde(default)]
    pub approximate: bool,
    /// SHA-256 of the file, where known.
    #[serde(default)]
    pub sha256: Option<String>,
}

impl Profile {
    pub fn default_model(&self) -> Option<&Model> {
        self.models.first()
    }

    /// The variant of this name: the whole name, or its last part alone (`scGPT_human` for `scGPT/scGPT_human`).
    pub fn model(&self, name: &str) -> Option<&Model> {
        let last = |model: &&Model| model.name.rsplit('/').next() == Some(name);
        self.models.iter().find(|model| model.name == name).or_else(|| self.models.iter().find(last))
    }

    /// What its tasks ask a scheduler for: its own words, else those of its kind.
    pub fn resources(&self) -> Resources {
        self.resources.unwrap_or_else(|| match self.runner.kind {
            RunnerKind::Native => Resources::native(),
            RunnerKind::Python | RunnerKind::R => Resources::model(self.cost_class),
        })
    }

    pub fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }

    /// The value a parameter has when it is not given: the model's own, else the method's.
    pub fn parameter_default<'a>(&'a self, name: &str, model: Option<&'a Model>) -> Option<&'a Value> {
        model
            .and_then(|model| model.parameters.get(name))
            .or_else(|| self.parameter(name).and_then(|parameter| parameter.default.as_ref()))
    }

    /// Whether the profile lists the task. Check, benchmark and geometry are the same for all and never listed.
    pub fn supports(&self, task: Task) -> bool {
        self.tasks.contains(&task)
    }
}
