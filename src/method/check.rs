//! What the schema alone cannot say of a profile: names, ranges, and that its parts agree.

use std::collections::HashSet;
use std::fmt::Display;

use super::{Model, Parameter, Profile, RunnerKind, Task, Value, WeightFile};
use crate::error::{Error, Result};

/// Names that a method's own parameter cannot have, since the program's options and the pipeline use them.
const RESERVED: &[&str] = &[
    "batch_key",
    "batch_max_cells",
    "batch_size",
    "cache_dir",
    "classifier",
    "clustering",
    "config",
    "data",
    "dry_run",
    "embedding",
    "epochs",
    "finetune_eval_size",
    "fitted",
    "force",
    "gpu",
    "gpu_id",
    "help",
    "integration_batch_size",
    "json",
    "knn_k",
    "label_key",
    "max_cells",
    "method",
    "metrics",
    "model",
    "nextflow",
    "outdir",
    "predict_batch_size",
    "profile",
    "query",
    "quiet",
    "reference",
    "resume",
    "role",
    "run_name",
    "runtime",
    "seed",
    "spec",
    "strict",
    "task",
    "verbose",
    "version",
    "weights_dir",
    "workspace",
];

/// Pipeline parameters that can carry `--batch-size`.
const BATCH_PARAMETERS: [&str; 2] = ["batch_size", "integration_batch_size"];

/// A fault of a profile, at a key.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Flaw {
    /// Where: keys and list positions joined by dots, such as `parameters.1.name`.
    pub at: String,
    /// What is wrong; begins after the key.
    pub message: String,
}

impl Flaw {
    pub fn new(at: impl Display, message: impl Display) -> Self {
        Flaw { at: at.to_string(), message: message.to_string() }
    }

    /// The last key of the path: list positions left out.
    pub fn key(&self) -> &str {
        self.at.rsplit('.').find(|part| part.parse::<usize>().is_err()).unwrap_or(&self.at)
    }
}

type Checked = std::result::Result<(), Flaw>;

fn ensure(holds: bool, at: impl Display, message: impl Display) -> Checked {
    if holds { Ok(()) } else { Err(Flaw::new(at, message)) }
}

impl Profile {
    /// Checks what the types do not: names, ranges, and that options, tasks, image and runner agree.
    ///
    /// # Errors
    /// Input, naming the method, the key and the value.
    pub fn check(&self) -> Result<()> {
        self.sound().map_err(|flaw| {
            Error::input(format_args!("method \"{}\": key \"{}\" {}", self.name, flaw.key(), flaw.message))
        })
    }

    /// The first fault, with its place.
    pub(super) fn sound(&self) -> Checked {
        ensure(
            is_name(&self.name),
            "name",
            format_args!(
                "\"{}\" is not a lower-case letter followed by such letters, digits and _",
                self.name
            ),
        )?;
        ensure(is_line(&self.description), "description", "is not one line of text")?;
        ensure(
            (1..=5).contains(&self.cost_class),
            "cost_class",
            format_args!("{} is not 1 to 5", self.cost_class),
        )?;
        ensure(self.dimension != Some(0), "dimension", "is 0")?;
        self.check_tasks()?;
        self.check_runner()?;
        self.check_resources()?;
        self.check_input()?;
        self.check_options()?;
        self.check_parameters()?;
        self.check_models()
    }

    fn check_tasks(&self) -> Checked {
        ensure(!self.tasks.is_empty(), "tasks", "is empty")?;
        let mut seen = HashSet::new();
        for (position, task) in self.tasks.iter().enumerate() {
            let at = format!("tasks.{position}");
            ensure(
                task.is_done_by_a_method(),
                &at,
                format_args!("has \"{task}\", which no method does itself (embed, transfer, finetune)"),
            )?;
            ensure(seen.insert(task), &at, format_args!("has \"{task}\" twice"))?;
        }
        ensure(
            !self.supports(Task::Transfer) || self.supports(Task::Embed),
            "tasks",
            "has \"transfer\" without \"embed\", which it is made of",
        )?;
        for (task, key, given) in [
            (Task::Embed, "embed", self.embed.is_some()),
            (Task::Finetune, "finetune", self.finetune.is_some()),
        ] {
            ensure(
                given || !self.supports(task),
                "tasks",
                format_args!("has \"{task}\", but there is no section [{key}]"),
            )?;
            ensure(
                !given || self.supports(task),
                key,
                format_args!("is a section, but \"{task}\" is not among the tasks"),
            )?;
        }
        Ok(())
    }

    fn check_resources(&self) -> Checked {
        let Some(resources) = self.resources else { return Ok(()) };
        let at = |key: &str| format!("resources.{key}");
        ensure(resources.cpus >= 1, at("cpus"), "is 0")?;
        for (key, value) in [("memory_gb", resources.memory_gb), ("hours", resources.hours)] {
            ensure(value > 0.0 && value < 1e5, at(key), format_args!("{value} is not a sound amount"))?;
        }
        for (key, value) in [
            ("memory_gb_per_100k_cells", resources.memory_gb_per_100k_cells),
            ("hours_per_100k_cells", resources.hours_per_100k_cells),
        ] {
            ensure((0.0..1e5).contains(&value), at(key), format_args!("{value} is not a sound amount"))?;
        }
        Ok(())
    }

    fn check_runner(&self) -> Checked {
        let entry = &self.runner.entry;
        let ending = match self.runner.kind {
            RunnerKind::Native => "",
            RunnerKind::Python => ".py",
            RunnerKind::R => ".R",
        };
        let stem = entry.strip_suffix(ending).unwrap_or_default();
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
        ensure(
            !stem.is_empty() && stem.chars().all(plain),
            "runner.entry",
            match self.runner.kind {
                RunnerKind::Native => format!("\"{entry}\" is not the name of a kernel"),
                _ => format!("\"{entry}\" is not a plain file name that ends in {ending}"),
            },
        )?;
        match (&self.image, self.runner.kind) {
            (Some(_), RunnerKind::Native) => {
                Err(Flaw::new("image", "is given, but a native runner needs none"))
            }
            (None, RunnerKind::Python | RunnerKind::R) => {
                Err(Flaw::new("runner.kind", "needs a container, but there is no key \"image\""))
            }
            (Some(image), _) => ensure(
                !image.is_empty()
                    && !image.chars().any(|letter| letter.is_whitespace() || letter.is_control()),
                "image",
                format_args!("\"{image}\" is not the name of an image"),
            ),
            (None, RunnerKind::Native) => Ok(()),
        }
    }

    fn check_input(&self) -> Checked {
        ensure(self.genes.vocabulary != Some(0), "genes.vocabulary", "is 0")?;
        if let Some(share) = self.genes.minimum_matched {
            ensure(
                (0.0..=1.0).contains(&share),
                "genes.minimum_matched",
                format_args!("{share} is not between 0 and 1"),
            )?;
        }
        ensure(self.input.minimum_batch_cells != Some(0), "input.minimum_batch_cells", "is 0")?;
        for (key, names) in [("obs", &self.input.obs), ("obsm", &self.input.obsm)] {
            ensure(names.iter().all(|name| is_line(name)), format_args!("input.{key}"), "has an empty name")?;
        }
        Ok(())
    }

    fn check_options(&self) -> Checked {
        if let Some(batch) = self.embed.as_ref().and_then(|embed| embed.batch.as_ref()) {
            ensure(
                BATCH_PARAMETERS.contains(&batch.parameter.as_str()),
                "embed.batch.parameter",
                format_args!("\"{}\" is not {}", batch.parameter, BATCH_PARAMETERS.join(" or ")),
            )?;
            ensure(batch.default > 0, "embed.batch.default", "is 0")?;
        }
        let Some(finetune) = &self.finetune else { return Ok(()) };
        ensure(finetune.epochs > 0, "finetune.epochs", "is 0")?;
        ensure(finetune.patience != Some(0), "finetune.patience", "is 0")?;
        ensure(finetune.batch != Some(0), "finetune.batch", "is 0")?;
        ensure(finetune.predict_batch != Some(0), "finetune.predict_batch", "is 0")?;
        ensure(
            finetune.eval_size > 0.0 && finetune.eval_size < 1.0,
            "finetune.eval_size",
            format_args!("{} is not between 0 and 1", finetune.eval_size),
        )
    }

    fn check_parameters(&self) -> Checked {
        let mut seen = HashSet::new();
        for (position, parameter) in self.parameters.iter().enumerate() {
            let at = format!("parameters.{position}");
            check_parameter(parameter, &at, self)?;
            ensure(
                seen.insert(&parameter.name),
                format_args!("{at}.name"),
                format_args!("\"{}\" is there twice", parameter.name),
            )?;
        }
        Ok(())
    }

    fn check_models(&self) -> Checked {
        let mut seen = HashSet::new();
        for (position, model) in self.models.iter().enumerate() {
            let at = format!("models.{position}");
            check_model(model, &at, self)?;
            ensure(
                seen.insert(&model.name),
                format_args!("{at}.name"),
                format_args!("\"{}\" is there twice", model.name),
            )?;
        }
        Ok(())
    }
}

fn check_parameter(parameter: &Parameter, at: &str, profile: &Profile) -> Checked {
    let name = &parameter.name;
    let at_name = format!("{at}.name");
    ensure(
        is_name(name),
        &at_name,
        format_args!("\"{name}\" is not a lower-case letter followed by such letters, digits and _"),
    )?;
    ensure(
        !RESERVED.contains(&name.as_str()),
        &at_name,
        format_args!("\"{name}\" is an option of the program"),
    )?;
    ensure(is_line(&parameter.help), format_args!("{at}.help"), "is not one line of text")?;
    ensure(!parameter.tasks.is_empty(), format_args!("{at}.tasks"), "is empty")?;
    for task in &parameter.tasks {
        ensure(
            profile.supports(*task),
            format_args!("{at}.tasks"),
            format_args!("has \"{task}\", which is not among the tasks of the method"),
        )?;
    }
    if let (Some(default), false) = (&parameter.default, parameter.choices.is_empty()) {
        ensure(
            parameter.choices.contains(&default.to_string()),
            format_args!("{at}.default"),
            format_args!("\"{default}\" is not one of the choices"),
        )?;
    }
    let finite = !matches!(&parameter.default, Some(Value::Float(value)) if !value.is_finite());
    ensure(finite, format_args!("{at}.default"), "is not a finite number")
}

fn check_model(model: &Model, at: &str, profile: &Profile) -> Checked {
    ensure(
        is_inside(&model.name),
        format_args!("{at}.name"),
        format_args!("\"{}\" is not a path below the weights directory", model.name),
    )?;
    ensure(model.dimension != Some(0), format_args!("{at}.dimension"), "is 0")?;
    ensure(model.vocabulary != Some(0), format_args!("{at}.vocabulary"), "is 0")?;
    for name in model.parameters.keys() {
        ensure(
            profile.parameter(name).is_some(),
            format_args!("{at}.parameters.{name}"),
            "is not a parameter of the method",
        )?;
    }
    for (position, file) in model.files.iter().enumerate() {
        check_weight_file(file, &format!("{at}.files.{position}"))?;
    }
    Ok(())
}

fn check_weight_file(file: &WeightFile, at: &str) -> Checked {
    let folder = file.path.strip_suffix('/');
    ensure(
        is_inside(folder.unwrap_or(&file.path)),
        format_args!("{at}.path"),
        format_args!("\"{}\" is not a path below the weights directory", file.path),
    )?;
    for place in std::iter::once(&file.source).chain(&file.mirrors) {
        ensure(is_line(place), format_args!("{at}.source"), "is not one line of text")?;
    }
    ensure(file.bytes != Some(0), format_args!("{at}.bytes"), "is 0")?;
    ensure(
        !file.approximate || file.bytes.is_some(),
        format_args!("{at}.approximate"),
        "is true, but there is no key \"bytes\"",
    )?;
    if let Some(digest) = &file.sha256 {
        let at = format!("{at}.sha256");
        ensure(folder.is_none(), &at, "is given for a folder, which has none")?;
        let right = digest.len() == 64
            && digest.bytes().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit));
        ensure(right, &at, format_args!("\"{digest}\" is not 64 lower-case hexadecimal digits"))?;
    }
    Ok(())
}

/// A lower-case letter, then such letters, digits and `_`.
fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'_')
}

/// One line with something on it.
fn is_line(text: &str) -> bool {
    !text.trim().is_empty() && !text.chars().any(char::is_control)
}

/// A relative path that stays below its root.
fn is_inside(path: &str) -> bool {
    is_line(path)
        && !path.contains('\\')
        && path.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}
