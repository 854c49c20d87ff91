//! `genept`: cells as weighted means of the vectors of their genes.

use std::path::PathBuf;

use serde::Deserialize;

use super::gene_table::{GeneRules, GeneTable};
use super::progress::Progress;
use super::{Counts, open, usage};
use crate::atomic;
use crate::error::{Error, Result};
use crate::h5ad::{Slot, UnsValue, stream_embedding};
use crate::kernel::genept::GeneVectors;
use crate::kernel::measure::Meter;
use crate::ui::Ui;

/// What the genept task is told.
#[derive(Debug, Deserialize)]
pub struct GeneptSpec {
    data: PathBuf,
    output: PathBuf,
    /// The name of the table, or the path of one's own.
    model: String,
    /// The table itself, alone.
    model_files: Vec<PathBuf>,
    genes: GeneRules,
}

/// Embeds the cells of a file of raw counts by the vectors of their genes.
///
/// # Errors
/// Environment: the table is missing. Input: it is no table of vectors, knows too few genes, or the file holds no counts.
pub fn genept(spec: &GeneptSpec, ui: &Ui) -> Result<()> {
    let [path] = spec.model_files.as_slice() else {
        return Err(Error::failed("genept reads one table of gene vectors"));
    };
    let data = open(&spec.data)?;
    let mut meter = Meter::new();
    ui.note(format_args!("genept: reading {}", path.display()));
    let table = meter.run("load", || GeneTable::read(path, &data, &spec.genes, "genept"))?;
    let genes = data.n_vars();
    let mut notes = vec![format!("{} of {genes} genes have a vector, by {}", table.matched, table.source)];
    ui.note(format_args!("genept: {}", notes[0]));
    let dims = table.vectors.dims;
    let vectors = GeneVectors::new(&table.columns(), dims);
    let uns = [
        ("scfoundry/method", UnsValue::Text("genept".to_owned())),
        ("scfoundry/version", UnsValue::Text(env!("CARGO_PKG_VERSION").to_owned())),
        ("genept/table", UnsValue::Text(spec.model.clone())),
        ("genept/genes_matched", UnsValue::Integer(table.matched as i64)),
        ("genept/divisor", UnsValue::Integer(genes as i64)),
    ];
    drop(table);
    let counts = Counts { matrix: data.matrix(&Slot::X)?, data: &data };
    let progress = Progress::new(ui, "genept".to_owned());
    let cells = data.n_obs().max(1) as f64;
    let mut without = 0;
    meter.run("embed", || {
        stream_embedding(&spec.output, dims, &uns, &data, |write| {
            without = vectors.embed(&counts, &|done| progress.say("cells", done as f64 / cells), write)?;
            Ok(())
        })
    })?;
    if without > 0 {
        let note = format!(
            "{without} of {} cells have no gene that has a vector: their rows are zero",
            data.n_obs()
        );
        ui.warn(&note);
        notes.push(note);
    }
    usage(&data, meter.phases().to_vec(), notes).write(atomic::folder_of(&spec.output))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::Kind;
    use crate::h5ad::H5ad;
    use crate::kernel::cases::path as case;
    use crate::kernel::points::Points;
    use crate::kernel::tasks::embedding;
    use crate::usage::Usage;

    /// Embeds a case by a table with this text.
    fn embedded(name: &str, table: &str) -> Result<(Points, Vec<String>)> {
        let folder = tempfile::tempdir().unwrap();
        let (output, path) = (folder.path().join("embedding.h5ad"), folder.path().join("table.csv"));
        if !table.is_empty() {
            std::fs::write(&path, table).unwrap();
        }
        let spec = json!({
            "data": case(name), "output": output, "model": "own", "model_files": [path],
            "genes": { "ids": "symbols", "columns": ["symbol", "feature_name"], "minimum_matched": 0.1 },
        });
        genept(&serde_json::from_value(spec).unwrap(), &Ui { quiet: true, ..Ui::default() })?;
        let usage: Usage =
            serde_json::from_slice(&std::fs::read(folder.path().join("usage.json")).unwrap()).unwrap();
        Ok((embedding::points(&H5ad::open(&output).unwrap()).unwrap(), usage.warnings))
    }

    /// The vectors of all genes of the cases but one, which is none of theirs.
    fn table() -> String {
        let data = H5ad::open(&case("a06_csr_int32.h5ad")).unwrap();
        let names = data.var().index().iter().map(String::as_str).chain(["OTHER"]);
        names.enumerate().map(|(number, name)| format!("{name},{number},-1\n")).collect()
    }

    #[test]
    fn symbols_are_found_in_the_index_or_in_a_column() {
        let (points, warnings) = embedded("a06_csr_int32.h5ad", &format!("symbol,x,y\n{}", table())).unwrap();
        assert_eq!((points.len(), points.dims()), (80, 2));
        assert_eq!(warnings, ["50 of 50 genes have a vector, by var_names"]);
        let (_, warnings) = embedded("e03_integer_gene_index.h5ad", &table()).unwrap();
        assert_eq!(warnings[0], "50 of 50 genes have a vector, by var['feature_name']");
    }

    fn refused(table: &str) -> Error {
        embedded("a06_csr_int32.h5ad", table).unwrap_err()
    }

    #[test]
    fn tables_that_cannot_be_used_are_told_with_what_to_do() {
        let error = refused("");
        assert_eq!(error.kind, Kind::Environment);
        assert!(error.hints[0].contains("scfoundry download --method genept"), "{error}");
        let error = refused("GENE_A,1,2\nGENE_B,2,3\n");
        assert!(error.message.starts_with("0 of the 50 genes of "), "{error}");
        let error = refused("ACTB,1,2\nGAPDH,2\n");
        assert!(error.message.ends_with("table.csv is no table of gene vectors"), "{error}");
        assert!(error.causes[0].contains("2"), "{:?}", error.causes);
        assert_eq!(refused("x,y\nACTB,1\nGAPDH,b\n").causes, ["line 3 has something else than numbers"]);
        assert!(refused("PK\x03\x04").hints[0].starts_with("unpack it"));
        let infinite = format!("{}ACTB,inf,1\n", table());
        assert_eq!(refused(&infinite).causes, ["the vector of ACTB has values that are not finite"]);
    }
}
