//! `harmony`: principal components of raw counts, corrected for batches.

use std::path::PathBuf;

use serde::Deserialize;

use super::labels::column;
use super::progress::Progress;
use super::{components, names_of, notes_of, open, phases_of, usage};
use crate::atomic;
use crate::error::{Error, Result};
use crate::h5ad::{EmbeddingRef, H5ad, UnsValue, write_embedding};
use crate::kernel::harmony::{Harmonised, Params, harmonise};
use crate::kernel::measure::Meter;
use crate::kernel::pca;
use crate::kernel::points::{Classes, Points};
use crate::ui::Ui;

/// What the harmony task is told.
#[derive(Debug, Deserialize)]
pub struct HarmonySpec {
    data: PathBuf,
    output: PathBuf,
    batch_key: String,
    seurat_n_hvg: usize,
    seurat_n_pcs: usize,
}

/// Embeds the cells of a file of raw counts by principal components in which its batches mix.
///
/// One batch alone leaves the components as they are, with a warning.
///
/// # Errors
/// Input: as the pca task; the batch column is missing, has cells without a value, or as many values as cells.
pub fn harmony(spec: &HarmonySpec, ui: &Ui) -> Result<()> {
    let data = open(&spec.data)?;
    let batches = batches(&data, &spec.batch_key)?;
    let params =
        pca::Params { n_top_genes: spec.seurat_n_hvg, n_comps: spec.seurat_n_pcs, ..pca::Params::default() };
    let (fit, scores) = components(&data, &params, "harmony", ui)?;
    let (mut notes, mut phases) = (notes_of(&fit), phases_of(&fit));
    let mut uns = vec![
        ("scfoundry/method", UnsValue::Text("harmony".to_owned())),
        ("scfoundry/version", UnsValue::Text(env!("CARGO_PKG_VERSION").to_owned())),
        ("pca/variance", UnsValue::Floats(fit.model.eigenvalues.clone())),
        ("pca/variance_ratio", UnsValue::Floats(fit.model.variance_ratio.clone())),
        ("pca/genes", UnsValue::Texts(names_of(&data, &fit.model))),
        ("harmony/batch_key", UnsValue::Text(spec.batch_key.clone())),
        ("harmony/batches", UnsValue::Integer(batches.len() as i64)),
    ];
    let mut say = |note: String| {
        ui.warn(&note);
        notes.push(note);
    };
    let values = match batches.len() {
        1 => {
            say(format!(
                "{} has one batch only, {:?}: the principal components are not corrected",
                spec.batch_key, batches.names[0]
            ));
            scores
        }
        _ => {
            let points = Points::new(scores, fit.model.n_comps());
            let mut meter = Meter::new();
            let progress = Progress::new(ui, "harmony".to_owned());
            let progress = |part: &str, done: f64| progress.say(part, done);
            let harmonised =
                meter.run("correction", || harmonise(&points, &batches, &Params::default(), &progress));
            phases.extend_from_slice(meter.phases());
            if !harmonised.converged {
                say(format!("harmony had not settled after {} corrections", harmonised.rounds.len()));
            }
            uns.extend(course(&harmonised));
            harmonised.values
        }
    };
    let embedding = EmbeddingRef { values: &values, dims: fit.model.n_comps(), uns: &uns };
    write_embedding(&spec.output, embedding, &data)?;
    usage(&data, phases, notes).write(atomic::folder_of(&spec.output))
}

/// How the correction came about, for `uns`.
fn course(harmonised: &Harmonised) -> [(&'static str, UnsValue); 3] {
    [
        ("harmony/clusters", UnsValue::Integer(harmonised.clusters as i64)),
        ("harmony/corrections", UnsValue::Integer(harmonised.rounds.len() as i64)),
        ("harmony/objective", UnsValue::Floats(harmonised.objective.clone())),
    ]
}

/// The batch of each cell.
fn batches(data: &H5ad, key: &str) -> Result<Classes> {
    let file = data.path().display();
    let labels = column(data.obs(), key).map_err(|error| {
        error.within(format_args!("harmony needs to know the batch of each cell of {file}"))
    })?;
    let names: Vec<&str> =
        labels.codes.iter().flatten().map(|&code| labels.classes[code as usize].as_str()).collect();
    let (cells, known) = (data.n_obs(), names.len());
    if known < cells {
        let without = labels.codes.iter().position(Option::is_none).unwrap_or_default();
        return Err(Error::input(format_args!(
            "{} of {cells} cells have no value in obs {key:?}",
            cells - known
        ))
        .cause(format_args!("{} of {file} is the first", data.obs().index()[without]))
        .hint("give each cell its batch, or leave those cells out"));
    }
    let batches = Classes::of(&names);
    if cells > 1 && batches.len() == cells {
        return Err(Error::input(format_args!(
            "obs {key:?} of {file} has {cells} values for {cells} cells: each cell would be a batch of its own"
        ))
        .hint("name a column with few values, such as the donor or the library, with `--batch-key`"));
    }
    Ok(batches)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kernel::cases::path as case;
    use crate::kernel::tasks::embedding;
    use crate::usage::Usage;

    fn embedded(name: &str, key: &str) -> Result<(Points, Vec<String>)> {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("embedding.h5ad");
        let spec = json!({
            "data": case(name), "output": output, "batch_key": key, "seurat_n_hvg": 0, "seurat_n_pcs": 5,
        });
        harmony(&serde_json::from_value(spec).unwrap(), &Ui { quiet: true, ..Ui::default() })?;
        let usage: Usage =
            serde_json::from_slice(&std::fs::read(folder.path().join("usage.json")).unwrap()).unwrap();
        assert!(usage.phases.iter().any(|phase| phase.name == "project"));
        Ok((embedding::points(&H5ad::open(&output).unwrap()).unwrap(), usage.warnings))
    }

    fn refused(key: &str) -> Error {
        embedded("a05_nullable_bool_int.h5ad", key).unwrap_err()
    }

    #[test]
    fn batches_without_sense_are_refused_in_one_sentence() {
        let error = refused("is_doublet");
        assert_eq!(error.message, "10 of 30 cells have no value in obs \"is_doublet\"");
        let error = refused("barcode");
        assert!(error.message.contains("has 30 values for 30 cells"), "{error}");
        assert!(error.hints[0].contains("--batch-key"), "{error}");
        let error = refused("donor");
        assert!(error.message.starts_with("harmony needs to know the batch of each cell"), "{error}");
        assert!(error.causes.iter().any(|cause| cause.contains("donor")), "{:?}", error.causes);
    }

    #[test]
    fn one_batch_leaves_the_components_as_they_are() {
        let (plain, warnings) = embedded("b12_data.h5ad", "batch_id").unwrap();
        assert!(warnings.iter().any(|warning| warning.contains("one batch only")), "{warnings:?}");
        let (corrected, warnings) = embedded("b12_data.h5ad", "cell_type").unwrap();
        assert!(!warnings.iter().any(|warning| warning.contains("one batch only")), "{warnings:?}");
        assert_eq!((plain.len(), plain.dims()), (corrected.len(), corrected.dims()));
        assert!(plain != corrected);
    }
}
