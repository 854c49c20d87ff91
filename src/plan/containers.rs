//! What a container engine must be told, so that a task sees its GPU, its files belong to the user and nothing else changes.
//!
//! All of it goes to the processes that need it, by `containerOptions`: a setting for the whole engine would reach CPU
//! tasks too, and a `runOptions` of the user would replace it or be replaced.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};

use super::resources::{Gpus, Runtime};
use super::stages::Stage;
use crate::shell;
use crate::workspace::Config;

/// The surroundings of one process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Surroundings {
    /// Added to the engine's command line; Bash, evaluated where the task starts.
    pub container_options: Option<String>,
    /// Bash that runs outside the container, before it.
    pub before_script: Option<String>,
}

/// What [`surroundings`] has to know.
pub struct Place<'a> {
    pub runtime: Runtime,
    pub config: &'a Config,
    pub gpus: &'a Gpus,
    pub executor: &'a str,
    pub mounts: Vec<Mount>,
}

impl Place<'_> {
    /// A scheduler, not we, chooses machine and GPU.
    pub fn scheduled(&self) -> bool {
        self.executor != "local"
    }
}

/// How the tasks of a process use the run's cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cards {
    /// They use no GPU.
    None,
    /// Each sees all.
    All,
    /// Each sees one, which no other task of the run is using.
    OneEach,
}

/// A directory that a task finds at the same path inside a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub path: PathBuf,
    pub writable: bool,
}

/// Flags for a process that runs in a container (or, without one, in an environment of its own).
pub fn surroundings(place: &Place<'_>, process: &str, cards: Cards) -> Surroundings {
    // `--gpu none`: a flag without a number would be refused, or would mean all cards.
    let gpu = cards != Cards::None && !place.gpus.is_empty();
    let numbers = match cards {
        Cards::None => Vec::new(),
        Cards::OneEach => vec!["$SCFOUNDRY_CARD".to_owned()],
        Cards::All => place.gpus.0.iter().map(u32::to_string).collect(),
    };
    let options = match place.runtime {
        Runtime::Docker => docker(place, gpu, &numbers),
        Runtime::Podman => podman(place, gpu, &numbers),
        Runtime::Apptainer | Runtime::Singularity => apptainer(place, gpu),
        Runtime::None => Vec::new(),
    };
    // A task in a container that Docker starts is told by a flag instead.
    let exported = matches!(place.runtime, Runtime::Apptainer | Runtime::Singularity | Runtime::None);
    let own = place.config.get("process.containerOptions").filter(|_| place.runtime != Runtime::None);
    let all: Vec<String> = own.map(str::to_owned).into_iter().chain(options).collect();
    // Options that the user chose for this very process are not ours to mend.
    let ours = !all.is_empty() && !place.config.selects(process, "containerOptions");
    Surroundings {
        container_options: ours.then(|| all.join(" ")),
        before_script: (cards != Cards::None && !place.scheduled())
            .then(|| {
                let choice = (cards == Cards::OneEach).then(|| card_choice(place.gpus));
                let exported = exported.then(|| visible_devices(&numbers.join(",")));
                choice.into_iter().chain(exported).collect::<Vec<_>>().join("\n")
            })
            .filter(|script| !script.is_empty()),
    }
}

/// Options of the user's that are code, to which ours cannot be added, as a warning.
pub fn replaced_options(place: &Place<'_>, stages: &[Stage]) -> Option<String> {
    const NAME: &str = "process.containerOptions";
    let is_code = place.config.has(NAME) && place.config.get(NAME).is_none();
    let replaced =
        |stage: &&Stage| stage.container.is_some() && stage.surroundings.container_options.is_some();
    let stage = stages.iter().filter(|_| is_code).find(replaced)?;
    Some(format!(
        "{NAME} is code and not used: write it as plain text, to which the flags of GPUs and mounts are added, or for {} \
         alone (`withName`), which replaces them",
        stage.process
    ))
}

/// Docker and Podman give a container 64 MB of shared memory, too little for data loaders. This is a limit, not a claim.
const SHARED_MEMORY: &str = "--shm-size=16g";

fn docker(place: &Place<'_>, gpu: bool, numbers: &[String]) -> Vec<String> {
    let given = place.config.get("docker.runOptions").unwrap_or_default();
    let words: Vec<&str> = given.split_whitespace().collect();
    let has = |flags: &[&str]| words.iter().any(|word| flags.iter().any(|flag| word.starts_with(flag)));
    let mut options = Vec::new();
    if !has(&["-u", "--user"]) {
        options.push("-u $(id -u):$(id -g)".to_owned());
    }
    // The user above has no home in the image.
    options.extend(
        ["HOME", "MPLCONFIGDIR", "NUMBA_CACHE_DIR"].map(|name| format!("-e {name}=\"$NXF_TASK_WORKDIR\"")),
    );
    if !has(&["--shm-size", "--ipc"]) {
        options.push(SHARED_MEMORY.to_owned());
    }
    options.extend(place.mounts.iter().map(bind));
    if gpu && !has(&["--gpus"]) {
        options.push(match (place.scheduled(), numbers) {
            (true, _) => "--gpus all -e CUDA_VISIBLE_DEVICES".to_owned(),
            (false, [one]) => format!("--gpus device={one}"),
            // Docker reads the commas of an unquoted value as further settings.
            (false, _) => format!("--gpus '\"device={}\"'", numbers.join(",")),
        });
    }
    options
}

fn podman(place: &Place<'_>, gpu: bool, numbers: &[String]) -> Vec<String> {
    let mut options = vec![SHARED_MEMORY.to_owned()];
    options.extend(place.mounts.iter().map(bind));
    if gpu && place.scheduled() {
        options.push("--device nvidia.com/gpu=all -e CUDA_VISIBLE_DEVICES".to_owned());
    } else if gpu {
        // Podman accepts Docker's --gpus and ignores it.
        options.extend(numbers.iter().map(|number| format!("--device nvidia.com/gpu={number}")));
    }
    options
}

/// `--mount`, which unlike `-v` makes no missing directory, owned by root. Its value is a line of CSV.
fn bind(mount: &Mount) -> String {
    let path = mount.path.to_string_lossy();
    let field = |name: &str| match path.contains([',', '"']) {
        true => format!("\"{name}={}\"", path.replace('"', "\"\"")),
        false => format!("{name}={path}"),
    };
    let readonly = if mount.writable { "" } else { ",readonly" };
    format!("--mount {}", shell::text(format!("type=bind,{},{}{readonly}", field("src"), field("dst"))))
}

fn apptainer(place: &Place<'_>, gpu: bool) -> Vec<String> {
    let bind = |mount: &Mount| {
        let path = mount.path.to_string_lossy();
        let mode = if mount.writable { "rw" } else { "ro" };
        format!("-B {}", shell::text(format!("{path}:{path}:{mode}")))
    };
    gpu.then(|| "--nv".to_owned()).into_iter().chain(place.mounts.iter().map(bind)).collect()
}

/// The cards that a task sees, counted as `nvidia-smi` counts; CUDA by itself counts the fastest first.
fn visible_devices(numbers: &str) -> String {
    match numbers {
        "" => "export CUDA_VISIBLE_DEVICES=".to_owned(),
        numbers => format!("export CUDA_VISIBLE_DEVICES={numbers} CUDA_DEVICE_ORDER=PCI_BUS_ID"),
    }
}

/// Bash that takes one of the cards for the task, by a lock which all processes of the task hold until they have ended.
fn card_choice(gpus: &Gpus) -> String {
    let numbers: Vec<String> = gpus.0.iter().map(u32::to_string).collect();
    format!(
        r#"SCFOUNDRY_CARD=
while [ -z "$SCFOUNDRY_CARD" ]; do
    for card in {numbers}; do
        exec {{card_lock}}>>"$NXF_TASK_WORKDIR/../../.card-$card"
        if flock --nonblock "$card_lock"; then SCFOUNDRY_CARD=$card; break; fi
        exec {{card_lock}}>&-
    done
    [ -n "$SCFOUNDRY_CARD" ] || sleep 0.2
done"#,
        numbers = numbers.join(" ")
    )
}

/// A path that an engine's option for mounts would take apart: it has no way to write these characters.
pub fn is_misread(runtime: Runtime, path: &Path) -> bool {
    let path = path.to_string_lossy();
    match runtime {
        Runtime::Docker | Runtime::Podman => path.contains(':'),
        Runtime::Apptainer | Runtime::Singularity => path.contains([':', ',']),
        Runtime::None => false,
    }
}

/// Where Nextflow keeps pulled images of Apptainer and Singularity: where the configuration says, else the environment,
/// else in our cache.
pub fn image_folder(
    runtime: Runtime,
    config: &Config,
    cache: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> PathBuf {
    let configured = config.get(&format!("{}.cacheDir", runtime.name())).map(PathBuf::from);
    let of_environment = || variable(&cache_variable(runtime)).map(PathBuf::from);
    configured.or_else(of_environment).unwrap_or_else(|| cache.join("images"))
}

fn cache_variable(runtime: Runtime) -> String {
    format!("NXF_{}_CACHEDIR", runtime.name().to_uppercase())
}

/// Settings of the engine itself that neither the workspace's configuration nor the environment has made.
///
/// A pull converts a multi-gigabyte image, which takes more than the 20 minutes that Nextflow allows.
pub fn engine_settings(
    place: &Place<'_>,
    cache: &Path,
    has_variable: impl Fn(&str) -> bool,
) -> Vec<(String, Value)> {
    let (Runtime::Apptainer | Runtime::Singularity) = place.runtime else { return Vec::new() };
    let engine = place.runtime.name();
    let images = cache.join("images").to_string_lossy().into_owned();
    let mut settings = vec![("autoMounts", json!(true)), ("pullTimeout", json!("6 h"))];
    if !has_variable(&cache_variable(place.runtime)) {
        settings.push(("cacheDir", json!(images)));
    }
    settings
        .into_iter()
        .map(|(name, value)| (format!("{engine}.{name}"), value))
        .filter(|(name, _)| !place.config.has(name))
        .chain(passed_variables(place, engine))
        .collect()
}

/// Nextflow starts the container with an empty environment, save for the variables listed here.
fn passed_variables(place: &Place<'_>, engine: &str) -> Option<(String, Value)> {
    const CARDS: [&str; 2] = ["CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"];
    let name = format!("{engine}.envWhitelist");
    let own = place.config.get(&name);
    // A list or code of the user's: not ours to replace.
    if own.is_none() && place.config.has(&name) {
        return None;
    }
    let mut all: Vec<&str> = own.into_iter().flat_map(|own| own.split(',')).collect();
    let before = all.len();
    all.extend(
        CARDS.into_iter().filter(|card| !own.unwrap_or_default().split(',').any(|one| one.trim() == *card)),
    );
    (all.len() > before).then(|| (name, json!(all.join(","))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place<'a>(runtime: Runtime, config: &'a Config, gpus: &'a Gpus) -> Place<'a> {
        Place { runtime, config, gpus, executor: "local", mounts: Vec::new() }
    }

    fn options(runtime: Runtime, gpus: &[u32], gpu: bool) -> Surroundings {
        let gpu = if gpu { Cards::All } else { Cards::None };
        surroundings(&place(runtime, &Config::default(), &Gpus(gpus.to_vec())), "EMBED", gpu)
    }

    #[test]
    fn several_cards_keep_their_quotes() {
        let both = options(Runtime::Docker, &[0, 1], true).container_options.unwrap();
        assert!(both.ends_with("--shm-size=16g --gpus '\"device=0,1\"'"), "{both}");
        let one = options(Runtime::Docker, &[0], true).container_options.unwrap();
        assert!(one.starts_with("-u $(id -u):$(id -g) ") && one.ends_with(" --gpus device=0"), "{one}");
    }

    #[test]
    fn cpu_tasks_get_no_gpu_flag() {
        for runtime in
            [Runtime::Docker, Runtime::Podman, Runtime::Apptainer, Runtime::Singularity, Runtime::None]
        {
            let text = format!("{:?}", options(runtime, &[0], false));
            assert!(!text.contains("gpu") && !text.contains("--nv") && !text.contains("CUDA"), "{text}");
        }
    }

    #[test]
    fn no_card_means_no_gpu_flag() {
        for runtime in [Runtime::Docker, Runtime::Podman, Runtime::Apptainer] {
            let task = options(runtime, &[], true);
            let flags = task.container_options.unwrap_or_default();
            assert!(!flags.contains("gpu") && !flags.contains("--nv"), "{flags}");
        }
        // Without a container nothing else hides the cards.
        let script = options(Runtime::None, &[], true).before_script;
        assert_eq!(script.as_deref(), Some("export CUDA_VISIBLE_DEVICES="));
    }

    #[test]
    fn a_task_that_chooses_its_card_sees_only_that() {
        let (config, gpus) = (Config::default(), Gpus(vec![0, 3]));
        for (runtime, expected) in [
            (Runtime::Docker, "--gpus device=$SCFOUNDRY_CARD"),
            (Runtime::Podman, "--device nvidia.com/gpu=$SCFOUNDRY_CARD"),
            (Runtime::Apptainer, "--nv"),
            (Runtime::None, ""),
        ] {
            let task = surroundings(&place(runtime, &config, &gpus), "EMBED", Cards::OneEach);
            assert!(task.container_options.unwrap_or_default().ends_with(expected), "{runtime}");
            let script = task.before_script.unwrap();
            assert!(script.contains("for card in 0 3; do"), "{script}");
            let exported = script
                .ends_with("\nexport CUDA_VISIBLE_DEVICES=$SCFOUNDRY_CARD CUDA_DEVICE_ORDER=PCI_BUS_ID");
            assert_eq!(exported, matches!(runtime, Runtime::Apptainer | Runtime::None), "{script}");
        }
    }

    #[test]
    fn apptainer_sees_only_the_chosen_cards() {
        let task = options(Runtime::Apptainer, &[1], true);
        assert_eq!(task.container_options.as_deref(), Some("--nv"));
        assert_eq!(
            task.before_script.as_deref(),
            Some("export CUDA_VISIBLE_DEVICES=1 CUDA_DEVICE_ORDER=PCI_BUS_ID")
        );
    }

    #[test]
    fn mounts_come_through_shell_and_csv() {
        let (config, gpus) = (Config::default(), Gpus(vec![]));
        let mount = |path: &str, writable| Mount { path: path.into(), writable };
        let mounts = vec![mount("/w/it's, \"a\"", false), mount("/c", true)];
        let words = |runtime| {
            let place = Place { mounts: mounts.clone(), ..place(runtime, &config, &gpus) };
            let options = surroundings(&place, "EMBED", Cards::None).container_options.unwrap();
            let script = format!("printf '%s\\n' {options}");
            let output = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let docker = words(Runtime::Docker);
        let quoted = "type=bind,\"src=/w/it's, \"\"a\"\"\",\"dst=/w/it's, \"\"a\"\"\",readonly\n";
        assert!(
            docker.contains(quoted) && docker.ends_with("--mount\ntype=bind,src=/c,dst=/c\n"),
            "{docker}"
        );
        assert!(words(Runtime::Apptainer).ends_with("-B\n/c:/c:rw\n"));
    }

    #[test]
    fn code_is_replaced_and_said() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let told = |text: &str, runtime| {
            std::fs::write(file.path(), text).unwrap();
            let config = Config::read(file.path(), None).unwrap();
            let gpus = Gpus(vec![0]);
            let place = place(runtime, &config, &gpus);
            let catalogue = crate::method::Catalogue::load(None).unwrap();
            let scgpt = catalogue.get("scgpt").ok();
            let stages =
                super::super::stages::stages(crate::method::Task::Embed, scgpt, &place, &[]).unwrap();
            replaced_options(&place, &stages)
        };
        let code = "process.containerOptions = { task.attempt > 1 ? '--x' : '' }\n";
        assert!(told(code, Runtime::Docker).unwrap().contains("process.containerOptions is code"));
        assert_eq!(told(code, Runtime::None), None);
        assert_eq!(told("process.containerOptions = '--x'\n", Runtime::Docker), None);
        let own = format!("{code}process {{ withName: 'EMBED' {{ containerOptions = '--y' }} }}\n");
        assert_eq!(told(&own, Runtime::Docker), None);
    }

    #[test]
    fn what_the_user_wrote_is_added_to() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "process.containerOptions = '--cap-add X'\napptainer.envWhitelist = 'A,B'\n")
            .unwrap();
        let config = Config::read(file.path(), None).unwrap();
        let gpus = Gpus(vec![0]);
        let place = place(Runtime::Apptainer, &config, &gpus);
        assert_eq!(
            surroundings(&place, "EMBED", Cards::All).container_options.as_deref(),
            Some("--cap-add X --nv")
        );
        let settings = engine_settings(&place, Path::new("/c"), |_| false);
        assert!(settings.contains(&(
            "apptainer.envWhitelist".to_owned(),
            json!("A,B,CUDA_VISIBLE_DEVICES,CUDA_DEVICE_ORDER")
        )));
    }
}
