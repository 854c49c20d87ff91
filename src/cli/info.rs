use serde_json::json;

use super::Global;
use super::surroundings::Surroundings;
use crate::error::Result;
use crate::gpu;
use crate::nextflow;
use crate::plan::Runtime;
use crate::settings::{Flags, Origin, Settings};
use crate::ui::Ui;
use crate::workspace::Config;

/// Show the workspace, the engine and the settings in force
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  scfoundry info
  scfoundry info --effective")]
pub struct Args {
    /// Show where each setting comes from
    #[arg(long)]
    pub effective: bool,
}

pub fn run(args: Args, global: &Global, ui: &Ui) -> Result<()> {
    let around = Surroundings::find(global, &Flags::default())?;
    let settings = &around.settings;
    let config = Config::read(&around.workspace.nextflow_config(), None)?;
    let engine = nextflow::inspect(&nextflow::Request::of(settings));
    let catalogue = around.catalogue()?;
    let executor = config.get("process.executor").unwrap_or("local");
    if ui.json {
        return ui.document(&json!({
            "schema": 1,
            "scfoundry": env!("CARGO_PKG_VERSION"),
            "workspace": around.workspace.root(),
            "exists": around.workspace.exists(),
            "settings": settings,
            "runtime": Runtime::of(&config),
            "executor": executor,
            "nextflow": { "origin": engine.origin, "path": engine.path, "version": engine.version },
            "java": engine.java.as_ref().map(|java| json!({ "path": java.path, "version": java.version })),
            "methods": catalogue.iter().count(),
        }));
    }
    let absent = if around.workspace.exists() { "" } else { " (none yet)" };
    let version =
        |version: &Option<String>| version.clone().unwrap_or_else(|| "version not known".to_owned());
    let place = engine.path.as_ref().map_or(String::new(), |path| format!(", {}", path.display()));
    let mut lines = vec![
        ("scfoundry", env!("CARGO_PKG_VERSION").to_owned()),
        ("workspace", format!("{}{absent}", around.workspace.root().display())),
        ("nextflow", format!("{} ({}){place}", version(&engine.version), engine.origin)),
    ];
    if let Some(java) = &engine.java {
        lines.push(("java", format!("{}, {}", java.version, java.path.display())));
    }
    lines.push(("containers", Runtime::of(&config).to_string()));
    lines.push(("executor", executor.to_owned()));
    lines.push(("methods", catalogue.iter().count().to_string()));
    for (name, value) in lines {
        ui.line(format_args!("{name:<12} {value}"))?;
    }
    match args.effective {
        true => effective(settings, &config, ui),
        false => Ok(()),
    }
}

fn effective(settings: &Settings, config: &Config, ui: &Ui) -> Result<()> {
    let mut rows: Vec<(&str, String, String)> = Vec::new();
    let mut path = |name, value: Option<(&std::path::PathBuf, &Origin)>| {
        if let Some((value, origin)) = value {
            rows.push((name, value.display().to_string(), origin.to_string()));
        }
    };
    path("nextflow", settings.nextflow.as_ref().map(|setting| (&setting.value, &setting.origin)));
    path("java", settings.java.as_ref().map(|setting| (&setting.value, &setting.origin)));
    path("outdir", Some((&settings.outdir.value, &settings.outdir.origin)));
    path("weights_dir", Some((&settings.weights_dir.value, &settings.weights_dir.origin)));
    path("cache_dir", Some((&settings.cache_dir.value, &settings.cache_dir.origin)));
    path("history", settings.history.as_ref().map(|setting| (&setting.value, &setting.origin)));
    let gpu = match (&settings.gpu, config.get("params.gpu_id")) {
        (Some(gpu), _) => (gpu.value.clone(), gpu.origin.to_string()),
        (None, Some(id)) => (id.to_owned(), "nextflow.config".to_owned()),
        (None, None) => (gpu::usual_choice().to_string(), Origin::Default.to_string()),
    };
    rows.push(("gpu", gpu.0, gpu.1));
    if let Some(profile) = &settings.profile {
        rows.push(("profile", profile.value.clone(), profile.origin.to_string()));
    }
    let keep_work = &settings.keep_work;
    rows.push(("keep_work", keep_work.value.to_string(), keep_work.origin.to_string()));
    if let Some(rates) = &settings.rates {
        rows.push(("rates", serde_json::json!(rates.value).to_string(), rates.origin.to_string()));
    }
    ui.line("")?;
    for (name, value, origin) in rows {
        ui.line(format_args!("{name:<12} {value}  ({origin})"))?;
    }
    Ok(())
}
