//! From TOML text to a checked profile, with errors that name file, line and key.

use std::ops::Range;
use std::path::Path;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, de};

use super::check::Flaw;
use super::{Profile, nearest};
use crate::error::{Error, Result};

/// Reads one profile and checks it. `path` is named in errors and its stem must be the method's name.
///
/// # Errors
/// Input, naming file, line, key and value: not TOML, an unknown or missing key, a value of another type or out of range.
pub fn parse_profile(text: &str, path: &Path) -> Result<Profile> {
    let profile: Profile = toml::from_str(text).map_err(|error| unreadable(text, path, &error))?;
    profile.sound().and_then(|()| named_after_file(&profile, path)).map_err(|flaw| {
        let line = line_of(text, &flaw.at).map(|line| format!(", line {line}")).unwrap_or_default();
        faulty(path, format_args!("{}{line}: key \"{}\" {}", path.display(), flaw.key(), flaw.message))
    })?;
    Ok(profile)
}

fn named_after_file(profile: &Profile, path: &Path) -> std::result::Result<(), Flaw> {
    let stem = path.file_stem().unwrap_or_default();
    if stem == profile.name.as_str() {
        return Ok(());
    }
    let message =
        format!("\"{}\" is not the name of the file (\"{}\")", profile.name, stem.to_string_lossy());
    Err(Flaw::new("name", message))
}

/// The error of toml as one sentence, with its picture of the place as the cause.
fn unreadable(text: &str, path: &Path, error: &de::Error) -> Error {
    let mut place = String::new();
    if let Some(span) = error.span() {
        place = format!(", line {}", line_at(text, span.start));
        if let Some(key) = key_at(text, &span) {
            place.push_str(&format!(", key \"{key}\""));
        }
    }
    let message = error.message().lines().next().unwrap_or_default();
    let fault = message.split(", expected one of").next().unwrap_or(message);
    let picture = error.to_string();
    let picture = picture.split_once('\n').map_or("", |(_, rest)| rest.trim_end());
    let error = faulty(path, format_args!("{}{place}: {fault}", path.display())).cause(picture);
    match meant(message) {
        Some(word) => error.hint(format_args!("did you mean \"{word}\"?")),
        None => error,
    }
}

/// The known word nearest to the unknown one in a message such as "unknown field `a`, expected one of `b`, `c`".
fn meant(message: &str) -> Option<&str> {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted.next()?;
    nearest(unknown, quoted).first().copied()
}

fn faulty(path: &Path, what: std::fmt::Arguments<'_>) -> Error {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    Error::input(format_args!("method profile {what}"))
        .hint(format_args!("correct {file}, or move it out of the folder"))
}

/// 1-based line of a byte offset.
fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// The key on the line where a span begins, unless the span is a whole table or the document.
fn key_at<'a>(text: &'a str, span: &Range<usize>) -> Option<&'a str> {
    let start = text.get(..span.start)?.rfind('\n').map_or(0, |newline| newline + 1);
    let line = text.get(start..)?.lines().next()?;
    if span.is_empty() || text.get(span.clone())?.lines().count() > 1 {
        return None;
    }
    let (key, _) = line.split_once('=')?;
    let key = key.trim();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    (!key.is_empty() && key.chars().all(plain)).then_some(key)
}

/// 1-based line of the value at a path of keys and list positions, or of the nearest table above it.
fn line_of(text: &str, at: &str) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let mut found = None;
    let mut parts = at.split('.');
    let mut value = entry(root.get_ref(), parts.next()?)?;
    loop {
        found = Some(value.span().start).or(found);
        let Some(part) = parts.next() else { break };
        let next = match value.get_ref() {
            DeValue::Table(table) => entry(table, part),
            DeValue::Array(list) => part.parse::<usize>().ok().and_then(|position| list.get(position)),
            _ => None,
        };
        match next {
            Some(next) => value = next,
            None => break,
        }
    }
    found.map(|offset| line_at(text, offset))
}

fn entry<'a, 'i>(table: &'a DeTable<'i>, key: &str) -> Option<&'a Spanned<DeValue<'i>>> {
    table.get(key)
}
