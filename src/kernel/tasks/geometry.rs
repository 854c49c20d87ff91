//! `geometry` probes one embedding against its counts, `tabulate` joins the rows of all.

use std::collections::HashMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::labels::column;
use super::progress::Progress;
use super::{Counts, embedding, measured, open, read_documents, usage, write_json};
use crate::atomic;
use crate::error::{Error, Kind, Result};
use crate::h5ad::{Column, Frame, H5ad, Labels, Slot};
use crate::kernel::geometry::Groups;
use crate::kernel::geometry::preservation::{Preservation, rnx};
use crate::kernel::geometry::row::{Probes, Record, Row, table};
use crate::kernel::geometry::standard::Standard;
use crate::kernel::geometry::{anisotropy, dimension, effects, twonn};
use crate::kernel::measure::Meter;
use crate::kernel::points::Points;
use crate::kernel::sample;
use crate::ui::Ui;

/// What the geometry task is told.
#[derive(Debug, Deserialize)]
pub struct GeometrySpec {
    embedding: PathBuf,
    data: PathBuf,
    /// The embedding as the user named it.
    embedding_file: String,
    dataset: String,
    method: String,
    label_key: String,
    batch_key: String,
    max_cells: usize,
    seed: u64,
    /// Where the row goes, as CSV.
    table: PathBuf,
    /// Where values, reasons and costs go, as JSON.
    record: PathBuf,
}

/// Probes one embedding.
///
/// # Errors
/// Input: the embedding is not finite, a cell's name stands twice, the data lacks a cell of the embedding.
pub fn geometry(spec: &GeometrySpec, ui: &Ui) -> Result<()> {
    let (file, data) = (open(&spec.embedding)?, open(&spec.data)?);
    let progress = Progress::new(ui, format!("{}, {}", spec.method, spec.dataset));
    let mut meter = Meter::new();
    progress.say("read", 0.0);
    let (cells, mut notes) = meter.run("read", || Cells::read(&file, &data, spec))?;
    let standard = Standard::of(&cells.points);
    let mut row = Row {
        dataset_id: spec.dataset.clone(),
        method: spec.method.clone(),
        embedding_file: spec.embedding_file.clone(),
        n_cells_total: data.n_obs(),
        n_cells_used: cells.points.len(),
        embedding_dim: cells.points.dims(),
        zero_var_dims: standard.constant(),
        probe_status: "completed".to_owned(),
        ..Row::default()
    };
    let probes = cells.probe(&data, spec, &standard, &mut meter, &progress)?;
    notes.extend(row.fill(&probes));
    row.notes = notes.iter().map(|note| note.replace(';', ",")).collect::<Vec<String>>().join(";");
    atomic::write(&spec.table, &table(std::slice::from_ref(&row))?)?;
    let mut usage = usage(&data, meter.phases().to_vec(), notes.clone());
    usage.cells = Some(row.n_cells_used as u64);
    let record = Record { schema: 1, row, notes, phases: meter.phases().to_vec() };
    write_json(&spec.record, &record)?;
    usage.write(atomic::folder_of(&spec.table))
}

/// The cells used, sorted by name.
struct Cells {
    points: Points,
    labels: Groups,
    batches: Groups,
    /// The cell that each row of the data is.
    cell_of_row: Vec<Option<u32>>,
    /// Seed of what is drawn: the caller's and the data set's.
    seed: u64,
}

impl Cells {
    /// Pairs the embedding with the data by cell name, and draws.
    fn read(file: &H5ad, data: &H5ad, spec: &GeometrySpec) -> Result<(Cells, Vec<String>)> {
        let seed = seed(spec.seed, &spec.dataset);
        let row_of = rows_by_name(file)?;
        let data_rows = rows_by_name(data)?;
        let strangers: Vec<&str> =
            sorted(row_of.keys().copied().filter(|name| !data_rows.contains_key(name)));
        if let Some(first) = strangers.first() {
            return Err(strange_cells(file, data, strangers.len(), first));
        }
        let mut notes = Vec::new();
        let names = sorted(data_rows.keys().copied());
        let drawn = draw(&names, spec.max_cells, seed);
        if drawn.len() < names.len() {
            notes.push(format!("{} of {} cells drawn, seed {}", drawn.len(), names.len(), spec.seed));
        }
        let (used, absent): (Vec<&str>, Vec<&str>) =
            drawn.into_iter().partition(|name| row_of.contains_key(name));
        if let Some(first) = absent.first() {
            notes.push(format!("{} cells are not in the embedding, first {first}", absent.len()));
        }
        if used.is_empty() {
            return Err(Error::input(format_args!(
                "{} has none of the cells drawn from {}",
                file.path().display(),
                data.path().display()
            ))
            .hint("draw more cells with `--max-cells`"));
        }
        let mut cell_of_row = vec![None; data.n_obs()];
        for (cell, name) in used.iter().enumerate() {
            cell_of_row[data_rows[name]] = Some(cell as u32);
        }
        let rows: Vec<usize> = used.iter().map(|name| row_of[name]).collect();
        let own: Vec<usize> = used.iter().map(|name| data_rows[name]).collect();
        let mut groups = |key: &str, absent: &str, otherwise: Groups| -> Result<Groups> {
            for (frame, rows) in [(data.obs(), &own), (file.obs(), &rows)] {
                if frame.find(key).is_some() {
                    return Ok(select(&column(frame, key)?, rows));
                }
            }
            notes.push(format!("obs has no column {key}: {absent}"));
            Ok(otherwise)
        };
        let none = Groups { names: Vec::new(), codes: vec![None; used.len()] };
        let labels = groups(&spec.label_key, "metrics of cell types are NA", none)?;
        let batches = groups(&spec.batch_key, "all cells are one batch", Groups::single(used.len()))?;
        let points = embedding::rows(file, &rows)?;
        Ok((Cells { points, labels, batches, cell_of_row, seed }, notes))
    }

    fn probe(
        &self,
        data: &H5ad,
        spec: &GeometrySpec,
        standard: &Standard,
        meter: &mut Meter,
        progress: &Progress<'_>,
    ) -> Result<Probes> {
        let points = &self.points;
        let tick = |part: &'static str| move |done: f64| progress.say(part, done);
        let raw = |a: usize, b: usize| -> f64 {
            let pairs = points.row(a).iter().zip(points.row(b));
            pairs.map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum()
        };
        let standardised = |a: usize, b: usize| -> f64 {
            let pairs = points.row(a).iter().zip(points.row(b)).zip(&standard.scale);
            pairs.map(|((a, b), scale)| ((f64::from(*a) - f64::from(*b)) * scale).powi(2)).sum()
        };
        Ok(Probes {
            participation: meter.run("pr", || dimension::participation_ratio(points, standard)),
            spectral: meter.run("aniso_spec", || anisotropy::spectral(points)),
            cosine: meter.run("aniso_cos", || anisotropy::cosine(points, self.seed)),
            within: meter.run("aniso_cos_within_ct", || {
                anisotropy::cosine_within(points, &self.labels, self.seed.wrapping_add(1))
            }),
            between: meter.run("aniso_cos_between_ct", || {
                anisotropy::cosine_between(points, &self.labels, self.seed.wrapping_add(2))
            }),
            raw: meter.run("id_twonn_raw", || twonn::two_nearest(points, &raw, &tick("id_twonn_raw"))),
            standardised: meter.run("id_twonn_z", || {
                twonn::two_nearest(&standard.points(points), &standardised, &tick("id_twonn_z"))
            }),
            effects: meter
                .run("partial_eta2", || effects::partial_eta2(points, standard, &self.labels, &self.batches)),
            preservation: meter.run("rnx", || self.preservation(data, spec, &tick("rnx")))?,
        })
    }

    /// R_NX, which is NA where X holds no raw counts: the other metrics do not need them.
    fn preservation(
        &self,
        data: &H5ad,
        spec: &GeometrySpec,
        tick: &(dyn Fn(f64) + Sync),
    ) -> Result<Preservation> {
        let candidates = candidates(data.var())?;
        let counts = Counts { matrix: data.matrix(&Slot::X)?, data };
        let found = rnx(&self.points, &counts, &self.cell_of_row, &self.batches, &candidates, tick);
        match found {
            Err(error) if error.kind == Kind::Input => {
                let file = data.path().display().to_string();
                let named = error.message.replace(&file, &spec.dataset);
                let causes = error.causes.iter().map(|cause| format!(": {cause}")).collect::<String>();
                Ok(Preservation::missing(&format!("{named}{causes}")))
            }
            other => other,
        }
    }
}

/// Cells by name.
fn rows_by_name(file: &H5ad) -> Result<HashMap<&str, usize>> {
    let mut rows = HashMap::with_capacity(file.n_obs());
    for (row, name) in file.obs().index().iter().enumerate() {
        if rows.insert(name.as_str(), row).is_some() {
            return Err(Error::input(format_args!("cell {name} stands twice in {}", file.path().display()))
                .cause("embedding and data are paired by the names of cells")
                .hint("make the names unique (`adata.obs_names_make_unique()`) and embed the file again"));
        }
    }
    Ok(rows)
}

fn strange_cells(file: &H5ad, data: &H5ad, count: usize, first: &str) -> Error {
    let (embedding, data) = (file.path().display(), data.path().display());
    let message = match count == file.n_obs() {
        true => format!("{embedding} and {data} have no cell in common"),
        false => format!("{count} cells of {embedding} are not in {data}, first {first}"),
    };
    Error::input(message)
        .cause("embedding and data are paired by the names of cells")
        .hint("name the data set that was embedded after `--data`")
}

fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names
}

/// At most `most` names, each as likely, in their order.
fn draw<'a>(names: &[&'a str], most: usize, seed: u64) -> Vec<&'a str> {
    if names.len() <= most {
        return names.to_vec();
    }
    let mut places: Vec<usize> = (0..names.len()).collect();
    sample::keep(&mut places, most, &mut fastrand::Rng::with_seed(seed));
    places.sort_unstable();
    places.into_iter().map(|place| names[place]).collect()
}

/// A seed of its own for each data set (FNV-1a).
fn seed(given: u64, dataset: &str) -> u64 {
    let bytes = given.to_le_bytes().into_iter().chain(dataset.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn select(labels: &Labels, rows: &[usize]) -> Groups {
    let name = |row: &usize| labels.codes[*row].map(|code| labels.classes[code as usize].as_str());
    Groups::of(&rows.iter().map(name).collect::<Vec<Option<&str>>>())
}

/// Genes that may tell cells apart by biology: not of mitochondria, ribosomes or spikes.
fn candidates(var: &Frame) -> Result<Vec<bool>> {
    let mut candidates: Vec<bool> = var
        .index()
        .iter()
        .map(|name| {
            let name = name.to_uppercase();
            !["MT-", "ERCC-", "RPL", "RPS"].iter().any(|prefix| name.starts_with(prefix))
        })
        .collect();
    for key in ["mt", "ercc"] {
        if let Some(Column::Bool(values)) = var.find(key).map(|name| var.column(name)).transpose()? {
            for (candidate, value) in candidates.iter_mut().zip(values) {
                *candidate &= value != Some(true);
            }
        }
    }
    Ok(candidates)
}

/// What the tabulate task is told.
#[derive(Debug, Deserialize)]
pub struct TabulateSpec {
    /// Directory with the record of each embedding.
    records: PathBuf,
    /// Where the table goes.
    table: PathBuf,
}

/// Joins the rows of all embeddings, ordered by method and data set.
pub fn tabulate(spec: &TabulateSpec) -> Result<()> {
    let records: Vec<Record> = read_documents(&spec.records)?;
    let mut rows: Vec<Row> = records.into_iter().map(|record| record.row).collect();
    rows.sort_by(|a, b| {
        let key = |row: &Row| (row.method.clone(), row.dataset_id.clone(), row.embedding_file.clone());
        key(a).cmp(&key(b))
    });
    atomic::write(&spec.table, &table(&rows)?)?;
    measured().write(atomic::folder_of(&spec.table))
}

#[cfg(test)]
#[path = "geometry_tests.rs"]
mod tests;
