//! The projection of other data onto the components of a reference.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Counts, open, usage, write_json};
use crate::atomic;
use crate::error::{Error, Result};
use crate::h5ad::{EmbeddingRef, Slot, UnsValue, write_embedding};
use crate::kernel::measure::Meter;
use crate::kernel::pca::Model;
use crate::ui::Ui;

/// The file of a fitted PCA in a directory of its own.
pub(super) const FILE_NAME: &str = "pca.json";

const FORMAT: &str = "scfoundry_pca/1";

/// Of ten genes of the reference at least one has to be in the data that are projected.
const LEAST_MATCHED: usize = 10;

/// A fitted PCA with the names of its genes, as JSON.
#[derive(Debug, Serialize, Deserialize)]
struct Projection {
    format: String,
    scfoundry: String,
    /// Of the model's kept genes, in its order.
    genes: Vec<String>,
    model: Model,
}

/// What the projection task is told.
#[derive(Debug, Deserialize)]
pub struct ProjectSpec {
    data: PathBuf,
    output: PathBuf,
    /// The directory that the fit has left.
    projection: PathBuf,
}

/// Keeps a fit, and the names of its genes, in a new directory.
pub(super) fn save(folder: &Path, genes: &[String], model: &Model) -> Result<()> {
    let projection = Projection {
        format: FORMAT.to_owned(),
        scfoundry: env!("CARGO_PKG_VERSION").to_owned(),
        genes: genes.to_vec(),
        model: model.clone(),
    };
    std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    write_json(&folder.join(FILE_NAME), &projection)
}

fn load(folder: &Path) -> Result<Projection> {
    let path = folder.join(FILE_NAME);
    let bytes = std::fs::read(&path).map_err(Error::io("read", &path))?;
    let damaged = || Error::input(format_args!("{} holds no fitted PCA", path.display()));
    let projection: Projection = serde_json::from_slice(&bytes).map_err(|error| damaged().cause(error))?;
    let Projection { format, genes, model, .. } = &projection;
    let (count, dims) = (genes.len(), model.n_comps());
    let of_genes = [&model.mean, &model.sd, &model.centre].iter().all(|values| values.len() == count);
    if format != FORMAT {
        return Err(damaged().cause(format_args!("its format is {format:?}, not {FORMAT:?}")));
    }
    if !of_genes || count == 0 || dims == 0 || model.components.len() != count * dims {
        return Err(damaged().cause("its parts do not fit together"));
    }
    Ok(projection)
}

/// Places the cells of a file of raw counts among those that a PCA was fitted to.
///
/// # Errors
/// Input: the projection is damaged, the file holds no counts, or fewer than a tenth of the reference's genes.
pub fn project(spec: &ProjectSpec, ui: &Ui) -> Result<()> {
    let mut meter = Meter::new();
    let Projection { genes, model, .. } = load(&spec.projection)?;
    let data = open(&spec.data)?;
    let names = data.var().index();
    let matching = Matching::of(&genes, names);
    let said = matching.sentences();
    said.iter().for_each(|sentence| ui.note(format_args!("pca: {sentence}")));
    if matching.matched * LEAST_MATCHED < genes.len() || matching.matched == 0 {
        let example = |names: &[String]| names.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
        return Err(Error::input(format_args!(
            "{} of the {} genes of the reference are in {}, too few to project its cells",
            matching.matched,
            genes.len(),
            data.path().display()
        ))
        .cause(format_args!("the reference has {}; the query has {}", example(&genes), example(names)))
        .hint("bring both to the same gene identifiers (var names) and fit again"));
    }
    let counts = Counts { matrix: data.matrix(&Slot::X)?, data: &data };
    let scores = meter.run("project", || model.transform_matched(&counts, &matching.places, &|_| ()))?;
    let uns = [
        ("scfoundry/method", UnsValue::Text("pca".to_owned())),
        ("scfoundry/version", UnsValue::Text(env!("CARGO_PKG_VERSION").to_owned())),
        ("pca/projected", UnsValue::Text("onto the components of a reference".to_owned())),
        ("pca/genes_matched", UnsValue::Integer(matching.matched as i64)),
        ("pca/genes", UnsValue::Texts(genes)),
    ];
    let embedding = EmbeddingRef { values: &scores, dims: model.n_comps(), uns: &uns };
    meter.run("write", || write_embedding(&spec.output, embedding, &data))?;
    usage(&data, meter.phases().to_vec(), said).write(atomic::folder_of(&spec.output))
}

/// Which column has which gene, by equal names.
#[derive(Debug, PartialEq, Eq)]
struct Matching {
    /// The column of each of the reference's genes.
    places: Vec<Option<u32>>,
    matched: usize,
    /// Names among the reference's genes that more than one column has: the first is taken.
    repeated: usize,
}

impl Matching {
    fn of(genes: &[String], columns: &[String]) -> Matching {
        let mut first: HashMap<&str, u32> = HashMap::with_capacity(columns.len());
        let mut repeated: HashSet<&str> = HashSet::new();
        for (column, name) in (0u32..).zip(columns) {
            if *first.entry(name).or_insert(column) != column {
                repeated.insert(name);
            }
        }
        let repeated = genes.iter().filter(|gene| repeated.contains(gene.as_str())).count();
        // A name that the reference itself has twice is taken once.
        let places: Vec<Option<u32>> = genes.iter().map(|gene| first.remove(gene.as_str())).collect();
        Matching { matched: places.iter().flatten().count(), places, repeated }
    }

    fn sentences(&self) -> Vec<String> {
        let mut sentences =
            vec![format!("{} of {} genes of the reference matched", self.matched, self.places.len())];
        if self.repeated > 0 {
            sentences.push(format!(
                "{} of them stand more than once in the query; the first is taken",
                self.repeated
            ));
        }
        sentences
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::pca::{Params, fit_transform};
    use crate::matrix::Csr;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn genes_are_matched_by_name_the_first_of_equals() {
        let matching = Matching::of(&names(&["A", "B", "C", "A"]), &names(&["X", "C", "A", "C"]));
        assert_eq!(matching.places, [Some(2), None, Some(1), None]);
        assert_eq!(
            matching.sentences(),
            [
                "2 of 4 genes of the reference matched",
                "1 of them stand more than once in the query; the first is taken"
            ]
        );
    }

    /// Counts of 30 cells, dense.
    fn counts(columns: &[usize]) -> Csr {
        let mut matrix = Csr { columns: columns.len(), indptr: vec![0], ..Csr::default() };
        for cell in 0..30usize {
            for (place, gene) in columns.iter().enumerate() {
                let count = (cell * (gene + 3) + gene * gene) % 7;
                if count > 0 {
                    matrix.indices.push(place as u32);
                    matrix.values.push(count as f64);
                }
            }
            matrix.indptr.push(matrix.indices.len());
        }
        matrix
    }

    #[test]
    fn the_order_of_genes_is_no_matter_and_a_missing_one_counts_zero() {
        let all: Vec<usize> = (0..12).collect();
        let params = Params { n_top_genes: 0, n_comps: 4, ..Params::default() };
        let (fit, scores) = fit_transform(&counts(&all), &params, &|_| ()).unwrap();
        let turned: Vec<usize> = (0..12).rev().collect();
        let places: Vec<Option<u32>> = (0..12).rev().map(Some).collect();
        let projected = fit.model.transform_matched(&counts(&turned), &places, &|_| ()).unwrap();
        assert!(scores.iter().zip(&projected).all(|(a, b)| (a - b).abs() < 1e-5), "{scores:?} {projected:?}");

        let without: Vec<usize> = (1..12).collect();
        let places: Vec<Option<u32>> = std::iter::once(None).chain((0..11).map(Some)).collect();
        let projected = fit.model.transform_matched(&counts(&without), &places, &|_| ()).unwrap();
        let mut emptied = counts(&all);
        for (column, value) in emptied.indices.iter().zip(&mut emptied.values) {
            *value *= f64::from(u8::from(*column != 0));
        }
        let expected = fit.model.transform(&emptied, &|_| ()).unwrap();
        assert!(expected.iter().zip(&projected).all(|(a, b)| (a - b).abs() < 1e-6));
    }

    #[test]
    fn a_fit_is_kept_to_the_last_bit() {
        let folder = tempfile::tempdir().unwrap();
        let params = Params { n_top_genes: 0, n_comps: 4, ..Params::default() };
        let model = fit_transform(&counts(&[0, 1, 2, 3, 4, 5]), &params, &|_| ()).unwrap().0.model;
        let genes = names(&["a", "b", "c", "d", "e", "f"]);
        save(folder.path(), &genes, &model).unwrap();
        let loaded = load(folder.path()).unwrap();
        assert_eq!((loaded.genes, loaded.model), (genes.clone(), model.clone()));
        save(folder.path(), &genes[1..], &model).unwrap();
        let error = load(folder.path()).unwrap_err();
        assert!(error.message.contains("pca.json holds no fitted PCA"), "{error}");
    }
}
