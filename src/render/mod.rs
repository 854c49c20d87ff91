//! From a plan to the text of the run directory. Nothing is decided here.

mod command;
mod config;
pub mod groovy;
mod pipeline;
mod sampler;
mod trial;

use std::fmt::Write;

pub use command::{arguments, script};
pub use config::{run_config, workspace_config};
pub use pipeline::pipeline;
pub use sampler::{SAMPLER, samples};
pub use trial::{TRIAL_PIPELINE, trial_config};

/// JSON in ASCII, since Java 17 reads files in the locale's encoding. In JSON all beyond ASCII stands inside strings, where
/// `\u` escapes are equal to it.
pub fn ascii_json(value: &serde_json::Value) -> String {
    let mut text = String::new();
    for character in format!("{value:#}\n").chars() {
        if character.is_ascii() {
            text.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\u{unit:04x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_ascii_and_equal() {
        let value = serde_json::json!({"name": "\u{3b3}\u{3b4} \u{1f9ec} 'q' \\ \n"});
        let text = ascii_json(&value);
        assert!(text.is_ascii());
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
