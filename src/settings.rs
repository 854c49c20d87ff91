//! Settings and where each comes from: command line, environment, workspace, user, default, in this order.
//!
//! This is the only module that reads environment variables for the program's own behaviour.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cost::Rates;
use crate::error::{Error, Result};
use crate::workspace::Workspace;

/// Where a value was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "from", content = "where")]
pub enum Origin {
    CommandLine,
    Environment(&'static str),
    File(PathBuf),
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::CommandLine => f.write_str("command line"),
            Origin::Environment(name) => write!(f, "${name}"),
            Origin::File(path) => write!(f, "{}", path.display()),
            Origin::Default => f.write_str("default"),
        }
    }
}

/// A value with its origin.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting<T> {
    pub value: T,
    #[serde(flatten)]
    pub origin: Origin,
}

/// One settings file, `scfoundry.toml` of a workspace or of the user. Unknown keys are errors.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    nextflow: Option<PathBuf>,
    java: Option<PathBuf>,
    weights_dir: Option<PathBuf>,
    cache_dir: Option<PathBuf>,
    outdir: Option<PathBuf>,
    profile: Option<String>,
    keep_work: Option<bool>,
    history: Option<PathBuf>,
    rates: Option<Rates>,
}

/// Values given on the command line.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    pub nextflow: Option<PathBuf>,
    pub java: Option<PathBuf>,
    pub weights_dir: Option<PathBuf>,
    pub cache_dir: Option<PathBuf>,
    pub outdir: Option<PathBuf>,
    pub gpu: Option<String>,
    /// Given, or not: the flag cannot say no.
    pub keep_work: bool,
}

/// The settings in force.
#[derive(Debug, Clone, Serialize)]
pub struct Settings {
    pub nextflow: Option<Setting<PathBuf>>,
    pub java: Option<Setting<PathBuf>>,
    pub weights_dir: Setting<PathBuf>,
    pub cache_dir: Setting<PathBuf>,
    pub outdir: Setting<PathBuf>,
    /// As typed; a workspace's own choice is `params.gpu_id` in its `nextflow.config`.
    pub gpu: Option<Setting<String>>,
    /// Profile of `nextflow.config` for runs that name none.
    pub profile: Option<Setting<String>>,
    /// Whether a run that went well keeps its work directory.
    pub keep_work: Setting<bool>,
    /// Directory of what finished runs cost; absent where the user has no home.
    pub history: Option<Setting<PathBuf>>,
    pub rates: Option<Setting<Rates>>,
}

/// The starting text of a workspace's `scfoundry.toml`.
pub const TEMPLATE: &str = "\
# Settings of this workspace; `scfoundry info --effective` shows each value in force and where it comes from.
#
# nextflow = \"/opt/nextflow/nextflow\"     # else $SCFOUNDRY_NEXTFLOW, PATH, or the managed engine
# java = \"/usr/lib/jvm/java-21/bin/java\"  # for the managed engine
# weights_dir = \"/shared/model_weights\"
# outdir = \"/shared/results\"
# profile = \"slurm\"                      # of nextflow.config, for runs without --profile
# keep_work = true                        # work directories stay when a run has gone well
# history = \"/shared/scfoundry-history\"   # what each finished run cost, one small file a run
#
# [rates]                                 # adds money, energy and CO2 to cost tables
# currency = \"EUR\"
# cpu_hour = 0.04
# gpu_hour = 1.20
# cpu_watts = 10                          # of one busy core
# gpu_watts = 300                         # of one card, where its power was not sampled
# co2e_per_kwh = 380                      # grams
";

impl Settings {
    /// Gathers the settings in force for `workspace`.
    pub fn gather(flags: &Flags, workspace: &Workspace) -> Result<Settings> {
        let workspace_path = workspace.settings_file();
        let layers = [File::read(&workspace_path)?.map(|file| (workspace_path, file)), user_file()?];
        let pick = |flag: &Option<PathBuf>, variable: &'static str, field: fn(&File) -> &Option<PathBuf>| {
            let chosen = layered(flag.clone(), variable, &layers, |file| field(file).clone());
            chosen.map(|setting| resolve(setting, variable, workspace))
        };
        let or = |setting: Option<Setting<PathBuf>>, default: PathBuf| {
            setting.unwrap_or(Setting { value: default, origin: Origin::Default })
        };
        Ok(Settings {
            nextflow: pick(&flags.nextflow, "SCFOUNDRY_NEXTFLOW", |file| &file.nextflow),
            java: pick(&flags.java, "SCFOUNDRY_JAVA", |file| &file.java),
            weights_dir: or(
                pick(&flags.weights_dir, "SCFOUNDRY_WEIGHTS_DIR", |file| &file.weights_dir),
                workspace.weights(),
            ),
            cache_dir: or(
                pick(&flags.cache_dir, "SCFOUNDRY_CACHE_DIR", |file| &file.cache_dir),
                workspace.cache(),
            ),
            outdir: or(pick(&flags.outdir, "SCFOUNDRY_OUTDIR", |file| &file.outdir), workspace.results()),
            gpu: layered(flags.gpu.clone(), "SCFOUNDRY_GPU", &layers, |_| None),
            profile: layered(None, "SCFOUNDRY_PROFILE", &layers, |file| file.profile.clone()),
            keep_work: keep_work(flags, &layers)?,
            history: pick(&None, "SCFOUNDRY_HISTORY", |file| &file.history).or_else(own_history),
            rates: layers.iter().flatten().find_map(|(path, file)| {
                Some(Setting { value: file.rates.clone()?, origin: Origin::File(path.clone()) })
            }),
        })
    }
}

/// The user's own directory of what runs cost.
fn own_history() -> Option<Setting<PathBuf>> {
    let folder = base_folder("XDG_DATA_HOME", ".local/share")?;
    Some(Setting { value: folder.join("scfoundry").join("history"), origin: Origin::Default })
}

const KEEP_WORK: &str = "SCFOUNDRY_KEEP_WORK";

/// # Errors
/// Usage: the variable is neither yes nor no.
fn keep_work(flags: &Flags, layers: &[Option<(PathBuf, File)>]) -> Result<Setting<bool>> {
    if flags.keep_work {
        return Ok(Setting { value: true, origin: Origin::CommandLine });
    }
    if let Some(text) = text_variable(KEEP_WORK) {
        let value = match text.to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" => true,
            "0" | "false" | "no" => false,
            _ => {
                return Err(Error::usage(format_args!("${KEEP_WORK} {text:?} is neither true nor false"))
                    .hint("write 1, true or yes; or 0, false or no"));
            }
        };
        return Ok(Setting { value, origin: Origin::Environment(KEEP_WORK) });
    }
    let of_file = |(path, file): &(PathBuf, File)| {
        Some(Setting { value: file.keep_work?, origin: Origin::File(path.clone()) })
    };
    let found = layers.iter().flatten().find_map(of_file);
    Ok(found.unwrap_or(Setting { value: false, origin: Origin::Default }))
}

/// The workspace chosen by the environment.
pub fn workspace_from_environment() -> Option<PathBuf> {
    text_variable("SCFOUNDRY_WORKSPACE").map(PathBuf::from)
}

/// The directory in which GPUs are reserved, where a site has chosen one.
pub fn lease_folder_from_environment() -> Option<PathBuf> {
    text_variable("SCFOUNDRY_LEASE_DIR").map(|path| std::path::absolute(&path).unwrap_or(path.into()))
}

/// A directory of the user's own in which GPUs can be reserved.
pub fn own_lease_folder() -> Option<PathBuf> {
    Some(base_folder("XDG_CACHE_HOME", ".cache")?.join("scfoundry/gpus"))
}

/// The cards that the environment leaves to this process; an empty value leaves none.
pub fn visible_devices() -> Option<String> {
    env::var("CUDA_VISIBLE_DEVICES").ok()
}

impl File {
    fn read(path: &Path) -> Result<Option<File>> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("read", path)(error)),
        };
        toml::from_str(&text)
            .map(Some)
            .map_err(|error| Error::input(format_args!("{} is not valid", path.display())).cause(error))
    }
}

fn user_file() -> Result<Option<(PathBuf, File)>> {
    let Some(folder) = base_folder("XDG_CONFIG_HOME", ".config") else { return Ok(None) };
    let path = folder.join("scfoundry").join("scfoundry.toml");
    Ok(File::read(&path)?.map(|file| (path, file)))
}

fn base_folder(variable: &str, below_home: &str) -> Option<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    env::var_os(variable)
        .map(PathBuf::from)
        .filter(absolute)
        .or_else(|| Some(env::home_dir()?.join(below_home)))
}

/// An environment variable that is set and not empty.
fn text_variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn layered<T: From<String>>(
    flag: Option<T>,
    variable: &'static str,
    layers: &[Option<(PathBuf, File)>],
    field: impl Fn(&File) -> Option<T>,
) -> Option<Setting<T>> {
    if let Some(value) = flag {
        return Some(Setting { value, origin: Origin::CommandLine });
    }
    if let Some(value) = text_variable(variable) {
        return Some(Setting { value: value.into(), origin: Origin::Environment(variable) });
    }
    layers
        .iter()
        .flatten()
        .find_map(|(path, file)| Some(Setting { value: field(file)?, origin: Origin::File(path.clone()) }))
}

/// A relative path counts from the current directory on the command line and in the environment, from the workspace in
/// a file. The bare name of a program (`nextflow`) is left to be found on PATH.
fn resolve(mut setting: Setting<PathBuf>, variable: &str, workspace: &Workspace) -> Setting<PathBuf> {
    let program = ["SCFOUNDRY_NEXTFLOW", "SCFOUNDRY_JAVA"].contains(&variable);
    let bare = program && setting.value.components().count() == 1 && !setting.value.exists();
    setting.value = match setting.origin {
        _ if bare => setting.value,
        Origin::File(_) => workspace.root().join(&setting.value),
        _ => std::path::absolute(&setting.value).unwrap_or(setting.value),
    };
    setting
}
