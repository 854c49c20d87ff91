//! Kernels as tasks: a specification in, files out. The only part of `kernel` that knows files.

mod benchmark;
mod classify;
pub(super) mod embedding;
pub mod fitted;
mod gene_table;
mod genept;
mod geometry;
mod harmony;
mod labels;
mod progress;
mod project;

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::check::{self, Role};
use super::pca;
use crate::atomic;
use crate::error::{Error, Result};
use crate::h5ad::{EmbeddingRef, H5ad, Matrix, Slot, UnsValue, write_embedding};
use crate::matrix::{RowBlock, RowBlocks};
use crate::method::Profile;
use crate::ui::Ui;
use crate::usage::{Phase, Usage};

pub use benchmark::{benchmark, rank};
pub use classify::{ReportDocument, classify};
pub use genept::genept;
pub use geometry::{geometry, tabulate};
pub use harmony::harmony;
pub use project::project;

/// What the pca task is told.
#[derive(Debug, Deserialize)]
pub struct PcaSpec {
    data: PathBuf,
    output: PathBuf,
    /// Where the fit goes, for the projection of other data: a new directory.
    projection: Option<PathBuf>,
    #[serde(alias = "n_top_genes", default = "default_genes")]
    pca_n_top_genes: usize,
    #[serde(alias = "n_comps", default = "default_components")]
    pca_n_comps: usize,
}

fn default_genes() -> usize {
    pca::Params::default().n_top_genes
}

fn default_components() -> usize {
    pca::Params::default().n_comps
}

/// Embeds the cells of a file of raw counts by principal components.
pub fn pca(spec: &PcaSpec, ui: &Ui) -> Result<()> {
    let data = open(&spec.data)?;
    let params = pca::Params {
        n_top_genes: spec.pca_n_top_genes,
        n_comps: spec.pca_n_comps,
        ..pca::Params::default()
    };
    let (fit, scores) = components(&data, &params, "pca", ui)?;
    let model = &fit.model;
    let genes = names_of(&data, model);
    if let Some(folder) = &spec.projection {
        project::save(folder, &genes, model)?;
    }
    let uns = [
        ("scfoundry/method", UnsValue::Text("pca".to_owned())),
        ("scfoundry/version", UnsValue::Text(env!("CARGO_PKG_VERSION").to_owned())),
        ("pca/variance", UnsValue::Floats(model.eigenvalues.clone())),
        ("pca/variance_ratio", UnsValue::Floats(model.variance_ratio.clone())),
        ("pca/genes", UnsValue::Texts(genes)),
    ];
    let embedding = EmbeddingRef { values: &scores, dims: model.n_comps(), uns: &uns };
    write_embedding(&spec.output, embedding, &data)?;
    usage(&data, phases_of(&fit), notes_of(&fit)).write(atomic::folder_of(&spec.output))
}

/// Fits the principal components of a file of raw counts, and says what there is to say of them.
fn components(data: &H5ad, params: &pca::Params, method: &str, ui: &Ui) -> Result<(pca::Fit, Vec<f32>)> {
    let counts = Counts { matrix: data.matrix(&Slot::X)?, data };
    let announce = |progress: pca::Progress| {
        if progress.done == 0 {
            ui.note(format_args!("{method}: {}", progress.phase));
        }
    };
    let (fit, scores) = pca::fit_transform(&counts, params, &announce)?;
    fit.notes.iter().for_each(|note| ui.warn(note));
    Ok((fit, scores))
}

/// The names of the genes that a model has kept.
fn names_of(data: &H5ad, model: &pca::Model) -> Vec<String> {
    model.genes.iter().map(|gene| data.var().index()[*gene as usize].clone()).collect()
}

fn phases_of(fit: &pca::Fit) -> Vec<Phase> {
    let phase = |(phase, seconds): &(pca::Phase, f64)| Phase {
        name: phase.to_string(),
        seconds: *seconds,
        peak_rss_bytes: None,
    };
    fit.seconds.iter().map(phase).collect()
}

fn notes_of(fit: &pca::Fit) -> Vec<String> {
    fit.notes.iter().map(ToString::to_string).collect()
}

/// What the check task is told. Keys are absent unless the user gave them.
#[derive(Debug, Deserialize)]
pub struct CheckSpec {
    data: PathBuf,
    text: PathBuf,
    json: PathBuf,
    label_key: Option<String>,
    batch_key: Option<String>,
    role: Option<Role>,
    profile: Option<Profile>,
}

/// Checks a file against the input contract and writes the report as text and as JSON.
pub fn check(spec: &CheckSpec) -> Result<()> {
    let data = open(&spec.data)?;
    let request = check::Request {
        label_key: spec.label_key.as_deref(),
        batch_key: spec.batch_key.as_deref(),
        role: spec.role,
        profile: spec.profile.as_ref(),
    };
    let report = check::check(&data, &request)?;
    write_json(&spec.json, &report)?;
    atomic::write(&spec.text, format!("{}\n", report.to_string().trim_end()).as_bytes())?;
    usage(&data, Vec::new(), Vec::new()).write(atomic::folder_of(&spec.text))
}

/// Opens the file that a staged link stands for, so that errors and reports name it as the user does.
fn open(path: &Path) -> Result<H5ad> {
    H5ad::open(&std::fs::canonicalize(path).map_err(Error::io("read", path))?)
}

fn usage(data: &H5ad, phases: Vec<Phase>, warnings: Vec<String>) -> Usage {
    let mut usage = measured();
    usage.cells = Some(data.n_obs() as u64);
    usage.genes = Some(data.n_vars() as u64);
    usage.threads = u32::try_from(rayon::current_num_threads()).ok();
    usage.phases = phases;
    usage.warnings = warnings;
    usage
}

/// What this process has used so far.
fn measured() -> Usage {
    let mut usage = Usage::new("kernel");
    usage.device = Some("cpu".to_owned());
    usage.measure_process();
    usage
}

/// Values that one task checks.
const COUNTS: usize = 1 << 14;

/// X as raw counts: the first value that is none ends the stream with an error that names its cell and gene.
struct Counts<'a> {
    matrix: Matrix<'a>,
    data: &'a H5ad,
}

impl RowBlocks for Counts<'_> {
    fn shape(&self) -> (usize, usize) {
        self.matrix.shape()
    }

    fn for_each_block(&self, visit: &mut dyn FnMut(RowBlock<'_>) -> Result<()>) -> Result<()> {
        self.matrix.for_each_block(&mut |block| {
            // Beyond 2^63 no value is a count. (`fract` is a function call on older machines' instructions.)
            let lanes = block.values.par_chunks(COUNTS).enumerate();
            let other =
                lanes.find_map_first(|(lane, values)| Some(lane * COUNTS + other_than_count(values)?));
            match other {
                Some(position) => Err(self.no_count(&block, position)),
                None => visit(block),
            }
        })
    }
}

/// The position of the first value that is no count. (`fract` would be a call for each on baseline instructions.)
fn other_than_count(values: &[f64]) -> Option<usize> {
    // Beyond 2^63 the two differ: no count is that large.
    values.iter().position(|value| !(*value >= 0.0 && (*value as i64) as f64 == *value))
}

impl Counts<'_> {
    fn no_count(&self, block: &RowBlock<'_>, position: usize) -> Error {
        let row = block.indptr.partition_point(|start| *start <= position) - 1;
        let cell = &self.data.obs().index()[block.first_row + row];
        let gene = &self.data.var().index()[block.indices[position] as usize];
        let file = self.data.path().display();
        let error = Error::input(format_args!("X of {file} does not hold raw counts"))
            .cause(format_args!("cell {cell}, gene {gene} has the value {}", block.values[position]));
        match self.elsewhere() {
            Some(place) => {
                error.hint(format_args!("counts are in {place}; put them into X and write the file anew"))
            }
            None => error.hint(format_args!("`scfoundry check --data {file}` shows what the file holds")),
        }
    }

    /// Where the file has its counts, if not in X.
    fn elsewhere(&self) -> Option<String> {
        let request = check::Request { label_key: None, batch_key: None, role: None, profile: None };
        let report = check::check(self.data, &request).ok()?;
        report.facts.counts_in.first().cloned()
    }
}

/// All JSON documents of a directory, in no order.
fn read_documents<T: DeserializeOwned>(folder: &Path) -> Result<Vec<T>> {
    let mut documents = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let path = entry.map_err(Error::io("read", folder))?.path();
        let text = std::fs::read(&path).map_err(Error::io("read", &path))?;
        let damaged = |error| Error::input(format_args!("{} is not valid", path.display())).cause(error);
        documents.push(serde_json::from_slice(&text).map_err(damaged)?);
    }
    Ok(documents)
}

fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::failed("cannot write the result as JSON").cause(error))?;
    atomic::write(path, format!("{text}\n").as_bytes())
}
