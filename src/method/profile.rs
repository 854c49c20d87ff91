//! The typed form of one method profile (`templates/methods/*.toml`).

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
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a method comes to its embedding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// A pretrained model, used as it is.
    ZeroShot,
    /// A pretrained reference or a plain baseline fitted on the input.
    Reference,
    /// Fitted on the input with its batches, to remove their effect.
    Integration,
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
    /// Licence of code and weights, where a user must know it.
    #[serde(default)]
    pub licence: Option<String>,
    pub genes: Genes,
    pub input: Input,
    pub runner: Runner,
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Genes {
    pub ids: GeneIds,
    /// Species whose genes the vocabulary holds; empty: any.
    #[serde(default)]
    pub species: Vec<Species>,
    /// Number of genes in the vocabulary, where it is fixed.
    #[serde(default)]
    pub vocabulary: Option<u32>,
    /// A smaller share of matched genes stops the run.
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
    /// Whether the method reads `--batch-key`.
    #[serde(default)]
    pub batch_key: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinetuneOptions {
    pub epochs: u32,
    /// Absent: `--batch-size` does nothing in training.
    #[serde(default)]
    pub batch: Option<u32>,
    /// Absent: `--predict_batch_size` does nothing.
    #[serde(default)]
    pub predict_batch: Option<u32>,
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
    /// Tasks that read it.
    pub tasks: Vec<Task>,
    /// One line, no full stop.
    pub help: String,
    /// Whether lowering it lowers GPU memory: the second lever after the batch size.
    #[serde(default)]
    pub lever: bool,
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
    #[serde(default)]
    pub dimension: Option<u32>,
    #[serde(default)]
    pub files: Vec<WeightFile>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightFile {
    /// Path below the weights directory; ends in `/` for a whole folder.
    pub path: String,
    /// Where it comes from, in words that name a public place: `hub OWNER/NAME`, `zenodo RECORD`, `google drive ID`, ….
    pub source: String,
    /// Size in bytes, where known.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// Whether `bytes` is read off a page rather than measured.
    #[serde(default)]
    pub approximate: bool,
    #[serde(default)]
    pub sha256: Option<String>,
}

impl Profile {
    pub fn default_model(&self) -> Option<&Model> {
        self.models.first()
    }

    pub fn supports(&self, task: Task) -> bool {
        self.tasks.contains(&task)
    }
}
