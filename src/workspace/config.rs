//! What a `nextflow.config` says in plain literals.
//!
//! The workspace's `nextflow.config` belongs to the user, so the plan has to read it: which container engine is on, which
//! GPU, which executor. Only `nextflow config` knows the whole truth, but it costs a second and a half of JVM; this reader
//! takes the assignments whose value is a literal (`a.b = 'x'`, nested scopes, `profiles` of the chosen names,
//! `includeConfig 'file'`) and marks every other value as an expression. Values are only ever used as defaults.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{Error, Result};

/// A value as far as it can be known without running Groovy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    Text(String),
    /// A number, `true`, `false` or `null`, as written.
    Word(String),
    /// Set, but by code.
    Expression,
}

/// The literal assignments of a configuration by dotted name (`docker.enabled`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    values: BTreeMap<String, Setting>,
}

const MAX_INCLUDES: usize = 8;

impl Config {
    /// Reads `path` with the settings of `profiles` (comma-separated) on top. A missing file is an empty configuration.
    pub fn read(path: &Path, profiles: Option<&str>) -> Result<Config> {
        Config::read_all(&[path], profiles)
    }

    /// Reads several files, later ones on top, then the settings of `profiles` that any of them has.
    pub fn read_all(paths: &[&Path], profiles: Option<&str>) -> Result<Config> {
        let mut config = Config::default();
        for path in paths {
            config.include(path, 0)?;
        }
        for profile in profiles.unwrap_or("standard").split(',') {
            let prefix = format!("profiles.{}.", profile.trim());
            let chosen: Vec<_> = config
                .values
                .range(prefix.clone()..)
                .take_while(|(name, _)| name.starts_with(&prefix))
                .map(|(name, setting)| (name[prefix.len()..].to_owned(), setting.clone()))
                .collect();
            config.values.extend(chosen);
        }
        Ok(config)
    }

    fn include(&mut self, path: &Path, depth: usize) -> Result<()> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && depth == 0 => return Ok(()),
            Err(_) if depth > 0 => return Ok(()),
            Err(error) => return Err(Error::io("read", path)(error)),
        };
        let parsed = parse(&text);
        for include in &parsed.includes {
            if depth < MAX_INCLUDES {
                let folder = path.parent().unwrap_or(Path::new(""));
                self.include(&folder.join(include), depth + 1)?;
            }
        }
        self.values.extend(parsed.values);
        Ok(())
    }

    /// Whether `name` is set at all.
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Whether `process.<directive>` is set for all processes or for one of this name.
    pub fn sets(&self, process: &str, directive: &str) -> bool {
        self.has(&format!("process.{directive}")) || self.selects(process, directive)
    }

    /// Whether a selector that may mean this process sets the directive. What is more than a plain name is a pattern or a
    /// label, of which the worst is thought.
    pub fn selects(&self, process: &str, directive: &str) -> bool {
        let plain = |pattern: &str| pattern.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        self.values.keys().any(|name| {
            let selector = name.strip_prefix("process.").and_then(|name| name.strip_suffix(directive));
            match selector.and_then(|selector| selector.strip_suffix('.')) {
                Some(selector) => match selector.strip_prefix("withName:") {
                    Some(pattern) => pattern == process || !plain(pattern),
                    None => selector.starts_with("withLabel:"),
                },
                None => false,
            }
        })
    }

    /// The value of `name`, if it is a literal.
    pub fn get(&self, name: &str) -> Option<&str> {
        match self.values.get(name)? {
            Setting::Text(text) | Setting::Word(text) => Some(text),
            Setting::Expression => None,
        }
    }

    /// Whether `name` is literally `true`.
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }
}

#[derive(Default)]
struct Parsed {
    values: BTreeMap<String, Setting>,
    includes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Text(String),
    Symbol(char),
    Newline,
}

/// Reads statements; whatever is not an assignment, a scope or an include is passed over.
fn parse(text: &str) -> Parsed {
    let tokens = tokens(text);
    let mut parsed = Parsed::default();
    let mut scopes: Vec<String> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            Token::Symbol('}') => {
                scopes.pop();
                at += 1;
            }
            Token::Word(word) if word == "includeConfig" => {
                if let Some(Token::Text(path)) = tokens.get(at + 1) {
                    parsed.includes.push(path.clone());
                }
                at += 2;
            }
            Token::Word(_) | Token::Text(_) => at = statement(&tokens, at, &mut scopes, &mut parsed.values),
            Token::Symbol(_) | Token::Newline => at += 1,
        }
    }
    parsed
}

/// One statement that starts with a name; gives the position after it.
fn statement(
    tokens: &[Token],
    mut at: usize,
    scopes: &mut Vec<String>,
    values: &mut BTreeMap<String, Setting>,
) -> usize {
    let mut name = String::new();
    while let Some(token) = tokens.get(at) {
        match token {
            Token::Word(word) | Token::Text(word) => name.push_str(word),
            Token::Symbol(symbol @ ('.' | ':')) => name.push(*symbol),
            _ => break,
        }
        at += 1;
    }
    match tokens.get(at) {
        Some(Token::Symbol('{')) => {
            scopes.push(name);
            at + 1
        }
        Some(Token::Symbol('=')) => {
            let end = value_end(tokens, at + 1);
            let setting = match &tokens[at + 1..end] {
                [Token::Text(text)] => Setting::Text(text.clone()),
                [Token::Word(word)] => Setting::Word(word.clone()),
                _ => Setting::Expression,
            };
            let full = scopes.iter().map(String::as_str).chain([name.as_str()]).collect::<Vec<_>>().join(".");
            values.insert(full, setting);
            end
        }
        _ => at.max(1),
    }
}

/// Where the value that starts at `at` ends: a line end, `;` or `}` outside all brackets.
fn value_end(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0usize;
    for (offset, token) in tokens[at..].iter().enumerate() {
        match token {
            Token::Symbol('{' | '[' | '(') => depth += 1,
            Token::Symbol('}' | ']' | ')') if depth == 0 => return at + offset,
            Token::Symbol('}' | ']' | ')') => depth -= 1,
            Token::Newline | Token::Symbol(';') if depth == 0 => return at + offset,
            _ => {}
        }
    }
    tokens.len()
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if rest.starts_with("/*") {
            rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
        } else if first == '\'' || first == '"' {
            let (token, after) = quoted(rest, first);
            tokens.push(token);
            rest = after;
        } else if first == '\n' {
            tokens.push(Token::Newline);
            rest = &rest[1..];
        } else if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
        } else if first.is_alphanumeric() || matches!(first, '_' | '-' | '$') {
            let end = word_end(rest);
            tokens.push(Token::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        } else {
            tokens.push(Token::Symbol(first));
            rest = &rest[first.len_utf8()..];
        }
    }
    tokens
}

fn word_end(text: &str) -> usize {
    text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '$'))).unwrap_or(text.len())
}

/// A string in single, double or triple quotes. A double-quoted one with `$` is code.
fn quoted(text: &str, quote: char) -> (Token, &str) {
    let triple: String = [quote; 3].iter().collect();
    let (open, close) =
        if text.starts_with(&triple) { (3, triple.as_str()) } else { (1, &triple[..quote.len_utf8()]) };
    let body = &text[open..];
    let mut value = String::new();
    let mut code = false;
    let mut position = 0;
    while position < body.len() {
        if body[position..].starts_with(close) {
            let after = &body[position + close.len()..];
            let token = if code { Token::Symbol('$') } else { Token::Text(value) };
            return (token, after);
        }
        let mut characters = body[position..].chars();
        let Some(character) = characters.next() else { break };
        position += character.len_utf8();
        if character == '\\' {
            let Some(escaped) = characters.next() else { break };
            position += escaped.len_utf8();
            value.push(match escaped {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            });
        } else {
            code |= character == '$' && quote == '"';
            value.push(character);
        }
    }
    (Token::Symbol('$'), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str, profiles: Option<&str>) -> Config {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nextflow.config");
        std::fs::write(&path, text).unwrap();
        Config::read(&path, profiles).unwrap()
    }

    #[test]
    fn reads_nested_and_dotted_literals() {
        let config = config(
            "params { gpu_id = '0,1' }\n// docker.enabled = false\ndocker {\n  enabled = true\n  runOptions = '-u $(id -u)'\n}\n\
             process.executor = \"slurm\"\nprocess { withLabel: gpu { maxForks = 2 } ; cpus = 4 }\n\
             env.X = \"${HOME}/x\"\nprocess.clusterOptions = { \"--mem=${task.memory}\" }\nworkDir = '/scratch'",
            None,
        );
        assert_eq!(config.get("params.gpu_id"), Some("0,1"));
        assert!(config.is_true("docker.enabled"));
        assert_eq!(config.get("docker.runOptions"), Some("-u $(id -u)"));
        assert_eq!(config.get("process.executor"), Some("slurm"));
        assert_eq!(config.get("process.cpus"), Some("4"));
        assert!(config.has("env.X") && config.get("env.X").is_none());
        assert!(config.has("process.clusterOptions"));
        assert_eq!(config.get("workDir"), Some("/scratch"));
    }

    #[test]
    fn only_the_chosen_profile_counts() {
        let text =
            "profiles { slurm { process.executor = 'slurm' } local { process { executor = 'local' } } }";
        assert_eq!(config(text, None).get("process.executor"), None);
        assert_eq!(config(text, Some("slurm")).get("process.executor"), Some("slurm"));
        assert_eq!(config(text, Some("slurm,local")).get("process.executor"), Some("local"));
    }

    #[test]
    fn included_files_come_first() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("site.config"), "docker.enabled = true\nparams.gpu_id = 3")
            .unwrap();
        let path = folder.path().join("nextflow.config");
        std::fs::write(&path, "includeConfig 'site.config'\nparams.gpu_id = 1\n").unwrap();
        let config = Config::read(&path, None).unwrap();
        assert!(config.is_true("docker.enabled"));
        assert_eq!(config.get("params.gpu_id"), Some("1"));
    }

    proptest::proptest! {
        #[test]
        fn never_panics_and_always_ends(text in "[a-z.='\"{}\\[\\]$\\\\\n/* :;-]{0,60}") {
            parse(&text);
        }
    }
}
