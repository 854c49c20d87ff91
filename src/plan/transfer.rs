//! What is particular to a transfer: a fitted model of an earlier run has decided what was decided then.

use std::borrow::Cow;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};

use super::inputs::Input;
use super::request::{Given, Request, Role, Source};
use crate::error::{Error, Result};
use crate::kernel::classify::Kind;
use crate::kernel::tasks::fitted::{META, Meta};
use crate::method::Task;

/// A fitted classifier that takes the place of a reference.
#[derive(Debug, Clone, Serialize)]
pub struct Fitted {
    /// Absolute. Tasks read it where it is.
    pub path: PathBuf,
    /// Size and time of last change of its description, so that a changed one is not taken for done.
    pub stamp: String,
    #[serde(skip)]
    meta: Meta,
}

impl Fitted {
    /// The classifier that the request names; `None` where it names none.
    ///
    /// # Errors
    /// Input: what it names is no fitted classifier, or its name is not valid UTF-8.
    pub fn of(request: &Request) -> Result<Option<Fitted>> {
        let named = request.inputs.iter().find(|(role, _)| *role == Role::Fitted);
        let Some((_, typed)) = named.filter(|_| request.task == Task::Transfer) else { return Ok(None) };
        let path = std::path::absolute(typed).map_err(Error::io("resolve", typed))?;
        if path.to_str().is_none() {
            return Err(Error::input(format_args!("the name of {} is not valid UTF-8", path.display()))
                .hint("rename it, or name a link to it"));
        }
        let meta = Meta::read(&path)?;
        let file = std::fs::metadata(path.join(META)).map_err(Error::io("read", &path))?;
        let stamp = format!("{} {}.{}", file.len(), file.mtime(), file.mtime_nsec());
        Ok(Some(Fitted { path, stamp, meta }))
    }

    /// The request with all that the model decides: method, its variant, classifier and, unless given, the label column.
    ///
    /// # Errors
    /// Usage: an option says otherwise.
    pub fn complete(&self, request: &Request) -> Result<Request> {
        let mut completed = request.clone();
        let meta = &self.meta;
        if let Some(method) = request.method.as_ref().filter(|method| **method != meta.method) {
            return Err(self.contradiction("--method", method, &meta.method));
        }
        completed.method = Some(meta.method.clone());
        let mut decided = vec![("classifier", json!(meta.classifier.name()))];
        if meta.classifier == Kind::Knn {
            decided.push(("knn_k", meta.hyperparameters["k"].clone()));
        }
        decided.extend(meta.model.as_ref().map(|model| ("model", json!(model))));
        for (name, value) in decided {
            match request.given.iter().find(|given| given.name == name) {
                Some(given) if !same(&given.value, &value) => {
                    return Err(self.contradiction(&given.flag(), &plain(&given.value), &plain(&value)));
                }
                _ => {
                    completed.given.retain(|given| given.name != name);
                    completed.given.push(Given { name: name.to_owned(), value, source: Source::Option });
                }
            }
        }
        if !request.given.iter().any(|given| given.name == "label_key") {
            let value = json!(meta.label_key);
            completed.given.push(Given { name: "label_key".to_owned(), value, source: Source::Option });
        }
        Ok(completed)
    }

    fn contradiction(&self, flag: &str, given: &str, own: &str) -> Error {
        Error::usage(format_args!("{flag} {given} contradicts the fitted classifier, which has {own}"))
            .cause(format_args!("{} says so", self.path.join(META).display()))
            .hint(format_args!("leave {flag} out, or fit anew with `--reference`"))
    }
}

/// The request, completed by a fitted classifier where it names one.
pub fn completed<'a>(request: &'a Request, fitted: Option<&Fitted>) -> Result<Cow<'a, Request>> {
    fitted.map_or(Ok(Cow::Borrowed(request)), |fitted| fitted.complete(request).map(Cow::Owned))
}

/// An option of one classifier that was given to another.
///
/// # Errors
/// Usage, where warnings are errors.
pub fn unused(request: &Request) -> Result<Option<String>> {
    let value = |name: &str| request.given.iter().find(|given| given.name == name).map(|given| &given.value);
    let classifier = value("classifier").map_or("logreg".to_owned(), plain);
    if request.task != Task::Transfer || value("knn_k").is_none() || classifier == Kind::Knn.name() {
        return Ok(None);
    }
    let sentence = format!("--knn-k is not used by the classifier {classifier}, only by knn");
    match request.strict {
        true => Err(Error::usage(sentence).hint("leave it out, or leave `--strict` out")),
        false => Ok(Some(sentence)),
    }
}

/// Gives the query another name where reference and query have the same: their embeddings go into one folder.
pub fn tell_apart(task: Task, inputs: &mut [Input]) {
    let reference = inputs.iter().find(|input| input.role == Role::Reference).map(|input| input.id.clone());
    let Some(reference) = reference.filter(|_| task == Task::Transfer) else { return };
    for query in inputs.iter_mut().filter(|input| input.role == Role::Query && input.id == reference) {
        query.id.push_str("_query");
    }
}

/// Equal, or of the name of a model equal in its last part: `scGPT_human` is `scGPT/scGPT_human`.
fn same(given: &Value, own: &Value) -> bool {
    let last = |value: &Value| plain(value).rsplit('/').next().unwrap_or_default().to_owned();
    given == own || (given.is_string() && last(given) == last(own))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
