//! Pipeline parameters: what the task and the method read, what the user gave, what is not used.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::batch::AUTOMATIC;
use super::request::{Given, Request, Source};
use crate::error::{Error, Result};
use crate::method::{Catalogue, MethodOption, Profile, Task, nearest};

/// The parameters of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parameters {
    /// Name and value, defaults included; null for one without.
    pub values: Map<String, Value>,
    /// Names that the task or the method reads: they go into the specification of each task.
    pub read: Vec<String>,
    pub warnings: Vec<String>,
}

/// A parameter that is read, with its default.
struct Known {
    name: String,
    default: Value,
}

/// Gathers the parameters of `request`. `profile` is the method's, where the task has one.
pub fn gather(request: &Request, profile: Option<&Profile>, catalogue: &Catalogue) -> Result<Parameters> {
    let known = known(request, profile);
    let mut parameters = Parameters {
        read: known.iter().map(|parameter| parameter.name.clone()).collect(),
        ..Parameters::default()
    };
    for parameter in &known {
        parameters.values.insert(parameter.name.clone(), parameter.default.clone());
    }
    for given in &request.given {
        let name = pipeline_name(given, profile);
        match known.iter().find(|parameter| parameter.name == name) {
            Some(parameter) => {
                let mut value = fit(given, &parameter.default)?;
                if let (Some(profile), "model") = (profile, name.as_str()) {
                    value = model(profile, value)?;
                }
                parameters.values.insert(name, value);
            }
            None => {
                let unused = unused(request, given, profile, catalogue, &parameters.read);
                if request.strict {
                    return Err(Error::usage(unused).hint("leave it out, or leave `--strict` out"));
                }
                parameters.warnings.push(unused);
                if given.source == Source::Passed {
                    parameters.values.insert(name, given.value.clone());
                }
            }
        }
    }
    Ok(parameters)
}

/// `--batch-size` is one option, but integration methods read it under another name.
fn pipeline_name(given: &Given, profile: Option<&Profile>) -> String {
    let batch = profile.and_then(|profile| profile.embed.as_ref()?.batch.as_ref());
    match batch {
        Some(batch) if given.source == Source::Option && given.name == "batch_size" => {
            batch.parameter.clone()
        }
        _ => given.name.clone(),
    }
}

fn known(request: &Request, profile: Option<&Profile>) -> Vec<Known> {
    let mut known: Vec<Known> = Vec::new();
    let mut add = |name: &str, default: Value| known.push(Known { name: name.to_owned(), default });
    let scored_batches = request.given.iter().any(|given| given.name == "batch_key");
    match request.task {
        Task::Embed => {}
        Task::Transfer => {
            add("label_key", json!("cell_type"));
            add("classifier", json!("logreg"));
            add("knn_k", json!(15));
        }
        Task::Finetune => {
            add("label_key", json!("cell_type"));
            add("seed", json!(0));
            // Absent: that of the method's recipe.
            add("learning_rate", Value::Null);
        }
        Task::Check => {
            // Absent unless given: only then has the file to have the column.
            add("label_key", Value::Null);
            add("batch_key", Value::Null);
            add("role", Value::Null);
        }
        Task::Benchmark => {
            add("label_key", json!("cell_type"));
            add("batch_key", Value::Null);
            add("metrics", json!(if scored_batches { "all" } else { "bio" }));
            add("clustering", json!("leiden"));
            add("batch_max_cells", json!(0));
            add("plot", json!(false));
        }
        Task::Geometry => {
            add("label_key", json!("cell_type"));
            add("batch_key", json!("batch_id"));
            add("max_cells", json!(20000));
            add("seed", json!(0));
        }
    }
    let Some(profile) = profile.filter(|_| profile_speaks(request.task)) else { return known };
    let mut add = |name: &str, default: Value| known.push(Known { name: name.to_owned(), default });
    if let Some(model) = profile.default_model() {
        add("model", json!(model.name));
    }
    match (request.task, &profile.embed, &profile.finetune) {
        (Task::Finetune, _, Some(finetune)) => {
            add("epochs", json!(finetune.epochs));
            add("finetune_eval_size", json!(finetune.eval_size));
            if let Some(size) = finetune.batch {
                add("batch_size", json!(size));
            }
            if let Some(size) = finetune.predict_batch {
                add("predict_batch_size", json!(size));
            }
        }
        (_, Some(embed), _) => {
            if let Some(batch) = &embed.batch {
                add(&batch.parameter, json!(batch.default));
            }
            if embed.batch_key {
                add("batch_key", json!("batch_id"));
            }
        }
        _ => {}
    }
    for parameter in profile.parameters.iter().filter(|parameter| parameter.tasks.contains(&request.task)) {
        add(&parameter.name, parameter.default.as_ref().map_or(Value::Null, |value| json!(value)));
    }
    known
}

/// Whether the method's own parameters matter to the task; for the others it is only a label.
fn profile_speaks(task: Task) -> bool {
    matches!(task, Task::Embed | Task::Transfer | Task::Finetune)
}

/// The whole name of a model variant, or the path of weights of one's own.
fn model(profile: &Profile, typed: Value) -> Result<Value> {
    let text = typed.as_str().unwrap_or_default();
    if Path::new(text).exists() {
        let absolute = std::path::absolute(text).map_err(Error::io("resolve", text.as_ref()))?;
        return Ok(json!(absolute));
    }
    Ok(json!(profile.known_model(text)?.name))
}

/// Parameters whose least value is 1 rather than 0.
const COUNTED: [&str; 7] = [
    "batch_size",
    "integration_batch_size",
    "predict_batch_size",
    "epochs",
    "knn_k",
    "pca_n_comps",
    "max_cells",
];

/// The share of the reference that is held out of training.
const HELD_OUT: &str = "finetune_eval_size";

/// Some of it, not all.
fn is_part(value: &Value) -> bool {
    value.as_f64().is_some_and(|share| share > 0.0 && share < 1.0)
}

const BATCHES: [&str; 3] = ["batch_size", "integration_batch_size", "predict_batch_size"];

/// The value as the parameter's type wants it.
fn fit(given: &Given, default: &Value) -> Result<Value> {
    let flag = given.flag();
    let typed = match &given.value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let wrong = |wanted: &str| match given.value {
        Value::Bool(true) => Err(Error::usage(format_args!("{flag} needs a value: {wanted}"))),
        _ => Err(Error::usage(format_args!("{flag} {typed:?} is not {wanted}"))),
    };
    match default {
        Value::Number(number) if number.is_i64() || number.is_u64() => {
            let least = i64::from(COUNTED.contains(&given.name.as_str()));
            if typed == AUTOMATIC && BATCHES.contains(&given.name.as_str()) {
                return Ok(json!(AUTOMATIC));
            }
            match given.value.as_i64() {
                Some(value) if value >= least => Ok(given.value.clone()),
                _ => wrong(&format!("a whole number of at least {least}")),
            }
        }
        Value::Number(_) if !given.value.is_number() => wrong("a number"),
        Value::Number(_) if given.name == HELD_OUT && !is_part(&given.value) => {
            wrong("a number between 0 and 1")
        }
        Value::Bool(_) if !given.value.is_boolean() => wrong("true or false"),
        Value::String(_) if given.value.is_boolean() => wrong("a text"),
        Value::String(_) if given.name.ends_with("_key") => Ok(Value::String(typed)),
        _ => Ok(given.value.clone()),
    }
}

/// Why a given parameter does nothing here, or what becomes of it.
fn unused(
    request: &Request,
    given: &Given,
    profile: Option<&Profile>,
    catalogue: &Catalogue,
    read: &[String],
) -> String {
    let task = request.task;
    let option = MethodOption::ALL.into_iter().find(|option| option.flag() == given.flag());
    let known = profile.and_then(|profile| match option {
        Some(option) => catalogue.unused_option(profile, task, option),
        None => catalogue.unused_parameter(profile, task, &given.name),
    });
    if let Some(text) = known {
        return text;
    }
    let guess = match nearest(&given.name, read.iter().map(String::as_str)).first() {
        Some(name) => format!("; did you mean {}?", typed_as(name)),
        None => String::new(),
    };
    format!(
        "{} is not an option of `{task}`; it goes on to the pipeline as parameter {}{guess}",
        given.flag(),
        given.name
    )
}

/// How a parameter is typed: as an option of the command where there is one, else under its own name.
fn typed_as(name: &str) -> String {
    const OPTIONS: [&str; 11] = [
        "batch_size",
        "batch_key",
        "label_key",
        "knn_k",
        "batch_max_cells",
        "max_cells",
        "classifier",
        "model",
        "epochs",
        "learning_rate",
        "seed",
    ];
    if OPTIONS.contains(&name) { format!("--{}", name.replace('_', "-")) } else { format!("--{name}") }
}
