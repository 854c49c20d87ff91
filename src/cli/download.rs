use super::Global;
use super::surroundings::Surroundings;
use crate::error::{Error, Result};
use crate::method::Model;
use crate::settings::Flags;
use crate::ui::Ui;

/// Download a method's weights
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  scfoundry download --method scgpt --dry-run")]
pub struct Args {
    /// Method whose weights are wanted
    #[arg(short, long, value_name = "NAME")]
    pub method: String,

    /// Variant of its model [default: the profile's first]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,

    /// Directory of model weights [default: <workspace>/data/model_weights] [env: SCFOUNDRY_WEIGHTS_DIR]
    #[arg(long, value_name = "DIR")]
    pub weights_dir: Option<std::path::PathBuf>,

    /// Show the files, their sources and sizes; download nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub fn run(args: Args, global: &Global, ui: &Ui) -> Result<()> {
    let flags = Flags { weights_dir: args.weights_dir, ..Flags::default() };
    let around = Surroundings::find(global, &flags)?;
    let catalogue = around.catalogue()?;
    let profile = catalogue.get(&args.method)?;
    let model = match &args.model {
        None => profile.default_model(),
        Some(_) if profile.models.is_empty() => None,
        Some(name) => Some(profile.known_model(name)?),
    };
    let Some(model) = model else {
        return Err(Error::usage(format_args!("{} has no weights to download", profile.name)));
    };
    if !args.dry_run {
        return Err(Error::environment("this build cannot download weights yet")
            .hint("`--dry-run` shows the files, their sources and sizes"));
    }
    show(model, &around.settings.weights_dir.value, ui)
}

fn show(model: &Model, weights: &std::path::Path, ui: &Ui) -> Result<()> {
    if ui.json {
        return ui.document(&serde_json::json!({ "schema": 1, "weights_dir": weights, "model": model }));
    }
    for file in &model.files {
        let size = file.bytes.map_or("size unknown".to_owned(), crate::trace::units::format_bytes);
        let about = if file.approximate { "about " } else { "" };
        ui.line(format_args!("{}  {about}{size}  from {}", weights.join(&file.path).display(), file.source))?;
    }
    Ok(())
}
