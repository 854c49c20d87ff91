//! A model that an earlier run has left, in place of a reference: it has decided what was decided then.

use std::borrow::Cow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::inputs::is_misread;
use super::request::{Given, Request, Role, Source};
use crate::error::{Error, Result};
use crate::kernel::classify::Kind;
use crate::kernel::tasks::fitted::{META, Meta};
use crate::method::Task;

/// The format of the directory of a trained model, as `templates/runners/foundry/trained.py` writes it.
const TRAINED: &str = "scfoundry_finetune/1";

/// A fitted classifier, or a trained model.
#[derive(Debug, Clone, Serialize)]
pub struct Fitted {
    /// Absolute. Kernels read it where it is; runners are given a link.
    pub path: PathBuf,
    /// Size and time of last change of its description, so that a changed one is not taken for done.
    pub stamp: String,
    #[serde(skip)]
    decided: Decided,
}

/// What is no longer open.
#[derive(Debug, Clone)]
struct Decided {
    /// What it is, in words.
    noun: &'static str,
    method: String,
    label_key: String,
    /// Options by name, with the only value that they can have.
    options: Vec<(&'static str, Value)>,
}

impl Fitted {
    /// The model that the request names; `None` where it names none.
    ///
    /// # Errors
    /// Input: what it names is none of the task's, or its path cannot be handed on.
    pub fn of(request: &Request) -> Result<Option<Fitted>> {
        let named = request.inputs.iter().find(|(role, _)| *role == Role::Fitted);
        let Some((_, typed)) = named else { return Ok(None) };
        let path = std::path::absolute(typed).map_err(Error::io("resolve", typed))?;
        if path.to_str().is_none() {
            return Err(Error::input(format_args!("the name of {} is not valid UTF-8", path.display()))
                .hint("rename it, or name a link to it"));
        }
        let decided = match request.task {
            Task::Transfer => Decided::by_classifier(Meta::read(&path)?),
            Task::Finetune => Decided::by_training(&path)?,
            _ => return Ok(None),
        };
        let file = std::fs::metadata(path.join(META)).map_err(Error::io("read", &path))?;
        let stamp = format!("{} {}.{}", file.len(), file.mtime(), file.mtime_nsec());
        Ok(Some(Fitted { path, stamp, decided }))
    }

    /// The request with all that the model decides: method, its variant, the task's own options and, unless given, the label
    /// column.
    ///
    /// # Errors
    /// Usage: an option says otherwise.
    pub fn complete(&self, request: &Request) -> Result<Request> {
        let mut completed = request.clone();
        let decided = &self.decided;
        if let Some(method) = request.method.as_ref().filter(|method| **method != decided.method) {
            return Err(self.contradiction("--method", method, &decided.method));
        }
        completed.method = Some(decided.method.clone());
        for (name, value) in &decided.options {
            match request.given.iter().find(|given| given.name == *name) {
                Some(given) if !same(&given.value, value) => {
                    return Err(self.contradiction(&given.flag(), &plain(&given.value), &plain(value)));
                }
                _ => {
                    completed.given.retain(|given| given.name != *name);
                    completed.given.push(option(name, value.clone()));
                }
            }
        }
        if !request.given.iter().any(|given| given.name == "label_key") {
            completed.given.push(option("label_key", json!(decided.label_key)));
        }
        Ok(completed)
    }

    fn contradiction(&self, flag: &str, given: &str, own: &str) -> Error {
        let noun = self.decided.noun;
        Error::usage(format_args!("{flag} {given} contradicts the {noun}, which has {own}"))
            .cause(format_args!("{} says so", self.path.join(META).display()))
            .hint(format_args!("leave {flag} out, or start anew with `--reference`"))
    }
}

impl Decided {
    fn by_classifier(meta: Meta) -> Decided {
        let mut options = vec![("classifier", json!(meta.classifier.name()))];
        if meta.classifier == Kind::Knn {
            options.push(("knn_k", meta.hyperparameters["k"].clone()));
        }
        options.extend(meta.model.map(|model| ("model", json!(model))));
        Decided { noun: "fitted classifier", method: meta.method, label_key: meta.label_key, options }
    }

    /// Reads the description of a trained model. Weights of the user's own, which may be gone, are not asked for again.
    fn by_training(folder: &Path) -> Result<Decided> {
        #[derive(Deserialize)]
        struct Description {
            method: String,
            model: String,
            label_key: String,
        }
        const HINT: &str =
            "name a directory that `scfoundry finetune` has left, below finetune/finetuned_models";
        if is_misread(folder) {
            return Err(Error::input(format_args!("{} cannot be handed to a task", folder.display()))
                .cause("its path holds one of $ { } [ ] * ?, which Nextflow's task scripts would misread")
                .hint("rename it, or name a link to it"));
        }
        let path = folder.join(META);
        let message = format!("{} is no trained model", folder.display());
        let foreign = |cause: String| Error::input(&message).cause(cause).hint(HINT);
        let bytes = std::fs::read(&path)
            .map_err(|error| Error::io("read", &path)(error).within(&message).hint(HINT))?;
        let damaged = |error: serde_json::Error| foreign(format!("{} is not valid: {error}", path.display()));
        let document: Value = serde_json::from_slice(&bytes).map_err(damaged)?;
        if document["format"] != TRAINED {
            let format = &document["format"];
            return Err(foreign(format!("{} has the format {format}, not {TRAINED:?}", path.display())));
        }
        let Description { method, model, label_key } = serde_json::from_value(document).map_err(damaged)?;
        if let Some(absent) = ["method.json", "weights.pt"].iter().find(|name| !folder.join(name).exists()) {
            return Err(foreign(format!("{} is missing", folder.join(absent).display())));
        }
        let published = Path::new(&model).is_relative();
        let options = published.then(|| ("model", json!(model))).into_iter().collect();
        Ok(Decided { noun: "trained model", method, label_key, options })
    }
}

/// The request, completed by a fitted model where it names one.
pub fn completed<'a>(request: &'a Request, fitted: Option<&Fitted>) -> Result<Cow<'a, Request>> {
    fitted.map_or(Ok(Cow::Borrowed(request)), |fitted| fitted.complete(request).map(Cow::Owned))
}

/// Options of training that were given where nothing is trained.
pub fn unused(request: &Request) -> impl Iterator<Item = String> {
    const OF_TRAINING: [&str; 5] = ["epochs", "batch_size", "learning_rate", "seed", "finetune_eval_size"];
    let predicts =
        request.task == Task::Finetune && request.inputs.iter().any(|(role, _)| *role == Role::Fitted);
    let idle =
        request.given.iter().filter(move |given| predicts && OF_TRAINING.contains(&given.name.as_str()));
    idle.map(|given| format!("{} is not used with --fitted: nothing is trained", given.flag()))
}

fn option(name: &str, value: Value) -> Given {
    Given { name: name.to_owned(), value, source: Source::Option }
}

/// Equal, or of the name of a model equal in its last part: `scGPT_human` is `scGPT/scGPT_human`.
fn same(given: &Value, own: &Value) -> bool {
    let last = |value: &Value| plain(value).rsplit('/').next().unwrap_or_default().to_owned();
    given == own || (given.is_string() && last(given) == last(own))
}

pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
