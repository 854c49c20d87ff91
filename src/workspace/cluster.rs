//! What a workspace says of a SLURM cluster, and what `sinfo` knows of its partitions.

use std::process::Command;

use serde::Serialize;

use crate::ask::{PATIENCE, ask};

/// The `slurm` profile of a workspace. Absent values are left to the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cluster {
    pub queue: Option<String>,
    pub account: Option<String>,
    pub limits: Limits,
    /// What a task with a GPU asks for (`gpu:1`).
    pub gres: Option<String>,
    /// Jobs that are submitted together, as one array.
    pub array_size: Option<u32>,
    /// How often the engine asks the cluster for news.
    pub poll_interval: Option<String>,
}

/// The most that a queue takes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// In Nextflow's words (`8h`), as is the memory of one machine (`64 GB`).
    pub time: Option<String>,
    pub memory: Option<String>,
    pub cpus: Option<u32>,
}

/// A partition as `sinfo` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    pub name: String,
    pub is_default: bool,
    /// Absent: no limit.
    pub seconds: Option<u64>,
    pub megabytes: Option<u64>,
    pub cpus: Option<u32>,
    pub has_gpu: bool,
}

impl Partition {
    /// The partitions of the cluster around us; none where there is no `sinfo`, or no answer in some seconds.
    pub fn all() -> Vec<Partition> {
        let mut command = Command::new("sinfo");
        command.args(["--noheader", "--format=%P|%l|%m|%c|%G"]);
        ask(&mut command, PATIENCE).map(|text| parse(&text)).unwrap_or_default()
    }

    /// The partition of this name among them, else the cluster's default.
    pub fn choose<'a>(partitions: &'a [Partition], name: Option<&str>) -> Option<&'a Partition> {
        partitions.iter().find(|partition| name.map_or(partition.is_default, |name| partition.name == name))
    }

    pub fn limits(&self) -> Limits {
        Limits {
            time: self.seconds.map(duration),
            memory: self.megabytes.map(|megabytes| format!("{megabytes} MB")),
            cpus: self.cpus,
        }
    }
}

/// One line a partition and kind of machine; of several kinds the largest counts, since the queue takes what fits it.
fn parse(text: &str) -> Vec<Partition> {
    let mut found: Vec<Partition> = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('|').collect();
        let [name, time, memory, cpus, gres] = fields.as_slice() else { continue };
        let number = |text: &str| text.trim_end_matches('+').parse::<u64>().ok();
        let partition = Partition {
            name: name.trim_end_matches('*').to_owned(),
            is_default: name.ends_with('*'),
            seconds: seconds(time),
            megabytes: number(memory),
            cpus: number(cpus).and_then(|cpus| u32::try_from(cpus).ok()),
            has_gpu: gres.split(',').any(|gres| gres.starts_with("gpu")),
        };
        match found.iter_mut().find(|other| other.name == partition.name) {
            Some(other) => {
                other.megabytes = other.megabytes.max(partition.megabytes);
                other.cpus = other.cpus.max(partition.cpus);
                other.has_gpu |= partition.has_gpu;
            }
            None => found.push(partition),
        }
    }
    found
}

/// `[days-]hours:minutes:seconds`, `minutes:seconds` or `infinite`.
fn seconds(text: &str) -> Option<u64> {
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    let days: u64 = days.parse().ok()?;
    let clock = clock.split(':').map(|part| part.parse::<u64>().ok()).collect::<Option<Vec<u64>>>()?;
    Some(days * 86_400 + clock.into_iter().fold(0, |sum, part| sum * 60 + part))
}

/// In Nextflow's words, such as `7d` or `1h 30m`.
fn duration(seconds: u64) -> String {
    let parts = [(86_400, "d"), (3600, "h"), (60, "m"), (1, "s")];
    let mut rest = seconds;
    let mut words = Vec::new();
    for (length, unit) in parts {
        if rest >= length {
            words.push(format!("{}{unit}", rest / length));
            rest %= length;
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_sinfo_prints() {
        let text = "short*|1:00:00|21694|2|gpu:1\nlong|7-12:00:00|64000+|16+|(null)\nlong|7-12:00:00|512000|64|gpu:a100:4(S:0-1)\n\
                    free|infinite|1000|1|(null)\nquick|30:00|1000|1|\nodd line\n";
        let found = parse(text);
        let names: Vec<&str> = found.iter().map(|partition| partition.name.as_str()).collect();
        assert_eq!(names, ["short", "long", "free", "quick"]);
        assert!(found[0].is_default && found[0].has_gpu && !found[1].is_default);
        let long = found[1].limits();
        assert_eq!(
            (long.time.as_deref(), long.memory.as_deref(), long.cpus),
            (Some("7d 12h"), Some("512000 MB"), Some(64))
        );
        assert!(found[1].has_gpu && !found[2].has_gpu);
        assert_eq!((found[2].limits().time, found[3].limits().time.as_deref()), (None, Some("30m")));
    }
}
