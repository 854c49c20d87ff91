//! `geometry` probes one embedding, `tabulate` joins the records of all.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::labels::{classes, column};
use super::progress::Progress;
use super::{Counts, embedding, open, usage, write_json};
use crate::atomic;
use crate::error::{Error, Result};
use crate::h5ad::{Column, H5ad, Labels, Slot};
use crate::kernel::geometry::{Cells, Expression, Record, probe};
use crate::kernel::measure::Meter;
use crate::kernel::points::Classes;
use crate::ui::Ui;
use crate::usage::{Phase, Usage};

/// The columns of the table, in order; those between `n_cells_total` and `probe_status` are fields of [`Record`].
const COLUMNS: [&str; 35] = [
    "dataset_id",
    "method",
    "embedding_file",
    "n_cells_total",
    "n_cells_used",
    "embedding_dim",
    "zero_var_dims",
    "pr",
    "npr",
    "aniso_spec",
    "aniso_cos",
    "aniso_cos_within_ct",
    "aniso_cos_between_ct",
    "aniso_cos_ct_gap",
    "aniso_pair_n",
    "aniso_pair_n_within_ct",
    "aniso_pair_n_between_ct",
    "rnx_k15",
    "rnx_k30",
    "rnx_k50",
    "rnx_mean",
    "rnx_eligible_cells",
    "rnx_eligible_cell_fraction",
    "rnx_n_batches",
    "id_twonn_raw",
    "id_twonn_raw_n_cells",
    "id_twonn_z",
    "id_twonn_z_n_cells",
    "partial_eta2_celltype",
    "partial_eta2_batch",
    "partial_eta2_n_dims",
    "partial_eta2_status",
    "probe_status",
    "failure_reason",
    "notes",
];

/// What the geometry task is told.
#[derive(Debug, Deserialize)]
pub struct GeometrySpec {
    embedding: PathBuf,
    data: PathBuf,
    sample: String,
    method: String,
    label_key: String,
    batch_key: String,
    max_cells: usize,
    seed: u64,
    /// Where the record goes, as JSON.
    record: PathBuf,
}

/// One embedding, probed.
#[derive(Debug, Serialize, Deserialize)]
struct Document {
    schema: u32,
    dataset_id: String,
    method: String,
    embedding_file: String,
    n_cells_total: usize,
    #[serde(flatten)]
    record: Record,
    phases: Vec<Phase>,
}

/// Probes one embedding against the counts it was made from; cells are paired by name.
///
/// # Errors
/// Input: names that occur twice, cells of the embedding that the data lack, no cell in common, an embedding that is not finite.
pub fn geometry(spec: &GeometrySpec, ui: &Ui) -> Result<()> {
    let (data, embedding) = (open(&spec.data)?, open(&spec.embedding)?);
    let mut meter = Meter::new();
    let (used, points) = meter.run("read", || -> Result<_> {
        let used = Pairing::of(&data, &embedding, spec)?;
        let points = embedding::points(&embedding)?.select(&used.embedding_rows);
        Ok((used, points))
    })?;
    let labels = used.labels(&data, &embedding, &spec.label_key)?;
    let batches = used.labels(&data, &embedding, &spec.batch_key)?;
    let (batches, unbatched) = with_unknown(batches);
    let technical = technical(&data);
    let counts = data.matrix(&Slot::X).map(|matrix| Counts { matrix, data: &data });
    let cell_of_row = used.cell_of_row(data.n_obs());
    let progress = Progress::new(ui, &spec.method, &spec.sample);
    let cells = Cells {
        points: &points,
        labels: labels.as_ref(),
        batches: batches.as_ref(),
        expression: match &counts {
            Ok(counts) => Ok(Expression {
                counts,
                cell_of_row: &cell_of_row,
                genes: data.var().index(),
                technical: &technical,
            }),
            Err(error) => Err(error.message.clone()),
        },
        seed: spec.seed,
    };
    let mut record = probe(&cells, &mut meter, &|part, done| progress.say(part, done));
    record.notes.splice(0..0, used.notes.into_iter().chain(unbatched));
    let usage_notes = record.reasons.iter().map(|(column, reason)| format!("{column} is NA: {reason}"));
    let warnings = record.notes.iter().cloned().chain(usage_notes).collect();
    let document = Document {
        schema: 1,
        dataset_id: spec.sample.clone(),
        method: spec.method.clone(),
        embedding_file: embedding.path().file_name().unwrap_or_default().to_string_lossy().into_owned(),
        n_cells_total: data.n_obs(),
        record,
        phases: meter.phases().to_vec(),
    };
    write_json(&spec.record, &document)?;
    usage(&data, meter.phases().to_vec(), warnings).write(atomic::folder_of(&spec.record))
}

/// Which cells are used, and where they are in both files. Sorted by name.
struct Pairing {
    data_rows: Vec<usize>,
    embedding_rows: Vec<usize>,
    notes: Vec<String>,
}

impl Pairing {
    fn of(data: &H5ad, embedding: &H5ad, spec: &GeometrySpec) -> Result<Pairing> {
        let in_embedding = by_name(embedding)?;
        let in_data = by_name(data)?;
        let strangers: Vec<&String> =
            embedding.obs().index().iter().filter(|name| !in_data.contains_key(name.as_str())).collect();
        if let Some(first) = strangers.first() {
            return Err(Error::input(format_args!(
                "{} of {} cells of {} are not in {}, first {first}",
                strangers.len(),
                embedding.n_obs(),
                embedding.path().display(),
                data.path().display()
            ))
            .hint("name the file that was embedded with `--data`"));
        }
        let mut rows = drawn(data, spec.max_cells, spec.seed);
        let names = data.obs().index();
        let mut notes = Vec::new();
        if rows.len() < data.n_obs() {
            notes.push(format!("{} of {} cells drawn", rows.len(), data.n_obs()));
        }
        let missing: Vec<usize> =
            rows.iter().copied().filter(|&row| !in_embedding.contains_key(names[row].as_str())).collect();
        if let Some(&first) = missing.first() {
            let (count, name) = (missing.len(), &names[first]);
            notes.push(format!("{count} of {} cells are not in the embedding, first {name}", rows.len()));
            rows.retain(|&row| in_embedding.contains_key(names[row].as_str()));
        }
        if rows.is_empty() {
            return Err(Error::input(format_args!(
                "{} and {} have no cell in common",
                embedding.path().display(),
                data.path().display()
            )));
        }
        let embedding_rows = rows.iter().map(|&row| in_embedding[names[row].as_str()]).collect();
        Ok(Pairing { data_rows: rows, embedding_rows, notes })
    }

    /// The column of the data, else of the embedding, for the used cells.
    fn labels(&self, data: &H5ad, embedding: &H5ad, key: &str) -> Result<Option<Labels>> {
        let has = |file: &H5ad| {
            file.obs().column_names().iter().any(|name| name == key || *name == key.replace('/', "_"))
        };
        let (file, rows) = match (has(data), has(embedding)) {
            (true, _) => (data, &self.data_rows),
            (false, true) => (embedding, &self.embedding_rows),
            (false, false) => return Ok(None),
        };
        let labels = column(file, key)?;
        Ok(Some(Labels {
            codes: rows.iter().map(|&row| labels.codes[row]).collect(),
            classes: labels.classes,
        }))
    }

    fn cell_of_row(&self, rows: usize) -> Vec<Option<u32>> {
        let mut cells = vec![None; rows];
        for (cell, &row) in self.data_rows.iter().enumerate() {
            cells[row] = u32::try_from(cell).ok();
        }
        cells
    }
}

/// The row of each cell. Error: a name that occurs twice pairs nothing.
fn by_name(file: &H5ad) -> Result<HashMap<&str, usize>> {
    let mut rows = HashMap::with_capacity(file.n_obs());
    for (row, name) in file.obs().index().iter().enumerate() {
        if rows.insert(name.as_str(), row).is_some() {
            return Err(Error::input(format_args!(
                "the cell name {name} occurs twice in {}",
                file.path().display()
            ))
            .hint("make the names unique (anndata: obs_names_make_unique) in the data, then embed again"));
        }
    }
    Ok(rows)
}

/// At most `most` rows, drawn without regard to their order in the file, sorted by the cell's name.
fn drawn(data: &H5ad, most: usize, seed: u64) -> Vec<usize> {
    let names = data.obs().index();
    let mut rows: Vec<usize> = (0..data.n_obs()).collect();
    rows.sort_by(|&a, &b| names[a].cmp(&names[b]));
    if rows.len() > most {
        let mut random = fastrand::Rng::with_seed(seed);
        for place in 0..most {
            let other = random.usize(place..rows.len());
            rows.swap(place, other);
        }
        rows.truncate(most);
        rows.sort_by(|&a, &b| names[a].cmp(&names[b]));
    }
    rows
}

/// Batches as classes; cells without one are a batch of their own.
fn with_unknown(batches: Option<Labels>) -> (Option<Classes>, Option<String>) {
    let Some(batches) = batches else { return (None, None) };
    let unknown = batches.codes.iter().filter(|code| code.is_none()).count();
    let rows: Vec<usize> = (0..batches.codes.len()).collect();
    if unknown == 0 {
        return (Some(classes(&batches, &rows)), None);
    }
    let names: Vec<&str> = batches
        .codes
        .iter()
        .map(|code| code.map_or("no batch", |code| batches.classes[code as usize].as_str()))
        .collect();
    (Some(Classes::of(&names)), Some(format!("{unknown} cells without a batch are taken for one")))
}

/// Genes that the file itself marks as mitochondrial or spike-in.
fn technical(data: &H5ad) -> Vec<bool> {
    let mut technical = vec![false; data.n_vars()];
    for key in ["mt", "ercc"] {
        if let Ok(Column::Bool(marks)) = data.var().column(key) {
            for (gene, mark) in technical.iter_mut().zip(marks) {
                *gene |= mark == Some(true);
            }
        }
    }
    technical
}

/// What the tabulate task is told.
#[derive(Debug, Deserialize)]
pub struct TabulateSpec {
    /// Directory with the record of each embedding.
    records: PathBuf,
    /// Directory for the tables.
    output: PathBuf,
}

/// Writes one table an embedding, and one a method.
pub fn tabulate(spec: &TabulateSpec) -> Result<()> {
    let mut by_method: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
    for entry in std::fs::read_dir(&spec.records).map_err(Error::io("read", &spec.records))? {
        let path = entry.map_err(Error::io("read", &spec.records))?.path();
        let text = std::fs::read(&path).map_err(Error::io("read", &path))?;
        let damaged = |error| Error::input(format_args!("{} is not valid", path.display())).cause(error);
        let document: Document = serde_json::from_slice(&text).map_err(damaged)?;
        let (method, id) = (document.method.clone(), document.dataset_id.clone());
        let value = serde_json::to_value(document).map_err(damaged)?;
        by_method.entry(method).or_default().insert(id, value);
    }
    for (method, documents) in &by_method {
        let folder = spec.output.join(method);
        std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        for (id, document) in documents {
            write_table(&folder.join(format!("{id}.csv")), [document])?;
            write_json(&folder.join(format!("{id}.json")), document)?;
        }
        write_table(&folder.join(format!("{method}_geometry.csv")), documents.values())?;
    }
    let mut usage = Usage::new("kernel");
    usage.device = Some("cpu".to_owned());
    usage.measure_process();
    usage.write(atomic::folder_of(&spec.output))
}

fn write_table<'a>(path: &Path, documents: impl IntoIterator<Item = &'a Value>) -> Result<()> {
    let fault = |error: csv::Error| Error::failed("cannot write the table as CSV").cause(error);
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(COLUMNS).map_err(fault)?;
    for document in documents {
        table.write_record(COLUMNS.map(|column| cell(document, column))).map_err(fault)?;
    }
    let bytes = table
        .into_inner()
        .map_err(|error| Error::failed("cannot write the table as CSV").cause(error.error()))?;
    atomic::write(path, &bytes)
}

/// A cell of the table; NA is empty, and its reason stands in the notes.
fn cell(document: &Value, column: &str) -> String {
    match column {
        // A probe that fails ends its task: what is in a table is complete.
        "probe_status" => "completed".to_owned(),
        "failure_reason" => String::new(),
        "notes" => {
            let notes = document["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let reasons = document["reasons"].as_object().into_iter().flatten();
            let reasons = reasons
                .map(|(name, reason)| format!("{name} is NA: {}", reason.as_str().unwrap_or_default()));
            notes.map(str::to_owned).chain(reasons).collect::<Vec<_>>().join("; ")
        }
        _ => match &document[column] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        },
    }
}
