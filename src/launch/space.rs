//! Whether the disks have room for what a run will write at least.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::{Error, Result};
use crate::plan::{Part, Plan, Share};
use crate::trace::units::format_bytes;

/// What goes to one file system.
struct Load<'a> {
    device: u64,
    /// A directory on it that exists.
    place: &'a Path,
    items: Vec<Item>,
}

struct Item {
    part: Part,
    name: &'static str,
    bytes: u64,
}

impl Load<'_> {
    fn bytes(&self) -> u64 {
        self.items.iter().fold(0, |sum, item| sum.saturating_add(item.bytes))
    }
}

/// Compares the free space of every file system with what the plan and a pull of `images` put there. Where it cannot be told,
/// it is enough.
///
/// # Errors
/// Environment: there is less.
pub fn check(plan: &Plan, images: Option<&Share>) -> Result<()> {
    for load in loads(plan, images) {
        let Some(free) = free(load.place) else { continue };
        if free < load.bytes() {
            return Err(refusal(&load, free));
        }
    }
    Ok(())
}

fn loads<'a>(plan: &'a Plan, images: Option<&'a Share>) -> Vec<Load<'a>> {
    let mut loads: Vec<Load<'_>> = Vec::new();
    let mut add = |path, part, name, bytes| {
        let Some((place, device)) = existing(path) else { return };
        let item = Item { part, name, bytes };
        match loads.iter_mut().find(|load| load.device == device) {
            Some(load) => load.items.push(item),
            None => loads.push(Load { device, place, items: vec![item] }),
        }
    };
    let path = |part| plan.disk.shares.iter().find(|share| share.part == part).map(|share| &share.path);
    let device = |part| existing(path(part)?).map(|(_, device)| device);
    // Results are renamed into place where that is on the same disk, else copied.
    let copied = device(Part::Results) != device(Part::Work);
    for Share { part, path, bytes } in plan.disk.shares.iter().chain(images) {
        // Of a run that goes on nobody knows how much of its work is done.
        if *part != Part::Work || plan.resume.is_none() {
            add(path, *part, part.name(), *bytes);
        }
        if *part == Part::Work && copied {
            add(path, *part, "results before they are moved", *bytes);
        }
    }
    loads
}

/// The nearest directory that is there, and its file system.
fn existing(path: &Path) -> Option<(&Path, u64)> {
    path.ancestors().find_map(|path| Some((path, path.metadata().ok()?.dev())))
}

/// The bytes that are free for this user.
fn free(place: &Path) -> Option<u64> {
    let space = rustix::fs::statvfs(place).ok()?;
    // Some file systems of clusters and clouds tell no size at all.
    (space.f_blocks > 0).then(|| space.f_bavail.saturating_mul(space.f_frsize))
}

fn refusal(load: &Load<'_>, free: u64) -> Error {
    let items: Vec<String> =
        load.items.iter().map(|item| format!("{} {}", item.name, format_bytes(item.bytes))).collect();
    let mut error = Error::environment(format_args!("not enough disk space in {}", load.place.display()))
        .cause(format_args!(
            "at least {} needed ({}), {} free",
            format_bytes(load.bytes()),
            items.join(", "),
            format_bytes(free)
        ));
    for part in [Part::Results, Part::Work, Part::Weights, Part::Images] {
        if !load.items.iter().any(|item| item.part == part) {
            continue;
        }
        error = error.hint(match part {
            Part::Work => "`scfoundry clean --older-than 30d --dry-run` shows what old runs take",
            Part::Results => "`--outdir` puts results on another disk",
            Part::Weights => "`--weights-dir` names weights on another disk",
            Part::Images => "the container engine's `image prune` removes images that nothing uses",
        });
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_to_be_made_is_on_the_disk_of_its_parent() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("not/yet/there");
        let (place, device) = existing(&deep).unwrap();
        assert_eq!(place, folder.path());
        assert_eq!(device, folder.path().metadata().unwrap().dev());
        assert!(free(folder.path()).unwrap() > 0);
        assert_eq!(free(Path::new("/proc")), None, "a file system without a size");
    }

    #[test]
    fn the_refusal_names_the_estimate_and_the_ways_out() {
        let item = |part: Part| Item { part, name: part.name(), bytes: 3 << 29 };
        let items = vec![item(Part::Results), item(Part::Work)];
        let load = Load { device: 1, place: Path::new("/w"), items };
        let error = refusal(&load, 1 << 30);
        assert_eq!(error.message, "not enough disk space in /w");
        assert_eq!(error.causes, ["at least 3.0 GiB needed (results 1.5 GiB, work 1.5 GiB), 1.0 GiB free"]);
        assert!(error.hints[0].contains("--outdir") && error.hints[1].contains("scfoundry clean"));
        assert_eq!(error.kind.exit_code(), 4);
    }
}
