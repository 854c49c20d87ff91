//! `benchmark` scores one embedding, `rank` makes the tables of all.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use serde::Deserialize;

use super::labels::{classes, column};
use super::progress::Progress;
use super::{embedding, measured, open, read_documents, usage, write_json};
use crate::atomic;
use crate::error::{Error, Result};
use crate::h5ad::H5ad;
use crate::kernel::benchmark::metrics::Group;
use crate::kernel::benchmark::score::{Params, Scores, score};
use crate::kernel::benchmark::{Clustering, Metrics, Sample, plot, tables, totals};
use crate::kernel::measure::Meter;
use crate::kernel::points::{Classes, Points};
use crate::ui::Ui;

/// What the benchmark task is told.
#[derive(Debug, Deserialize)]
pub struct BenchmarkSpec {
    embedding: PathBuf,
    sample: String,
    method: String,
    label_key: String,
    batch_key: Option<String>,
    metrics: Metrics,
    clustering: Clustering,
    batch_max_cells: usize,
    /// Where the scores go, as JSON.
    scores: PathBuf,
    /// Where the clusters go, as TSV.
    labels: PathBuf,
}

/// Scores one embedding.
///
/// # Errors
/// Input: a column is missing or has no value at all, the embedding is not finite. Usage: batch metrics without a batch key.
pub fn benchmark(spec: &BenchmarkSpec, ui: &Ui) -> Result<()> {
    let data = open(&spec.embedding)?;
    let mut meter = Meter::new();
    let cells = meter.run("read", || Cells::read(&data, spec))?;
    let params =
        Params { metrics: spec.metrics, clustering: spec.clustering, batch_max_cells: spec.batch_max_cells };
    let progress = Progress::new(ui, format!("{}, {}", spec.method, spec.sample));
    let say = |part: &str, done: f64| progress.say(part, done);
    let Scores { scores, clusters } =
        score(&cells.points, &cells.labels, cells.batches.as_ref(), params, &mut meter, &say);
    if let Some(clusters) = clusters {
        atomic::write(&spec.labels, cells.cluster_table(&data, spec, &clusters).as_bytes())?;
    }
    let sample = Sample {
        schema: 1,
        sample_id: spec.sample.clone(),
        method: spec.method.clone(),
        clustering: spec.clustering,
        n_dims: cells.points.dims(),
        notes: cells.notes,
        scores,
        phases: meter.phases().to_vec(),
    };
    write_json(&spec.scores, &sample)?;
    let warnings = sample.scores.iter().filter(|score| score.value.is_none()).map(|score| {
        format!("{} is NA: {}", score.metric, score.notes.first().map_or("no reason given", String::as_str))
    });
    let mut usage =
        usage(&data, meter.phases().to_vec(), sample.notes.iter().cloned().chain(warnings).collect());
    // The columns of an embedding are no genes.
    usage.genes = None;
    usage.write(atomic::folder_of(&spec.scores))
}

/// The cells that have a label, and a batch where batches are scored; sorted by name.
struct Cells {
    /// Row of the file.
    rows: Vec<usize>,
    points: Points,
    labels: Classes,
    batches: Option<Classes>,
    notes: Vec<String>,
}

impl Cells {
    fn read(data: &H5ad, spec: &BenchmarkSpec) -> Result<Cells> {
        let batch_key = match (&spec.batch_key, spec.metrics.include(Group::BatchMixing)) {
            (Some(key), true) => Some(key),
            (None, true) => {
                return Err(Error::usage("batch metrics need to know the batches")
                    .hint("name the obs column with `--batch-key`"));
            }
            (_, false) => None,
        };
        let labels = column(data.obs(), &spec.label_key)?;
        let batches = batch_key.map(|key| column(data.obs(), key)).transpose()?;
        let mut notes = Vec::new();
        let mut rows: Vec<usize> = (0..data.n_obs()).collect();
        for (key, column) in [(Some(&spec.label_key), Some(&labels)), (batch_key, batches.as_ref())] {
            let (Some(key), Some(column)) = (key, column) else { continue };
            let before = rows.len();
            rows.retain(|&row| column.codes[row].is_some());
            if rows.is_empty() {
                return Err(Error::input(format_args!(
                    "no cell of {} has a value in {key}",
                    data.path().display()
                )));
            }
            if rows.len() < before {
                notes.push(format!(
                    "{} of {} cells without {key} left out",
                    before - rows.len(),
                    data.n_obs()
                ));
            }
        }
        let names = data.obs().index();
        rows.sort_by(|&a, &b| names[a].cmp(&names[b]).then(a.cmp(&b)));
        Ok(Cells {
            points: embedding::rows(data, &rows)?,
            labels: classes(&labels, &rows),
            batches: batches.map(|batches| classes(&batches, &rows)),
            rows,
            notes,
        })
    }

    /// `sample_id, method, barcode, true_label, <clustering>_label`, in the order of the file.
    fn cluster_table(&self, data: &H5ad, spec: &BenchmarkSpec, clusters: &[u32]) -> String {
        let mut places: Vec<usize> = (0..self.rows.len()).collect();
        places.sort_by_key(|&place| self.rows[place]);
        let name = spec.clustering.name();
        let mut table = format!("sample_id\tmethod\tbarcode\ttrue_label\t{name}_label\n");
        for place in places {
            let label = &self.labels.names[self.labels.codes[place] as usize];
            let cells = [&spec.sample, &spec.method, &data.obs().index()[self.rows[place]], label];
            let cells = cells.map(|cell| cell.replace(['\t', '\n', '\r'], " "));
            // Writing to a string cannot fail.
            let _ = writeln!(table, "{}\t{}", cells.join("\t"), clusters[place]);
        }
        table
    }
}

/// What the rank task is told.
#[derive(Debug, Deserialize)]
pub struct RankSpec {
    /// Directory with the scores of each embedding.
    scores: PathBuf,
    /// Stem of the joint files.
    label: String,
    clustering: Clustering,
    metrics: Metrics,
    #[serde(default)]
    plot: bool,
    /// Directory for the tables.
    output: PathBuf,
}

/// Writes the tables of all samples: long and wide per method and group, per sample, the ranking, the document, the picture.
pub fn rank(spec: &RankSpec) -> Result<()> {
    let mut samples: Vec<Sample> = read_documents(&spec.scores)?;
    samples.sort_by(|a, b| (&a.method, &a.sample_id).cmp(&(&b.method, &b.sample_id)));
    let totals = totals::rank(&samples);
    let clustering = spec.clustering;
    let mut by_method: BTreeMap<&str, Vec<&Sample>> = BTreeMap::new();
    for sample in &samples {
        by_method.entry(&sample.method).or_default().push(sample);
    }
    let name = clustering.name();
    for group in Group::ALL.into_iter().filter(|group| spec.metrics.include(*group)) {
        let kind = format!("{}_{name}_metrics", group.name());
        for (method, samples) in &by_method {
            spec.write(&format!("{method}_{kind}_long.csv"), &tables::long(samples, group)?)?;
            spec.write(&format!("{method}_{kind}_wide.csv"), &tables::wide(samples, group)?)?;
            for sample in samples {
                let table = tables::long(&[sample], group)?;
                spec.write(&format!("{kind}/{method}/{}.csv", sample.sample_id), &table)?;
            }
        }
    }
    let stem = format!("{}_{name}", spec.label);
    spec.write(&format!("{stem}_ranking.csv"), &tables::ranking(&totals)?)?;
    write_json(
        &spec.output.join(format!("{stem}_scores.json")),
        &tables::document(clustering, &totals, &samples),
    )?;
    if spec.plot {
        let mut ids: Vec<&str> = samples.iter().map(|sample| sample.sample_id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        spec.write(&format!("{stem}_scores.svg"), &plot::svg(&totals, clustering, ids.len()))?;
    }
    measured().write(atomic::folder_of(&spec.output))
}

impl RankSpec {
    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.output.join(name);
        let folder = atomic::folder_of(&path);
        std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        atomic::write(&path, text.as_bytes())
    }
}
