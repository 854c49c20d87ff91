//! Which option of the command line reaches which method.

use std::fmt;

use super::{Model, Parameter, Profile, Task, Value, nearest};
use crate::error::{Error, Result};

/// An option of the command line that some methods have and others have not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MethodOption {
    Model,
    BatchSize,
    BatchKey,
    Epochs,
    PredictBatchSize,
    EvalSize,
}

impl MethodOption {
    pub const ALL: [MethodOption; 6] = [
        MethodOption::Model,
        MethodOption::BatchSize,
        MethodOption::BatchKey,
        MethodOption::Epochs,
        MethodOption::PredictBatchSize,
        MethodOption::EvalSize,
    ];

    /// As typed.
    pub fn flag(self) -> &'static str {
        match self {
            MethodOption::Model => "--model",
            MethodOption::BatchSize => "--batch-size",
            MethodOption::BatchKey => "--batch-key",
            MethodOption::Epochs => "--epochs",
            MethodOption::PredictBatchSize => "--predict_batch_size",
            MethodOption::EvalSize => "--finetune_eval_size",
        }
    }

    /// What it sets, in words that follow "no".
    pub fn noun(self) -> &'static str {
        match self {
            MethodOption::Model => "model variants",
            MethodOption::BatchSize => "batch size",
            MethodOption::BatchKey => "batch key",
            MethodOption::Epochs => "number of epochs",
            MethodOption::PredictBatchSize => "batch size for prediction",
            MethodOption::EvalSize => "held-out share",
        }
    }
}

impl fmt::Display for MethodOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.flag())
    }
}

impl Profile {
    /// Whether the method really uses the option in this task. A transfer embeds, so it has the options of embed
    /// except the batch key; a task that the method cannot do honours nothing.
    pub fn honours(&self, task: Task, option: MethodOption) -> bool {
        if !self.supports(task) {
            return false;
        }
        match option {
            MethodOption::Model => !self.models.is_empty(),
            MethodOption::BatchSize => self.batch(task).is_some(),
            MethodOption::BatchKey => {
                task == Task::Embed && self.embed.as_ref().is_some_and(|embed| embed.batch_key)
            }
            MethodOption::Epochs | MethodOption::EvalSize => task == Task::Finetune,
            MethodOption::PredictBatchSize => {
                task == Task::Finetune
                    && self.finetune.as_ref().is_some_and(|finetune| finetune.predict_batch.is_some())
            }
        }
    }

    /// The pipeline parameter that carries `--batch-size` in this task, and its default.
    pub fn batch(&self, task: Task) -> Option<(&str, u32)> {
        match task {
            Task::Embed | Task::Transfer => self
                .embed
                .as_ref()
                .and_then(|embed| embed.batch.as_ref())
                .map(|batch| (batch.parameter.as_str(), batch.default)),
            Task::Finetune => self
                .finetune
                .as_ref()
                .and_then(|finetune| finetune.batch)
                .map(|default| ("batch_size", default)),
            Task::Check | Task::Benchmark | Task::Geometry => None,
        }
    }

    /// As [`Profile::model`].
    ///
    /// # Errors
    /// Usage, with the nearest names or all of them.
    pub fn known_model(&self, name: &str) -> Result<&Model> {
        self.model(name).ok_or_else(|| {
            let names = || self.models.iter().map(|model| model.name.as_str());
            let last = |name: &'_ str| name.rsplit('/').next().unwrap_or_default().to_owned();
            let short: Vec<String> = names().map(last).collect();
            let near = nearest(&last(name), short.iter().map(String::as_str));
            let hint = match near.as_slice() {
                [] => format!("models: {}", names().collect::<Vec<_>>().join(", ")),
                near => format!("did you mean {}?", near.join(" or ")),
            };
            Error::usage(format_args!("{} has no model {name:?}", self.name)).hint(hint)
        })
    }

    /// Whether the method reads `--name value` in this task.
    pub fn reads(&self, task: Task, name: &str) -> bool {
        self.supports(task) && self.parameter(name).is_some_and(|parameter| parameter.tasks.contains(&task))
    }
}

impl Value {
    /// The type in words.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Bool(_) => "true or false",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a number",
            Value::Text(_) => "text",
        }
    }

    /// The text as a value of the same type; where that is text, as what it looks like.
    fn same_kind(&self, text: &str) -> Option<Value> {
        match self {
            Value::Bool(_) => text.parse().ok().map(Value::Bool),
            Value::Int(_) => text.parse().ok().map(Value::Int),
            Value::Float(_) => text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Float),
            Value::Text(_) => Some(Value::guess(text)),
        }
    }

    /// The value that an untyped text means: a boolean, an integer, a finite number, else the text itself.
    fn guess(text: &str) -> Value {
        if let Ok(value) = text.parse() {
            return Value::Bool(value);
        }
        if let Ok(value) = text.parse() {
            return Value::Int(value);
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Value::Float(value),
            _ => Value::Text(text.to_owned()),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "{value}"),
            Value::Text(value) => f.write_str(value),
        }
    }
}

impl Parameter {
    /// Reads a value typed on the command line as the type of the default; where that is text or absent, as what it
    /// looks like (`scvi_max_epochs` takes `auto` and 50).
    ///
    /// # Errors
    /// Usage, when the value is of another type or not among the choices.
    pub fn parse(&self, text: &str) -> Result<Value> {
        let value = match &self.default {
            Some(default) => default.same_kind(text).ok_or_else(|| {
                Error::usage(format_args!("--{} \"{text}\" is not {}", self.name, default.kind()))
                    .hint(format_args!("the default is {default}"))
            })?,
            None => Value::guess(text),
        };
        if !self.choices.is_empty() && !self.choices.iter().any(|choice| choice == text) {
            return Err(Error::usage(format_args!("--{} \"{text}\" is not one of its values", self.name))
                .hint(format_args!("values: {}", self.choices.join(", "))));
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(default: Option<Value>, choices: &[&str]) -> Parameter {
        Parameter {
            name: "max_len".to_owned(),
            default,
            choices: choices.iter().map(|choice| choice.to_string()).collect(),
            tasks: vec![Task::Embed],
            help: String::new(),
            lever: false,
            workers: false,
        }
    }

    #[test]
    fn a_value_has_the_type_of_the_default() {
        let length = parameter(Some(Value::Int(4000)), &[]);
        assert_eq!(length.parse("2000").unwrap(), Value::Int(2000));
        let error = length.parse("long").unwrap_err();
        assert_eq!(error.message, "--max_len \"long\" is not an integer");
        assert_eq!(error.hints, ["the default is 4000"]);
        assert!(length.parse("2.5").is_err());
        let rate = parameter(Some(Value::Float(1e-4)), &[]);
        assert_eq!(rate.parse("1").unwrap(), Value::Float(1.0));
        assert!(rate.parse("nan").is_err());
        assert!(parameter(Some(Value::Bool(true)), &[]).parse("yes").is_err());
    }

    #[test]
    fn text_and_absent_defaults_take_any_value() {
        let epochs = parameter(Some(Value::Text("auto".to_owned())), &[]);
        assert_eq!(epochs.parse("50").unwrap(), Value::Int(50));
        assert_eq!(epochs.parse("auto").unwrap(), Value::Text("auto".to_owned()));
        assert_eq!(parameter(None, &[]).parse("0.5").unwrap(), Value::Float(0.5));
    }

    #[test]
    fn choices_are_the_only_values() {
        let how = parameter(Some(Value::Text("all".to_owned())), &["all", "most expr"]);
        assert_eq!(how.parse("most expr").unwrap(), Value::Text("most expr".to_owned()));
        let error = how.parse("most").unwrap_err();
        assert_eq!(error.hints, ["values: all, most expr"]);
    }
}
