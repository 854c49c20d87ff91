//! What the user's configuration runs before a task (`beforeScript`), which ours is added to.

use serde::Serialize;

use super::containers::Place;
use crate::workspace::Config;

const DIRECTIVE: &str = "beforeScript";

/// The user's `beforeScript` for one process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Preamble {
    #[default]
    None,
    /// Bash for all processes, to go before ours.
    Text(String),
    /// Code, or of this very process: nothing can be added to it.
    Foreign,
}

impl Preamble {
    pub(super) fn of(config: &Config, process: &str) -> Preamble {
        let name = format!("process.{DIRECTIVE}");
        match config.get(&name) {
            _ if config.selects(process, DIRECTIVE) => Preamble::Foreign,
            Some("") => Preamble::None,
            Some(text) => Preamble::Text(text.to_owned()),
            None if config.has(&name) => Preamble::Foreign,
            None => Preamble::None,
        }
    }
}

/// What is lost where nothing can be added to the user's `beforeScript`, as a warning.
pub(super) fn unsampled(place: &Place<'_>, stages: &[super::Stage]) -> Option<String> {
    let stage = stages
        .iter()
        .find(|stage| stage.gpu && !place.gpus.is_empty() && stage.preamble == Preamble::Foreign)?;
    let what = match stage.surroundings.before_script {
        Some(_) => "it is replaced by the choice of the GPU, and GPU memory is not sampled",
        None => "GPU memory is not sampled",
    };
    Some(format!(
        "nothing can be added to your {DIRECTIVE} for {}, so {what}; as plain text of `process.{DIRECTIVE}` it would run first",
        stage.process
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_text_for_all_processes_can_be_added_to() {
        let of = |text: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(&file, text).unwrap();
            Preamble::of(&Config::read(file.path(), None).unwrap(), "EMBED")
        };
        assert_eq!(of(""), Preamble::None);
        assert_eq!(
            of("process.beforeScript = 'module load cuda'\n"),
            Preamble::Text("module load cuda".into())
        );
        assert_eq!(of("process.beforeScript = { \"echo ${task.cpus}\" }\n"), Preamble::Foreign);
        assert_eq!(of("process {\n withName: 'EMBED' { beforeScript = 'x' }\n}\n"), Preamble::Foreign);
        assert_eq!(of("process {\n withName: 'TRAIN' { beforeScript = 'x' }\n}\n"), Preamble::None);
    }
}
