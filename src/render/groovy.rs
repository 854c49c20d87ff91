//! The only place that writes Groovy: literals are quoted by type, never by hand.

use std::fmt::{self, Display, Write};

use crate::plan::Amount;

/// A value in a Nextflow configuration.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Value>),
    Map(Vec<(String, Value)>),
    /// A closure that is a constant of this program.
    Code(&'static str),
    /// A closure that gives this text and then, as a line of its own, what a constant expression of this program gives.
    Preceded(String, &'static str),
    /// A closure that gives a task an amount with its unit, by its tag or the same for all; twice as much at each further
    /// attempt.
    Growing {
        amount: Amount,
        unit: &'static str,
    },
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Int(value)
    }
}

impl From<&serde_json::Value> for Value {
    fn from(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(value) => Value::Bool(*value),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(integer) => Value::Int(integer),
                None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            serde_json::Value::String(text) => Value::Text(text.clone()),
            serde_json::Value::Array(items) => Value::List(items.iter().map(Value::from).collect()),
            serde_json::Value::Object(entries) => {
                Value::Map(entries.iter().map(|(key, value)| (key.clone(), value.into())).collect())
            }
        }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(value) if i32::try_from(*value).is_ok() => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}L"),
            Value::Float(value) if value.is_finite() => write!(f, "{value:?}d"),
            Value::Float(_) => f.write_str("null"),
            Value::Text(text) => quote(f, text),
            Value::Code(code) => f.write_str(code),
            Value::Preceded(text, code) => {
                f.write_str("{ ")?;
                quote(f, &format!("{text}\n"))?;
                write!(f, " + {code} }}")
            }
            Value::Growing { amount, unit } => {
                write!(f, "{{ \"${{")?;
                if amount.by_tag.is_empty() {
                    write!(f, "{}L", amount.largest)?;
                } else {
                    let entries =
                        amount.by_tag.iter().map(|(tag, amount)| (tag.clone(), Value::Int(*amount as i64)));
                    write!(f, "{}[task.tag]", Value::Map(entries.collect()))?;
                }
                write!(f, " * 2 ** (task.attempt - 1)}} {unit}\" }}")
            }
            Value::List(items) => {
                f.write_char('[')?;
                for (position, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if position == 0 { "" } else { ", " })?;
                }
                f.write_char(']')
            }
            Value::Map(entries) if entries.is_empty() => f.write_str("[:]"),
            Value::Map(entries) => {
                f.write_char('[')?;
                for (position, (key, value)) in entries.iter().enumerate() {
                    f.write_str(if position == 0 { "" } else { ", " })?;
                    quote(f, key)?;
                    write!(f, ": {value}")?;
                }
                f.write_char(']')
            }
        }
    }
}

/// A single-quoted Groovy string: `$` is inert in it; quotes, backslashes and control characters are escaped, and so is
/// all beyond ASCII, since Java 17 reads files in the locale's encoding.
fn quote(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('\'')?;
    for character in text.chars() {
        match character {
            '\'' => f.write_str("\\'")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            ' '..='~' => f.write_char(character)?,
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    write!(f, "\\u{unit:04x}")?;
                }
            }
        }
    }
    f.write_char('\'')
}

/// A name to assign to: as it is where it is an identifier, else quoted.
pub fn name(text: &str) -> String {
    let identifier = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if identifier { text.to_owned() } else { Value::from(text).to_string() }
}

/// Builds configuration text: assignments and nested scopes, indented.
#[derive(Debug, Default)]
pub struct Script {
    text: String,
    depth: usize,
}

impl Script {
    pub fn comment(&mut self, text: &str) {
        for line in text.lines() {
            let line = format!("// {line}");
            self.line(line.trim_end());
        }
    }

    pub fn blank(&mut self) {
        self.text.push('\n');
    }

    /// `includeConfig 'path'`.
    pub fn include(&mut self, path: &str) {
        let path = Value::from(path);
        self.line(&format!("includeConfig {path}"));
    }

    /// `name = value`. `name` is a Nextflow setting, a constant of this program.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        self.line(&format!("{name} = {value}"));
    }

    /// An assignment inside a comment: shown to the user, not in force.
    pub fn suggest(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        self.line(&format!("// {name} = {value}"));
    }

    /// `name { … }`.
    pub fn scope(&mut self, name: &str, body: impl FnOnce(&mut Script)) {
        self.line(&format!("{name} {{"));
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.line("}");
    }

    pub fn finish(self) -> String {
        self.text
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(&"    ".repeat(self.depth));
        self.text.push_str(line);
        self.text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_inert() {
        let hostile = "it's ${x} $y \\ \"q\" \n\r\t\u{7} γδ 🧬";
        let expected = r#"'it\'s ${x} $y \\ "q" \n\r\t\u0007 \u03b3\u03b4 \ud83e\uddec'"#;
        assert_eq!(Value::from(hostile).to_string(), expected);
    }

    #[test]
    fn values_by_type() {
        let json: serde_json::Value =
            serde_json::json!({"a": [1, 2.5, null, true], "b c": {}, "n": 3000000000_i64});
        assert_eq!(
            Value::from(&json).to_string(),
            "['a': [1, 2.5d, null, true], 'b c': [:], 'n': 3000000000L]"
        );
    }

    #[test]
    fn scopes_are_indented() {
        let mut script = Script::default();
        script.scope("docker", |docker| docker.set("enabled", true));
        assert_eq!(script.finish(), "docker {\n    enabled = true\n}\n");
    }
}
