//! What a real task finds in a container of the workspace's engine.

use super::super::surroundings::{Surroundings, variable};
use super::{Args, Check};
use crate::error::{Error, Result};
use crate::launch::{self, ImageStore, Seen, Tried};
use crate::method::{Catalogue, RunnerKind};
use crate::plan::{self, Gpus, Trial};
use crate::trace::units::format_bytes;
use crate::ui::Ui;
use crate::workspace::Config;

/// Less shared memory than this is too little for the data loaders of models.
const SHARED_MEMORY: u64 = 1 << 30;

/// An image to test, and the language of the method it is for.
struct Image {
    name: String,
    runner: Option<RunnerKind>,
}

/// Runs the task; its findings one by one. An image that is not here is a failed check.
pub(super) fn checks(args: &Args, around: &Surroundings, config: &Config, ui: &Ui) -> Result<Vec<Check>> {
    let runtime = Trial::runtime(config)?;
    let folder = plan::image_folder(runtime, config, &around.settings.cache_dir.value, &variable);
    let store = ImageStore { runtime, folder };
    let image = match image(args, &around.catalogue()?, &store)? {
        Ok(image) => image,
        Err(check) => return Ok(vec![check]),
    };
    let catalogue = around.catalogue()?;
    let trial = Trial::make(&image.name, args.profile.as_deref(), &around.context(&catalogue, ""))?;
    ui.note(format_args!("testing {} in {runtime}", image.name));
    let mut checks = vec![Check::ok("image", format!("{} ({runtime})", image.name))];
    match launch::attempt(&trial, &around.workspace, &around.settings, ui) {
        Ok(Tried::Ended(seen)) => checks.extend(findings(&seen, &image, &trial.gpus)),
        Ok(Tried::Failed(diagnosis)) => checks.push(Check::fail("task", diagnosis.what).mend(diagnosis.hint)),
        Err(error) if error.kind == crate::error::Kind::Environment => {
            let mend = error.hints.first().cloned();
            checks.push(Check { mend, ..Check::fail("task", error.to_string()) });
        }
        Err(error) => return Err(error),
    }
    Ok(checks)
}

/// The image that was asked for, else the first of a method that is here; a failed check where there is none.
fn image(
    args: &Args,
    catalogue: &Catalogue,
    store: &ImageStore,
) -> Result<std::result::Result<Image, Check>> {
    let asked = match (&args.image, &args.method) {
        (Some(name), _) => Some(Image { name: name.clone(), runner: None }),
        (None, Some(method)) => {
            let profile = catalogue.get(method)?;
            let name = profile.image.clone().ok_or_else(|| {
                Error::usage(format_args!("{method} runs without a container"))
                    .hint("name a method with an image, or `--image IMAGE`")
            })?;
            Some(Image { name, runner: Some(profile.runner.kind) })
        }
        (None, None) => None,
    };
    if let Some(image) = asked {
        return Ok(match store.has(&image.name) {
            Ok(true) => Ok(image),
            Ok(false) => Err(missing(store, &image.name)),
            Err(reason) => Err(silent(store, reason)),
        });
    }
    let mut first = None;
    for profile in catalogue.iter() {
        let Some(name) = &profile.image else { continue };
        match store.has(name) {
            Ok(true) => return Ok(Ok(Image { name: name.clone(), runner: Some(profile.runner.kind) })),
            Ok(false) => first = first.or(Some(name)),
            Err(reason) => return Ok(Err(silent(store, reason))),
        }
    }
    Ok(Err(match first {
        Some(name) => Check::fail("image", "no image of a method is here, and none is pulled unasked")
            .mend(format!("{}, or `--image IMAGE`", store.pull(name))),
        None => Check::fail("image", "no method has an image").mend("name one with `--image IMAGE`"),
    }))
}

/// An image that is not here.
fn missing(store: &ImageStore, image: &str) -> Check {
    Check::fail("image", format!("{image} is not here, and no image is pulled unasked"))
        .mend(store.pull(image))
}

/// An engine that does not answer.
fn silent(store: &ImageStore, reason: String) -> Check {
    Check::fail("image", reason).mend(format!("start or install {}", store.runtime))
}

fn findings(seen: &Seen, image: &Image, gpus: &Gpus) -> Vec<Check> {
    let one = |name: &str| seen.told.get(name).and_then(|values| values.first()).map_or("", String::as_str);
    vec![
        Check::ok("task", format!("ran through Nextflow in {:.1} s", seen.took.as_secs_f64())),
        user(one("user")),
        match one("work") {
            "yes" => Check::ok("work", "the task can write its directory"),
            _ => Check::fail("work", "the task cannot write its directory")
                .mend("let the container's user write the workspace, or mount it (`containerOptions`)"),
        },
        home(one("home"), one("home_written") == "yes"),
        shared_memory(one("shm_kib").parse().ok()),
        match one("ps") {
            "" => Check::fail("ps inside", "not in the image: Nextflow measures tasks with it")
                .mend("install procps in the image"),
            path => Check::ok("ps inside", path),
        },
        python(one("python3"), image),
        gpu(seen.told.get("gpu").map_or(&[], Vec::as_slice), one("cuda_visible_devices"), gpus),
        files(seen),
    ]
}

fn user(inside: &str) -> Check {
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    match format!("{uid}:{gid}") {
        outside if outside == inside => Check::ok("user", format!("{inside}, as outside")),
        outside => Check::note("user", format!("{inside} inside, {outside} outside")),
    }
}

fn home(path: &str, written: bool) -> Check {
    match (path, written) {
        (path, true) => Check::ok("home", path),
        ("", false) => {
            Check::note("home", "HOME is not set inside: libraries may not find a place for caches")
        }
        (path, false) => {
            Check::note("home", format!("{path} cannot be written: libraries that cache there fail"))
        }
    }
}

fn shared_memory(kib: Option<u64>) -> Check {
    let name = "/dev/shm";
    match kib.map(|kib| kib.saturating_mul(1024)) {
        None => Check::note(name, "none inside: data loaders with several workers fail"),
        Some(bytes) if bytes >= SHARED_MEMORY => Check::ok(name, format_bytes(bytes)),
        Some(bytes) => Check::note(
            name,
            format!("{}: little for data loaders with several workers", format_bytes(bytes)),
        )
        .mend("raise it where nextflow.config or the site limits it (`--shm-size`)"),
    }
}

fn python(version: &str, image: &Image) -> Check {
    let name = "python3";
    match (version.strip_prefix("Python "), image.runner) {
        (Some(version), _) => Check::ok(name, version),
        (None, Some(RunnerKind::Python)) => Check::fail(name, "not in the image, and its method needs it")
            .mend("choose an image with Python 3"),
        (None, _) => Check::note(name, "not in the image: methods in Python need it"),
    }
}

fn gpu(cards: &[String], visible: &str, asked: &Gpus) -> Check {
    let name = "gpu inside";
    let variable = format!("CUDA_VISIBLE_DEVICES {visible}");
    match (asked.is_empty(), cards) {
        (true, []) => Check::note(name, "not asked for; `--gpu 0` tests the first card"),
        (true, cards) => {
            Check::note(name, format!("{} though none was asked for, {variable}", cards.join("; ")))
        }
        (false, []) => Check::fail(name, format!("nvidia-smi shows no card to the task, {variable}"))
            .mend("run `nvidia-smi` outside; Docker needs the NVIDIA Container Toolkit"),
        // Where the variable chooses, the tool shows all cards.
        (false, cards) if visible == "unset" && cards.len() != asked.0.len() => {
            Check::fail(name, format!("GPU {asked} was asked for, the task sees {}", cards.join("; ")))
                .mend("look for GPU flags in nextflow.config (`runOptions`, `containerOptions`)")
        }
        (false, cards) => Check::ok(name, format!("{}, {variable}", cards.join("; "))),
    }
}

fn files(seen: &Seen) -> Check {
    let own = rustix::process::getuid().as_raw();
    let others = || seen.owners.iter().filter(|(uid, _)| **uid != own);
    let count =
        |owners: &mut dyn Iterator<Item = (&u32, &usize)>| owners.map(|(_, count)| count).sum::<usize>();
    match count(&mut others()) {
        0 => Check::ok("files", format!("all {} belong to you", count(&mut seen.owners.iter()))),
        foreign => {
            let users: Vec<String> = others().map(|(uid, _)| uid.to_string()).collect();
            Check::fail("files", format!("{foreign} files of the task belong to user {}", users.join(", ")))
                .mend("take `-u` or `--user` out of `docker.runOptions`, or give it your own user number")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    fn cards(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn gpus_are_judged_by_what_was_asked_for() {
        let two = cards(&["GPU 0: A", "GPU 1: B"]);
        assert_eq!(gpu(&[], "unset", &Gpus(vec![])).level, Level::Note);
        assert_eq!(gpu(&[], "unset", &Gpus(vec![0])).level, Level::Fail);
        assert_eq!(gpu(&two, "unset", &Gpus(vec![1])).level, Level::Fail);
        assert_eq!(gpu(&two, "1", &Gpus(vec![1])).level, Level::Ok);
        assert_eq!(gpu(&two, "unset", &Gpus(vec![0, 1])).level, Level::Ok);
    }

    #[test]
    fn files_of_another_user_fail() {
        let own = rustix::process::getuid().as_raw();
        let seen =
            |owners: &[(u32, usize)]| Seen { owners: owners.iter().copied().collect(), ..Seen::default() };
        let good = files(&seen(&[(own, 7)]));
        assert_eq!((good.level, good.found.as_str()), (Level::Ok, "all 7 belong to you"));
        let bad = files(&seen(&[(own, 7), (own + 1, 2)]));
        assert_eq!(bad.level, Level::Fail);
        assert!(bad.found.starts_with("2 files of the task belong to user "), "{}", bad.found);
    }

    #[test]
    fn little_shared_memory_is_noted() {
        assert_eq!(shared_memory(Some(64 * 1024)).level, Level::Note);
        assert_eq!(shared_memory(Some(2 << 20)).level, Level::Ok);
        assert_eq!(shared_memory(None).level, Level::Note);
    }

    #[test]
    fn a_method_in_python_needs_python() {
        let image = |runner| Image { name: "x".to_owned(), runner };
        assert_eq!(python("Python 3.11.2", &image(None)).found, "3.11.2");
        let missing = "bash: python3: command not found";
        assert_eq!(python(missing, &image(Some(RunnerKind::Python))).level, Level::Fail);
        assert_eq!(python(missing, &image(Some(RunnerKind::R))).level, Level::Note);
    }
}
