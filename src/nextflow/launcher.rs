//! What the text of Nextflow's official launcher tells without starting it.

use std::io::Read;
use std::path::Path;

/// The launcher is 16 KB of shell; in the all-in-one edition a jar follows it.
const LAUNCHER_BYTES: u64 = 64 * 1024;

/// The oldest Nextflow that the pipeline runs with.
pub(super) const OLDEST: (u32, u32) = (24, 10);

/// The version of Nextflow that a program would start, if it is the official launcher: its default, or `NXF_VER`.
///
/// Anything else (a wrapper that loads a module or starts a container, a stand-in) is not judged: it may well bring
/// another Java and another version than we could see.
pub(super) fn version(program: &Path, override_version: Option<&str>) -> Option<String> {
    let mut text = Vec::new();
    std::fs::File::open(program).ok()?.take(LAUNCHER_BYTES).read_to_end(&mut text).ok()?;
    let default = default_version(&String::from_utf8_lossy(&text))?;
    Some(override_version.map_or(default, |version| version.trim_start_matches('v').to_owned()))
}

/// The version in the line `NXF_VER=${NXF_VER:-'24.10.5'}`.
fn default_version(text: &str) -> Option<String> {
    if !text.starts_with("#!") {
        return None;
    }
    let value = text.lines().find_map(|line| line.trim_start().strip_prefix("NXF_VER="))?;
    let start = value.find(|c: char| c.is_ascii_digit())?;
    let version: String =
        value[start..].chars().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-')).collect();
    release(&version).map(|_| version)
}

/// The version that a running Nextflow says it is, in its first line: `N E X T F L O W  ~  version 24.10.8`.
pub(super) fn said_version(output: &str) -> Option<&str> {
    let line = output.lines().find(|line| line.trim_start().starts_with("N E X T F L O W"))?;
    line.split_once("version ")?.1.split_whitespace().next()
}

/// Whether a version is older than the pipeline needs; one that cannot be read is not.
pub(super) fn too_old(version: &str) -> bool {
    release(version).is_some_and(|release| release < OLDEST)
}

fn release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launcher_names_its_version() {
        let text =
            |version| format!("#!/usr/bin/env bash\n# x\nNXF_VER=${{NXF_VER:-'{version}'}}\nNXF_ORG=a\n");
        assert_eq!(default_version(&text("24.10.5")).as_deref(), Some("24.10.5"));
        assert_eq!(default_version(&text("25.06.0-edge")).as_deref(), Some("25.06.0-edge"));
        assert_eq!(default_version("#!/bin/sh\nexec nextflow-wrapped \"$@\"\n"), None);
        assert_eq!(default_version("\u{7f}ELF"), None);
        assert_eq!(default_version(&text("")), None);
    }

    #[test]
    fn a_running_engine_names_its_version() {
        assert_eq!(said_version("\n N E X T F L O W   ~  version 24.10.8\n\nLaunching\n"), Some("24.10.8"));
        assert_eq!(said_version("N E X T F L O W  ~  version 22.10.6"), Some("22.10.6"));
        assert_eq!(said_version("version 3\n"), None);
    }

    #[test]
    fn releases_are_compared_as_numbers() {
        assert!(too_old("23.10.1"));
        assert!(too_old("24.04.4"));
        assert!(too_old("0.32.0"));
        for version in ["24.10.0", "24.10.8", "25.04.2", "26.08.0-edge", "latest"] {
            assert!(!too_old(version), "{version}");
        }
    }
}
