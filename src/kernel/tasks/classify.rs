//! `classify`: fits a classifier to a reference's embedding, or takes a fitted one, and labels a query.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use super::fitted::{self, Meta, SEED};
use super::labels::{classes, column};
use super::{embedding, open, usage, write_json};
use crate::atomic;
use crate::error::{Error, Result};
use crate::h5ad::{H5ad, Labels};
use crate::kernel::classify::report::{Report, report, without_labels};
use crate::kernel::classify::{Kind, Model, Prediction, Settings};
use crate::kernel::measure::Meter;
use crate::kernel::points::{Classes, Points};
use crate::ui::Ui;

/// Part of a fit, in percent, after which progress is said again.
const STEP: u32 = 25;

/// What the classify task is told.
#[derive(Debug, Deserialize)]
pub struct ClassifySpec {
    /// The reference's embedding; absent with a fitted model.
    reference: Option<PathBuf>,
    /// The query's embedding.
    query: PathBuf,
    /// A fitted classifier to use in place of a reference.
    fitted: Option<PathBuf>,
    /// What the method fitted to the reference, to be kept with the classifier.
    projection: Option<PathBuf>,
    /// The directory that the fitted classifier goes into.
    output: PathBuf,
    labels: PathBuf,
    probabilities: PathBuf,
    report: PathBuf,
    method: String,
    model: Option<String>,
    label_key: String,
    classifier: Kind,
    knn_k: usize,
}

/// The report of a transfer, as JSON; that of a prediction by a trained model has no classifier.
#[derive(Debug, Serialize, Deserialize)]
pub struct ReportDocument {
    pub schema: u32,
    pub method: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classifier: Option<Kind>,
    pub label_key: String,
    pub classes: Vec<String>,
    /// What there is to say about fit and prediction.
    pub notes: Vec<String>,
    pub scores: Report,
}

/// Fits or loads, predicts, and writes labels, probabilities, the report and the fitted model.
///
/// # Errors
/// Input: no label column or labelled cell in the reference, an embedding that is not finite or has other dimensions than
/// the reference's, labels that the classifier cannot be fitted to, a fitted model that is damaged.
pub fn classify(spec: &ClassifySpec, ui: &Ui) -> Result<()> {
    let mut meter = Meter::new();
    let mut notes = Vec::new();
    let (meta, model) = match &spec.fitted {
        Some(folder) => meter.run("read", || fitted::load(folder))?,
        None => fit(spec, &mut meter, &mut notes, ui)?,
    };
    let query = open(&spec.query)?;
    let points = meter.run("read query", || embedding::points(&query))?;
    if points.dims() != meta.dim {
        return Err(another_size(spec, &meta, &query, points.dims()));
    }
    let (prediction, note) = meter.run("predict", || model.predict(&points, &|_| ()));
    notes.extend(note);
    let document = meter.run("write", || write(spec, &meta, &query, &prediction, notes))?;
    let mut usage = usage(&query, meter.phases().to_vec(), document.notes.clone());
    // The columns of an embedding are no genes.
    usage.genes = None;
    usage.write(atomic::folder_of(&spec.report))
}

/// Fits to the labelled cells of the reference and keeps the model.
fn fit(spec: &ClassifySpec, meter: &mut Meter, notes: &mut Vec<String>, ui: &Ui) -> Result<(Meta, Model)> {
    let path = spec.reference.as_deref();
    let path = path.ok_or_else(|| Error::usage("classify needs a reference or a fitted classifier"))?;
    let file = open(path)?;
    let reference = meter.run("read", || Reference::read(&file, &spec.label_key))?;
    if reference.unlabelled > 0 {
        notes.push(format!(
            "{} of {} reference cells have no {} and are left out",
            reference.unlabelled,
            file.n_obs(),
            spec.label_key
        ));
    }
    let settings = Settings { classifier: spec.classifier, knn_k: spec.knn_k, seed: SEED };
    let said = AtomicU32::new(0);
    let tick = |done: f64| {
        let step = (done * 100.0) as u32 / STEP;
        if said.fetch_max(step, Ordering::Relaxed) < step {
            ui.note(format_args!("{}: fit {} %", spec.classifier, step * STEP));
        }
    };
    let fit = meter.run("fit", || Model::fit(&reference.points, &reference.classes, settings, &tick))?;
    notes.extend(fit.notes);
    let meta = Meta {
        method: spec.method.clone(),
        model: spec.model.clone(),
        label_key: spec.label_key.clone(),
        n_unlabelled: reference.unlabelled,
        projected: spec.projection.is_some(),
        ..Meta::new(&fit.model, settings, &reference.classes, reference.points.dims())
    };
    meter.run("save", || fitted::save(&spec.output, &meta, &fit.model, spec.projection.as_deref()))?;
    Ok((meta, fit.model))
}

/// The labelled cells of a reference, sorted by name so that their order in the file is no matter.
struct Reference {
    points: Points,
    classes: Classes,
    unlabelled: usize,
}

impl Reference {
    fn read(file: &H5ad, label_key: &str) -> Result<Reference> {
        let labels = column(file.obs(), label_key)?;
        let names = file.obs().index();
        let mut cells: Vec<usize> = (0..names.len()).filter(|&cell| labels.codes[cell].is_some()).collect();
        if cells.is_empty() {
            return Err(Error::input(format_args!("no cell of {} has a {label_key}", file.path().display()))
                .hint("name another column with `--label-key`"));
        }
        cells.sort_by(|&a, &b| names[a].cmp(&names[b]));
        Ok(Reference {
            points: embedding::rows(file, &cells)?,
            classes: classes(&labels, &cells),
            unlabelled: names.len() - cells.len(),
        })
    }
}

fn another_size(spec: &ClassifySpec, meta: &Meta, query: &H5ad, dims: usize) -> Error {
    let source = match (&spec.fitted, &spec.reference) {
        (Some(folder), _) => format!("the classifier in {}", folder.display()),
        (None, Some(reference)) => format!("the reference's embedding {}", reference.display()),
        (None, None) => "the classifier".to_owned(),
    };
    Error::input(format_args!(
        "the query's embedding has {dims} dimensions, the reference's had {}",
        meta.dim
    ))
    .cause(format_args!("{} does not fit {source}", query.path().display()))
    .hint("embed both with the same method, model and parameters")
}

/// Writes labels, probabilities and the report.
fn write(
    spec: &ClassifySpec,
    meta: &Meta,
    query: &H5ad,
    prediction: &Prediction,
    notes: Vec<String>,
) -> Result<ReportDocument> {
    let cells = query.obs().index();
    let labels: Vec<&str> =
        prediction.labels().iter().map(|&code| meta.classes[code as usize].as_str()).collect();
    let header = ["", "predicted_label"].map(str::to_owned).to_vec();
    let rows = cells.iter().zip(&labels).map(|(cell, label)| vec![cell.clone(), (*label).to_owned()]);
    atomic::write(&spec.labels, &table(header, rows)?)?;
    let header = std::iter::once(String::new()).chain(meta.classes.iter().cloned()).collect();
    let rows = cells.iter().enumerate().map(|(row, cell)| {
        let values = prediction.row(row).iter().map(|value| format!("{value:?}"));
        std::iter::once(cell.clone()).chain(values).collect()
    });
    atomic::write(&spec.probabilities, &table(header, rows)?)?;
    let document = ReportDocument {
        schema: 1,
        method: meta.method.clone(),
        classifier: Some(meta.classifier),
        label_key: spec.label_key.clone(),
        classes: meta.classes.clone(),
        notes,
        scores: scores(query, &spec.label_key, &labels, &meta.classes)?,
    };
    write_json(&spec.report, &document)?;
    Ok(document)
}

/// Tab separated values with quotes where they are needed, as pandas writes them.
fn table(header: Vec<String>, rows: impl Iterator<Item = Vec<String>>) -> Result<Vec<u8>> {
    let mut writer = csv::WriterBuilder::new().delimiter(b'\t').from_writer(Vec::new());
    for row in std::iter::once(header).chain(rows) {
        writer.write_record(&row).map_err(|error| Error::failed("cannot write a table").cause(error))?;
    }
    writer.into_inner().map_err(|error| Error::failed("cannot write a table").cause(error))
}

/// How well the query's own labels were met, where it has some.
fn scores(query: &H5ad, label_key: &str, predicted: &[&str], known: &[String]) -> Result<Report> {
    if query.obs().find(label_key).is_none() {
        return Ok(without_labels(predicted.len(), &format!("the query has no obs column {label_key:?}")));
    }
    let Labels { classes, codes } = column(query.obs(), label_key)?;
    let truth: Vec<Option<&str>> =
        codes.iter().map(|code| code.map(|code| classes[code as usize].as_str())).collect();
    Ok(report(&truth, predicted, known))
}
