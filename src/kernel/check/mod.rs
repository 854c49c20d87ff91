//! The input contract of a data set, as a report.
//!
//! Every value of X is looked at, never a sample. Where X is not counts, every value of the layers and of raw is looked at
//! too, to say which of them truly holds counts. What cannot be read soundly is an error; everything else is a finding.
//!
//! Memory, beyond the annotation that [`H5ad`] holds: 24 bytes a cell and 4 bytes a gene for X, the same again for one
//! other matrix at a time, about 32 bytes a name while repeated names are looked for, 4 bytes a cell for each of the
//! label and batch columns (more where they are text), and the reader's block of values. The number of values does not
//! enter.

mod cells;
mod columns;
mod facts;
mod genes;
mod identify;
mod judge;
mod matrix;
mod needs;
mod report;
mod scan;
mod wording;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use columns::{DEFAULT_BATCH_KEY, DEFAULT_LABEL_KEY};
pub use facts::{ClassFacts, ColumnFacts, Facts, GeneNameFacts, MatrixFacts};
pub use identify::NameKind;
pub use judge::ValueKind;
pub use report::{Counts, Finding, Level, Report, Verdict};

use crate::error::{Error, Result};
use crate::h5ad::H5ad;
use crate::method::Profile;

use cells::Duplicates;
use identify::GeneNames;

/// What the file is going to be in a transfer or a fine-tuning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Has the labels to learn from.
    Reference,
    /// Is to be labelled; its own labels, if any, score the predictions.
    Query,
}

impl Role {
    pub const ALL: [Role; 2] = [Role::Reference, Role::Query];

    pub fn name(self) -> &'static str {
        match self {
            Role::Reference => "reference",
            Role::Query => "query",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Role {
    type Err = Error;

    fn from_str(text: &str) -> Result<Role> {
        Role::ALL
            .into_iter()
            .find(|role| role.name() == text)
            .ok_or_else(|| Error::usage(format_args!("role \"{text}\" is neither reference nor query")))
    }
}

/// What to check a file for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request<'a> {
    /// Column of obs with the labels, as the user gave it. Absent: [`DEFAULT_LABEL_KEY`], and it may be missing.
    pub label_key: Option<&'a str>,
    /// Column of obs with the batches, as the user gave it. Absent: [`DEFAULT_BATCH_KEY`], and it may be missing.
    pub batch_key: Option<&'a str>,
    pub role: Option<Role>,
    /// Method whose needs count. Absent: those of any model, which are counts and gene names.
    pub profile: Option<&'a Profile>,
}

/// Checks `data` against `request`.
///
/// # Errors
/// X, or the label or batch column, is there and cannot be read soundly.
pub fn check(data: &H5ad, request: &Request<'_>) -> Result<Report> {
    let Request { label_key, batch_key, role, profile } = *request;
    let (obs, var) = (data.obs(), data.var());
    let examined = matrix::examine(data, profile.is_none_or(|profile| profile.input.counts))?;
    let labels = columns::read(obs, label_key.unwrap_or(DEFAULT_LABEL_KEY))?;
    let batches = columns::read(obs, batch_key.unwrap_or(DEFAULT_BATCH_KEY))?;
    let names = GeneNames::of(var.index().iter().map(String::as_str));
    let scan = examined.scan.as_ref();

    let mut findings = examined.findings;
    let same_cells = Duplicates::of(obs.index());
    findings.extend(cells::findings(obs.index(), &same_cells, scan, profile));
    let same_genes = Duplicates::of(var.index());
    findings.extend(genes::findings(var, data.raw_var(), &names, &same_genes, scan, profile));
    if data.n_obs() > 0 {
        findings.extend(columns::label_findings(obs.column_names(), label_key, labels.as_ref(), role));
        findings.extend(columns::batch_findings(obs.column_names(), batch_key, batches.as_ref(), profile));
    }
    if let Some(profile) = profile {
        findings.extend(needs::findings(data, profile, role));
    }
    let facts = Facts {
        matrix: examined.facts,
        counts_in: examined.counts_in,
        gene_names: names.facts(),
        duplicate_cells: same_cells.count,
        duplicate_genes: same_genes.count,
        labels: labels.map(ColumnFacts::shortened),
        batches: batches.map(ColumnFacts::shortened),
        obsm: data.obsm_keys().to_vec(),
    };
    let method = profile.map(|profile| profile.name.clone());
    let file = data.path().display().to_string();
    Ok(Report::new(file, method, (data.n_obs(), data.n_vars()), findings, facts))
}

#[cfg(test)]
mod tests;
