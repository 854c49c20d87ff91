//! `usage.json`: what a task measured of itself, left in its work directory for the cost summary.
//!
//! Kernels and runners write it; the trace knows nothing of cells, batches or GPU memory.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::error::{Error, Result};

/// The name of the file in a task's work directory.
pub const FILE_NAME: &str = "usage.json";

/// Clock ticks in a second where the kernel does not say: the value of every common architecture.
const TICKS_PER_SECOND: u64 = 100;

/// The entry of `/proc/self/auxv` that holds the clock ticks in a second.
const AT_CLKTCK: u64 = 17;

/// What one task used. Everything but `kind` may be absent, and an absent number is not zero.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Who measured: `kernel` or `runner`.
    pub kind: String,
    #[serde(default)]
    pub cells: Option<u64>,
    #[serde(default)]
    pub genes: Option<u64>,
    #[serde(default)]
    pub batch_size_asked: Option<u64>,
    /// The batch size that held, after halvings.
    #[serde(default)]
    pub batch_size_used: Option<u64>,
    /// How often the batch was halved because GPU memory ran out.
    #[serde(default)]
    pub halvings: Option<u32>,
    /// `cpu`, or the name of the card.
    #[serde(default)]
    pub device: Option<String>,
    /// Cards in use; absent: one if `device` names a card.
    #[serde(default)]
    pub gpus: Option<u32>,
    #[serde(default)]
    pub peak_gpu_bytes_allocated: Option<u64>,
    #[serde(default)]
    pub peak_gpu_bytes_reserved: Option<u64>,
    #[serde(default)]
    pub peak_rss_bytes: Option<u64>,
    /// User and system time of the process and of its ended children.
    #[serde(default)]
    pub cpu_seconds: Option<f64>,
    #[serde(default)]
    pub threads: Option<u32>,
    /// Wall time by phase, in order.
    #[serde(default)]
    pub phases: Vec<Phase>,
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// One named part of a task's wall time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    pub name: String,
    pub seconds: f64,
    /// The largest resident size of the process during the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_rss_bytes: Option<u64>,
}

/// Reads the `usage.json` of a work directory. `None`: there is none. Errors: it is unreadable or not valid.
pub fn read(work_directory: &Path) -> Result<Option<Usage>> {
    let path = work_directory.join(FILE_NAME);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("read", &path)(error)),
    };
    parse(&path, &bytes).map(Some)
}

/// Reads the bytes of a `usage.json`; the path is for the error, that it is not valid.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Usage> {
    serde_json::from_slice(bytes)
        .map_err(|error| Error::input(format_args!("{} is damaged", path.display())).cause(error))
}

impl Usage {
    /// The record of a task that has measured nothing yet; `kind` is `kernel` or `runner`.
    pub fn new(kind: impl Into<String>) -> Usage {
        Usage { kind: kind.into(), ..Usage::default() }
    }

    /// Does `work` and adds its wall time as a phase.
    pub fn phase<T>(&mut self, name: &str, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        let seconds = start.elapsed().as_secs_f64();
        self.phases.push(Phase { name: name.to_owned(), seconds, peak_rss_bytes: None });
        result
    }

    /// Fills `peak_rss_bytes` and `cpu_seconds` with what the kernel counted for this process so far.
    ///
    /// Where `/proc` is missing they stay as they are.
    pub fn measure_process(&mut self) {
        self.peak_rss_bytes = own_peak_rss_bytes().or(self.peak_rss_bytes);
        self.cpu_seconds = own_cpu_seconds().or(self.cpu_seconds);
    }

    /// The larger of the peaks of GPU memory: reserved includes allocated, where both are known.
    pub fn peak_gpu_bytes(&self) -> Option<u64> {
        self.peak_gpu_bytes_reserved.max(self.peak_gpu_bytes_allocated)
    }

    /// How many cards the task used, as far as it said.
    pub fn gpu_count(&self) -> Option<u32> {
        self.gpus.or_else(|| match self.device.as_deref() {
            Some(device) => Some(u32::from(!device.trim().eq_ignore_ascii_case("cpu"))),
            None => self.peak_gpu_bytes().map(|bytes| u32::from(bytes > 0)),
        })
    }

    /// Writes `usage.json` into a work directory, whole or not at all.
    pub fn write(&self, work_directory: &Path) -> Result<()> {
        let path = work_directory.join(FILE_NAME);
        let mut text = serde_json::to_vec_pretty(self)
            .map_err(|error| Error::failed("cannot write the task's usage as JSON").cause(error))?;
        text.push(b'\n');
        atomic::write(&path, &text)
    }
}

/// The largest resident size of this process so far, in bytes (`VmHWM`).
pub fn own_peak_rss_bytes() -> Option<u64> {
    status_bytes(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// The resident size of this process now, in bytes.
pub fn own_rss_bytes() -> Option<u64> {
    status_bytes(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// A size in `/proc/PID/status`, in bytes.
pub(crate) fn status_bytes(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// User and system time of this process and its ended children so far, in seconds.
pub fn own_cpu_seconds() -> Option<f64> {
    let ticks = cpu_ticks_in(&fs::read_to_string("/proc/self/stat").ok()?)?;
    Some(ticks as f64 / ticks_per_second() as f64)
}

/// Fields 14 to 17 of `/proc/self/stat`, counted behind the command, which may itself hold spaces and brackets.
fn cpu_ticks_in(stat: &str) -> Option<u64> {
    let (_, after_command) = stat.rsplit_once(')')?;
    let mut fields = after_command.split_ascii_whitespace().skip(11);
    (0..4).map(|_| fields.next()?.parse::<u64>().ok()).sum()
}

fn ticks_per_second() -> u64 {
    fs::read("/proc/self/auxv").ok().and_then(|bytes| ticks_in(&bytes)).unwrap_or(TICKS_PER_SECOND)
}

fn ticks_in(auxiliary_vector: &[u8]) -> Option<u64> {
    const WORD: usize = size_of::<usize>();
    let word = |bytes: &[u8]| Some(usize::from_ne_bytes(bytes.try_into().ok()?) as u64);
    auxiliary_vector
        .chunks_exact(2 * WORD)
        .find(|pair| word(&pair[..WORD]) == Some(AT_CLKTCK))
        .and_then(|pair| word(&pair[WORD..]))
        .filter(|&ticks| ticks > 0)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::error::Kind;

    #[test]
    fn survives_writing_and_is_readable_by_others() {
        let directory = tempfile::tempdir().unwrap();
        let mut usage = Usage { cells: Some(700), halvings: Some(0), ..Usage::new("kernel") };
        assert_eq!(usage.phase("read", || 42), 42);
        usage.write(directory.path()).unwrap();
        assert_eq!(read(directory.path()).unwrap(), Some(usage.clone()));
        let path = directory.path().join(FILE_NAME);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o400, 0o400);
        let plain = directory.path().join("plain");
        File::create(&plain).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), mode(&plain));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
        usage.write(directory.path()).unwrap();
    }

    #[test]
    fn only_the_kind_is_needed_and_unknown_keys_are_no_matter() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(FILE_NAME);
        fs::write(
            &file,
            r#"{"kind": "runner", "cells": null, "later": [1], "phases": [{"name": "a", "seconds": 1}]}"#,
        )
        .unwrap();
        let usage = read(directory.path()).unwrap().unwrap();
        assert_eq!((usage.kind.as_str(), usage.cells, usage.phases.len()), ("runner", None, 1));
        fs::write(&file, "{}").unwrap();
        let error = read(directory.path()).unwrap_err();
        assert_eq!(error.kind, Kind::Input);
        assert!(
            error.message.ends_with("usage.json is damaged") && error.causes[0].contains("kind"),
            "{error}"
        );
        fs::remove_file(&file).unwrap();
        assert_eq!(read(directory.path()).unwrap(), None);
        let gone = Usage::new("kernel").write(&directory.path().join("gone")).unwrap_err();
        assert!(gone.message.starts_with("cannot write "), "{gone}");
    }

    #[test]
    fn cards_are_counted_by_what_is_known() {
        let of = |device: Option<&str>| Usage { device: device.map(str::to_owned), ..Usage::new("runner") };
        assert_eq!(of(None).gpu_count(), None);
        assert_eq!(of(Some("cpu")).gpu_count(), Some(0));
        assert_eq!(of(Some("NVIDIA T4")).gpu_count(), Some(1));
        assert_eq!(Usage { gpus: Some(4), ..of(Some("NVIDIA T4")) }.gpu_count(), Some(4));
        assert_eq!(Usage { peak_gpu_bytes_allocated: Some(9), ..of(None) }.gpu_count(), Some(1));
        assert_eq!(Usage { peak_gpu_bytes_reserved: Some(7), ..of(None) }.peak_gpu_bytes(), Some(7));
    }

    #[test]
    fn measures_this_process() {
        let mut usage = Usage::new("kernel");
        let block = std::hint::black_box(vec![1_u8; 64 << 20]);
        let start = Instant::now();
        let mut sum = 0_u64;
        while own_cpu_seconds() == Some(0.0) && start.elapsed().as_secs() < 20 {
            sum = std::hint::black_box(sum.wrapping_add(u64::from(block[sum as usize % block.len()])));
        }
        usage.measure_process();
        assert!(usage.peak_rss_bytes.unwrap() >= 64 << 20, "{usage:?}");
        assert!(usage.cpu_seconds.unwrap() > 0.0, "{usage:?}");
    }

    #[test]
    fn reads_what_the_kernel_writes() {
        assert_eq!(status_bytes("Name:\tx\nVmPeak:\t  9 kB\nVmHWM:\t    2048 kB\n", "VmHWM:"), Some(2 << 20));
        assert_eq!(status_bytes("VmHWM:\tmuch\n", "VmHWM:"), None);
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 100 20 3 4 20 0";
        assert_eq!(cpu_ticks_in(stat), Some(127));
        assert_eq!(cpu_ticks_in("7 (a) S 1 2"), None);
        let word = |value: usize| value.to_ne_bytes();
        assert_eq!(ticks_in(&[word(3), word(9), word(17), word(250), word(0), word(0)].concat()), Some(250));
        assert_eq!(ticks_in(&[1, 2, 3]), None);
    }
}
