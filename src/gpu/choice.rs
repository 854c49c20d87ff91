//! Which cards a user wants.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::error::{Error, Result};

/// The cards that are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// No card, even if there is one.
    None,
    /// One that nobody uses.
    Auto,
    /// These, in this order; each once.
    Named(Vec<Name>),
}

/// What a card is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// As `nvidia-smi` numbers it.
    Index(u32),
    /// `GPU-…`, or as much of it as is unique.
    Uuid(String),
}

/// A choice, and where it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    pub choice: Choice,
    /// Where it stands, for messages: `--gpu`.
    pub named: &'static str,
    /// For this run, on the command line or in the environment; else it is the workspace's, or nobody's.
    pub typed: bool,
}

impl Choice {
    /// Reads `auto`, `none`, or numbers and UUIDs with commas. `named` is where the text stands, for the error.
    ///
    /// # Errors
    /// Usage: it is none of these, or a card stands there twice.
    pub fn parse(text: &str, named: &str) -> Result<Choice> {
        let text = text.trim();
        match text {
            "none" => return Ok(Choice::None),
            "auto" => return Ok(Choice::Auto),
            _ => {}
        }
        let mut names = Vec::new();
        for part in text.split(',') {
            let name = Name::parse(part.trim()).map_err(|reason| {
                let error = refused(text, named);
                if reason.is_empty() { error } else { error.cause(reason) }
            })?;
            if names.contains(&name) {
                return Err(refused(text, named).cause(format_args!("{name} stands there twice")));
            }
            names.push(name);
        }
        Ok(Choice::Named(names))
    }

    /// Numbers that stand for the cards until it is known which they are: as many as will be taken.
    pub fn stand_ins(&self) -> Vec<u32> {
        match self {
            Choice::None => Vec::new(),
            Choice::Auto => vec![0],
            Choice::Named(names) => (0..)
                .zip(names)
                .map(|(position, name)| match name {
                    Name::Index(number) => *number,
                    Name::Uuid(_) => position,
                })
                .collect(),
        }
    }

    /// Whether the numbers of the cards are known without asking for them.
    pub fn is_by_number(&self) -> bool {
        match self {
            Choice::None => true,
            Choice::Auto => false,
            Choice::Named(names) => names.iter().all(|name| matches!(name, Name::Index(_))),
        }
    }
}

impl Name {
    /// The error is a reason, empty where there is no more to say.
    fn parse(text: &str) -> std::result::Result<Name, &'static str> {
        if let Ok(number) = text.parse() {
            return Ok(Name::Index(number));
        }
        if text.starts_with("MIG-") {
            return Err("it is a part of a divided card (MIG), and only whole cards can be named");
        }
        let hexadecimal = |rest: &str| rest.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        match text.strip_prefix("GPU-") {
            Some(rest) if !rest.is_empty() && hexadecimal(rest) => Ok(Name::Uuid(text.to_owned())),
            _ => Err(""),
        }
    }
}

fn refused(text: &str, named: &str) -> Error {
    Error::usage(format_args!("{named} {text:?} is no choice of GPUs")).hint(
        "write one number or several with commas, as in `--gpu 0` or `--gpu 0,1`, UUIDs, `auto` for a free card, or `none`",
    )
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Index(number) => write!(f, "{number}"),
            Name::Uuid(uuid) => f.write_str(uuid),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::None => f.write_str("none"),
            Choice::Auto => f.write_str("auto"),
            Choice::Named(names) => {
                let names: Vec<String> = names.iter().map(Name::to_string).collect();
                f.write_str(&names.join(","))
            }
        }
    }
}

impl Serialize for Wish {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(&self.choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_chosen() {
        let named = |names: Vec<Name>| Choice::Named(names);
        for (text, choice) in [
            ("none", Choice::None),
            (" auto ", Choice::Auto),
            ("0", named(vec![Name::Index(0)])),
            ("1, 0", named(vec![Name::Index(1), Name::Index(0)])),
            ("GPU-8932f937-d72c,3", named(vec![Name::Uuid("GPU-8932f937-d72c".into()), Name::Index(3)])),
        ] {
            assert_eq!(Choice::parse(text, "--gpu").unwrap(), choice, "{text}");
        }
        for bad in
            ["0;x", "", "-1", "0,,1", "0,0", "all", "auto,1", "GPU-", "GPU-x;y", "MIG-12ab", "4294967296"]
        {
            let error = Choice::parse(bad, "--gpu").unwrap_err();
            assert!(error.message.contains("--gpu"), "{bad}: {error}");
        }
    }

    #[test]
    fn text_and_stand_ins() {
        let choice = |text| Choice::parse(text, "--gpu").unwrap();
        for (text, numbers, known) in [
            ("none", vec![], true),
            ("auto", vec![0], false),
            ("3,1", vec![3, 1], true),
            ("GPU-a,GPU-b", vec![0, 1], false),
        ] {
            assert_eq!(choice(text).to_string(), text);
            assert_eq!((choice(text).stand_ins(), choice(text).is_by_number()), (numbers, known), "{text}");
        }
    }
}
