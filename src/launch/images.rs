//! The container images of an engine: which are on this machine, and how large one is that will be pulled.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::ask::{PATIENCE, ask};
use crate::plan::{Part, Plan, Runtime, Share};
use crate::trace::units::format_bytes;
use crate::ui::Ui;

/// The images of an engine on this machine.
#[derive(Debug, Clone)]
pub struct Store {
    pub runtime: Runtime,
    /// Where Nextflow keeps those of Apptainer and Singularity.
    pub folder: PathBuf,
}

impl Store {
    /// Whether images are files that Nextflow pulls, not the property of an engine on each machine.
    pub fn has_files(&self) -> bool {
        matches!(self.runtime, Runtime::Apptainer | Runtime::Singularity)
    }

    /// Whether the image is here.
    ///
    /// # Errors
    /// Why the engine does not answer, in half a sentence.
    pub fn has(&self, image: &str) -> Result<bool, String> {
        if self.has_files() {
            which::which(self.runtime.name())
                .map_err(|_| format!("{} was not found in PATH", self.runtime))?;
            return Ok(Path::new(image).exists() || self.folder.join(file_name(image)).exists());
        }
        match self.ask(&["image", "inspect", "--format", "{{.Id}}", image]) {
            Ok(_) => Ok(true),
            Err(reason) => {
                let words = reason.to_lowercase();
                let unknown = ["no such image", "image not known", "unable to find"];
                if unknown.iter().any(|sign| words.contains(sign)) { Ok(false) } else { Err(reason) }
            }
        }
    }

    /// The command that pulls the image.
    pub fn pull(&self, image: &str) -> String {
        if self.has_files() {
            let file = self.folder.join(file_name(image));
            return format!("{} pull {} docker://{image}", self.runtime, file.display());
        }
        format!("{} pull {image}", self.runtime)
    }

    /// The bytes that a pull would bring at most: the compressed layers for this machine's architecture, as the registry
    /// tells them. `None`: it does not tell, or the engine has no way to ask.
    pub fn size(&self, image: &str) -> Option<u64> {
        let mut words = vec!["manifest", "inspect"];
        match self.runtime {
            Runtime::Docker => words.push("--verbose"),
            Runtime::Podman => {}
            Runtime::Apptainer | Runtime::Singularity | Runtime::None => return None,
        }
        // The daemon pulls from a registry on this machine without TLS; this command has to be told.
        if self.runtime == Runtime::Docker && is_on_this_machine(image) {
            words.push("--insecure");
        }
        let manifest = |name: &str| -> Option<Value> {
            let answer = self.ask(&[&words[..], &[name]].concat()).ok()?;
            serde_json::from_str(&answer).ok()
        };
        let whole = manifest(image)?;
        match layers(&whole) {
            Some(bytes) => Some(bytes),
            None => layers(&manifest(&format!("{}@{}", without_tag(image), digest(&whole)?))?),
        }
    }

    /// Where the engine keeps its images, if that is on this machine.
    pub fn root(&self) -> Option<PathBuf> {
        let format = match self.runtime {
            Runtime::Docker => "{{.DockerRootDir}}\t{{.Name}}",
            Runtime::Podman => "{{.Store.GraphRoot}}\t{{.Host.Hostname}}",
            Runtime::Apptainer | Runtime::Singularity | Runtime::None => return None,
        };
        let answer = self.ask(&["info", "--format", format]).ok()?;
        let (root, machine) = answer.trim().split_once('\t')?;
        let here = rustix::system::uname();
        (here.nodename().to_str() == Ok(machine)).then(|| PathBuf::from(root))
    }

    fn ask(&self, words: &[&str]) -> Result<String, String> {
        ask(Command::new(self.runtime.name()).args(words), PATIENCE)
    }
}

/// Tells of the images that this run will have to pull, and what they add to a disk of this machine, as far as that is known.
///
/// An engine or a registry that does not answer keeps no run from trying.
pub(super) fn to_pull(plan: &Plan, ui: &Ui) -> Option<Share> {
    let store = Store { runtime: plan.runtime, folder: plan.image_folder.clone() };
    // On a cluster only images that are files are pulled from here.
    if plan.runtime == Runtime::None || !(plan.needs_engine_here() || store.has_files()) {
        return None;
    }
    let images: BTreeSet<&str> = plan.stages.iter().filter_map(|stage| stage.container.as_deref()).collect();
    let mut bytes = 0_u64;
    for image in images.into_iter().filter(|image| store.has(image) == Ok(false)) {
        let size = store.size(image);
        let about = size.map_or(String::new(), |size| format!(" (about {})", format_bytes(size)));
        ui.note(format_args!("image {image} is not here: {} will pull it{about}", plan.runtime));
        bytes = bytes.saturating_add(size.unwrap_or(0));
    }
    (bytes > 0).then(|| store.root()).flatten().map(|path| Share { part: Part::Images, path, bytes })
}

/// The name that Nextflow gives a pulled image.
fn file_name(image: &str) -> String {
    let plain = image.strip_prefix("docker://").unwrap_or(image);
    format!("{}.img", plain.replace([':', '/'], "-"))
}

/// Whether the image's registry is one that Docker takes to be on this machine.
fn is_on_this_machine(image: &str) -> bool {
    let Some((registry, _)) = image.split_once('/') else { return false };
    let host = registry.split(':').next().unwrap_or(registry);
    host == "localhost" || host.starts_with("127.")
}

/// The name of the repository alone.
fn without_tag(image: &str) -> &str {
    let plain = image.split('@').next().unwrap_or(image);
    match plain.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => plain,
    }
}

/// The layers' bytes in what a registry says of one image, or of several of which one is for this machine.
fn layers(manifest: &Value) -> Option<u64> {
    if let Some(all) = manifest.as_array() {
        return all.iter().find(|one| is_for_this_machine(&one["Descriptor"])).and_then(layers);
    }
    // Docker wraps the manifest into its own form, under a key that tells its kind.
    let plain =
        ["SchemaV2Manifest", "OCIManifest"].iter().find_map(|key| manifest.get(key)).unwrap_or(manifest);
    plain.get("layers")?.as_array()?.iter().map(|layer| layer["size"].as_u64()).sum()
}

/// The digest of this machine's image in a list of images.
fn digest(list: &Value) -> Option<&str> {
    list.get("manifests")?.as_array()?.iter().find(|one| is_for_this_machine(one))?["digest"].as_str()
}

fn is_for_this_machine(descriptor: &Value) -> bool {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let platform = &descriptor["platform"];
    platform["architecture"] == architecture && platform["os"] == "linux"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pulled_images_have_the_names_that_nextflow_gives_them() {
        assert_eq!(file_name("docker://housy17/scgpt:0.2.4"), "housy17-scgpt-0.2.4.img");
    }

    #[test]
    fn registries_and_tags_are_told_apart() {
        let here = ["127.0.0.1:5000/a:1", "localhost/a", "127.3.0.1/a/b"];
        assert!(here.into_iter().all(is_on_this_machine));
        assert!(
            !["housy17/scgpt:0.2.4", "ubuntu", "127", "example.org:5000/a"]
                .into_iter()
                .any(is_on_this_machine)
        );
        assert_eq!(without_tag("localhost:5000/a"), "localhost:5000/a");
        assert_eq!(without_tag("localhost:5000/a:1@sha256:00"), "localhost:5000/a");
    }

    #[test]
    fn the_layers_for_this_machine_are_added_up() {
        let plain = json!({ "config": { "size": 9 }, "layers": [{ "size": 30 }, { "size": 12 }] });
        assert_eq!(layers(&plain), Some(42));
        let platform = |architecture: &str| json!({ "architecture": architecture, "os": "linux" });
        let own = if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" };
        let wrapped = json!([
            { "Descriptor": { "platform": platform("s390x") }, "SchemaV2Manifest": { "layers": [{ "size": 1 }] } },
            { "Descriptor": { "platform": platform(own) }, "OCIManifest": plain },
        ]);
        assert_eq!(layers(&wrapped), Some(42));
        let list = json!({ "manifests": [
            { "digest": "sha256:aa", "platform": platform("s390x") },
            { "digest": "sha256:bb", "platform": platform(own) },
        ] });
        assert_eq!((layers(&list), digest(&list)), (None, Some("sha256:bb")));
        assert_eq!(layers(&json!({ "layers": [{ "size": "much" }] })), None);
    }
}
