//! The record of one embedding, and the table of several.

use serde::{Deserialize, Serialize};

use super::anisotropy::Cosine;
use super::effects::Effects;
use super::preservation::Preservation;
use super::twonn::Dimension;
use crate::error::{Error, Result};
use crate::kernel::score::Score;
use crate::usage::Phase;

/// Columns of the table, in order. `None` is an empty field: NA.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub dataset_id: String,
    pub method: String,
    pub embedding_file: String,
    /// Cells of the data set.
    pub n_cells_total: usize,
    /// Cells drawn that the embedding has.
    pub n_cells_used: usize,
    pub embedding_dim: usize,
    /// Constant coordinates.
    pub zero_var_dims: usize,
    pub pr: Option<f64>,
    /// `pr / embedding_dim`, above 0 up to 1.
    pub npr: Option<f64>,
    pub aniso_spec: Option<f64>,
    pub aniso_cos: Option<f64>,
    pub aniso_cos_within_ct: Option<f64>,
    pub aniso_cos_between_ct: Option<f64>,
    /// Within minus between, from -2 to 2; higher: types point in directions of their own.
    pub aniso_cos_ct_gap: Option<f64>,
    pub aniso_pair_n: usize,
    pub aniso_pair_n_within_ct: usize,
    pub aniso_pair_n_between_ct: usize,
    pub rnx_k15: Option<f64>,
    pub rnx_k30: Option<f64>,
    pub rnx_k50: Option<f64>,
    pub rnx_mean: Option<f64>,
    pub rnx_eligible_cells: usize,
    pub rnx_eligible_cell_fraction: Option<f64>,
    pub rnx_n_batches: usize,
    pub id_twonn_raw: Option<f64>,
    pub id_twonn_raw_n_cells: usize,
    pub id_twonn_z: Option<f64>,
    pub id_twonn_z_n_cells: usize,
    pub partial_eta2_celltype: Option<f64>,
    pub partial_eta2_batch: Option<f64>,
    pub partial_eta2_n_dims: usize,
    pub partial_eta2_status: String,
    pub probe_status: String,
    pub failure_reason: String,
    /// Separated by `;`: cells left out, genes missing, and the reason of each NA.
    pub notes: String,
}

/// What was found of one embedding, with what each probe cost: its JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub schema: u32,
    pub row: Row,
    /// Reasons and remarks, one a line of the table's notes.
    pub notes: Vec<String>,
    pub phases: Vec<Phase>,
}

/// The metrics of one embedding.
#[derive(Debug, Clone, PartialEq)]
pub struct Probes {
    pub participation: Score,
    pub spectral: Score,
    pub cosine: Cosine,
    pub within: Cosine,
    pub between: Cosine,
    pub preservation: Preservation,
    pub raw: Dimension,
    pub standardised: Dimension,
    pub effects: Effects,
}

impl Row {
    /// Fills in what the probes found; returns their notes, each once, with the column that it speaks of.
    pub fn fill(&mut self, probes: &Probes) -> Vec<String> {
        let mut notes = probes.preservation.notes.clone();
        let mut take = |column: &str, score: &Score| {
            for note in &score.notes {
                let note =
                    if score.value.is_none() { format!("{column} is NA: {note}") } else { note.clone() };
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
            score.value
        };
        self.pr = take("pr", &probes.participation);
        self.npr = self.pr.map(|pr| pr / self.embedding_dim as f64);
        self.aniso_spec = take("aniso_spec", &probes.spectral);
        self.aniso_cos = take("aniso_cos", &probes.cosine.score);
        self.aniso_cos_within_ct = take("aniso_cos_within_ct", &probes.within.score);
        self.aniso_cos_between_ct = take("aniso_cos_between_ct", &probes.between.score);
        let [k15, k30, k50] = &probes.preservation.at;
        self.rnx_mean = take("rnx", &probes.preservation.mean);
        (self.rnx_k15, self.rnx_k30, self.rnx_k50) = (k15.value, k30.value, k50.value);
        self.id_twonn_raw = take("id_twonn_raw", &probes.raw.score);
        self.id_twonn_z = take("id_twonn_z", &probes.standardised.score);
        self.partial_eta2_celltype = take("partial_eta2_celltype", &probes.effects.cell_type);
        self.partial_eta2_batch = take("partial_eta2_batch", &probes.effects.batch);
        self.aniso_cos_ct_gap =
            self.aniso_cos_within_ct.zip(self.aniso_cos_between_ct).map(|(within, between)| within - between);
        self.aniso_pair_n = probes.cosine.pairs;
        self.aniso_pair_n_within_ct = probes.within.pairs;
        self.aniso_pair_n_between_ct = probes.between.pairs;
        self.rnx_eligible_cells = probes.preservation.eligible_cells;
        let share = probes.preservation.eligible_cells as f64 / self.n_cells_used as f64;
        self.rnx_eligible_cell_fraction = (self.n_cells_used > 0).then_some(share);
        self.rnx_n_batches = probes.preservation.batches;
        self.id_twonn_raw_n_cells = probes.raw.cells;
        self.id_twonn_z_n_cells = probes.standardised.cells;
        self.partial_eta2_n_dims = probes.effects.dims;
        self.partial_eta2_status.clone_from(&probes.effects.status);
        notes
    }
}

/// Rows as CSV under a header.
///
/// # Errors
/// A row cannot be written, which would be a bug.
pub fn table(rows: &[Row]) -> Result<Vec<u8>> {
    let failed = |error: csv::Error| Error::failed("cannot write the table").cause(error);
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.serialize(row).map_err(failed)?;
    }
    writer.into_inner().map_err(|error| Error::failed("cannot write the table").cause(error))
}
