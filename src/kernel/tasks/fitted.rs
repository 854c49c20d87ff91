//! The directory of a fitted classifier: what `transfer` leaves and `transfer --fitted` takes.
//!
//! | file | holds |
//! |---|---|
//! | `meta.json` | [`Meta`]: what it is and what it was fitted to |
//! | `<name>.npy` | the arrays of the classifier ([`Model::array_names`]), for `numpy.load` |
//! | `projection/` | of a method that is fitted to the reference: what places a query among it |

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::write_json;
use crate::atomic;
use crate::error::{Error, Result};
use crate::kernel::classify::{Arrays, Kind, Model, Settings, cells_per_class, npy};
use crate::kernel::points::Classes;

/// The format of the directory; the Python command wrote another.
pub const FORMAT: &str = "scfoundry_transfer/2";

/// The file that describes the others.
pub const META: &str = "meta.json";

/// The directory of a projection within a model's.
pub const PROJECTION: &str = "projection";

/// The seed of every fit: the same data give the same model.
pub const SEED: u64 = 0;

/// What a fitted classifier is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    pub format: String,
    /// The version that fitted it.
    pub scfoundry: String,
    pub classifier: Kind,
    /// The method that embedded the reference, and has to embed the query.
    pub method: String,
    /// The variant of the method's model.
    pub model: Option<String>,
    pub label_key: String,
    /// Sorted; codes in the arrays are places in here.
    pub classes: Vec<String>,
    /// Dimensions of the embedding.
    pub dim: usize,
    /// Reference cells that it was fitted to: those with a label.
    pub n_reference: usize,
    /// Reference cells that have no label.
    pub n_unlabelled: usize,
    pub cells_per_class: Map<String, Value>,
    pub hyperparameters: Value,
    /// Whether the query has to be projected onto what was fitted to the reference.
    pub projected: bool,
}

impl Meta {
    /// Describes a model fitted to cells of these classes.
    pub fn new(model: &Model, settings: Settings, classes: &Classes, dim: usize) -> Meta {
        Meta {
            format: FORMAT.to_owned(),
            scfoundry: env!("CARGO_PKG_VERSION").to_owned(),
            classifier: settings.classifier,
            method: String::new(),
            model: None,
            label_key: String::new(),
            classes: classes.names.clone(),
            dim,
            n_reference: classes.codes.len(),
            n_unlabelled: 0,
            cells_per_class: cells_per_class(classes)
                .into_iter()
                .map(|(name, cells)| (name, json!(cells)))
                .collect(),
            hyperparameters: model.hyperparameters(settings),
            projected: false,
        }
    }

    /// Reads what a directory holds and looks whether all its files are there.
    ///
    /// # Errors
    /// Input: it is no directory of a fitted classifier, or one of another format, or a file of it is missing.
    pub fn read(folder: &Path) -> Result<Meta> {
        let path = folder.join(META);
        let foreign = || {
            Error::input(format_args!("{} is no fitted classifier", folder.display()))
                .hint("name a directory that `scfoundry transfer` has left, below transfer/models")
        };
        let bytes = std::fs::read(&path).map_err(Error::io("read", &path)).map_err(|error| {
            error
                .within(format_args!("{} is no fitted classifier", folder.display()))
                .hint("name a directory that `scfoundry transfer` has left, below transfer/models")
        })?;
        let damaged = |error| foreign().cause(format_args!("{} is not valid: {error}", path.display()));
        let document: Value = serde_json::from_slice(&bytes).map_err(damaged)?;
        if document["format"] != FORMAT {
            let format = &document["format"];
            return Err(
                foreign().cause(format_args!("{} has the format {format}, not {FORMAT:?}", path.display()))
            );
        }
        let meta: Meta = serde_json::from_value(document).map_err(damaged)?;
        let sorted = meta.classes.windows(2).all(|pair| pair[0] < pair[1]);
        if meta.classes.is_empty() || meta.dim == 0 || !sorted {
            return Err(
                foreign().cause(format_args!("{} has no sorted classes or no dimension", path.display()))
            );
        }
        let arrays =
            Model::array_names(meta.classifier).iter().map(|name| folder.join(format!("{name}.npy")));
        let projection = meta.projected.then(|| folder.join(PROJECTION));
        match arrays.chain(projection).find(|path| !path.exists()) {
            None => Ok(meta),
            Some(absent) => Err(foreign().cause(format_args!("{} is missing", absent.display()))),
        }
    }

    /// The settings that the model was fitted with.
    pub fn settings(&self) -> Settings {
        let k = self.hyperparameters["k"].as_u64().unwrap_or(0);
        Settings { classifier: self.classifier, knn_k: k as usize, seed: SEED }
    }
}

/// Writes a fitted classifier into a new directory, with a copy of the projection where there is one.
pub fn save(folder: &Path, meta: &Meta, model: &Model, projection: Option<&Path>) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    for (name, array) in model.arrays() {
        atomic::write(&folder.join(format!("{name}.npy")), &npy::encode(&array))?;
    }
    if let Some(projection) = projection {
        atomic::copy_tree(projection, &folder.join(PROJECTION))?;
    }
    // Last: a directory with it is whole.
    write_json(&folder.join(META), meta)
}

/// Reads a fitted classifier.
///
/// # Errors
/// Input: as [`Meta::read`], or an array is damaged or does not fit the others.
pub fn load(folder: &Path) -> Result<(Meta, Model)> {
    let meta = Meta::read(folder)?;
    let mut arrays = Arrays::default();
    for name in Model::array_names(meta.classifier) {
        let path = folder.join(format!("{name}.npy"));
        let bytes = std::fs::read(&path).map_err(Error::io("read", &path))?;
        let array = npy::decode(&bytes)
            .map_err(|error| Error::input(format_args!("{} is damaged", path.display())).cause(error))?;
        arrays.add(name, array);
    }
    let model = Model::from_arrays(arrays, meta.settings(), meta.classes.len(), meta.dim)
        .map_err(|error| error.within(format_args!("the classifier in {} is damaged", folder.display())))?;
    Ok((meta, model))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::points::Points;

    fn saved(folder: &Path, kind: Kind) -> (Meta, Model) {
        let points = Points::new((0..60).map(|value| ((value * 37) % 23) as f32 - 11.0).collect(), 3);
        let labels: Vec<String> = (0..20).map(|cell| format!("type {}", cell % 2)).collect();
        let classes = Classes::of(&labels);
        let settings = Settings { classifier: kind, knn_k: 5, seed: SEED };
        let model = Model::fit(&points, &classes, settings, &|_| ()).unwrap().model;
        let meta = Meta { method: "pca".into(), ..Meta::new(&model, settings, &classes, 3) };
        save(folder, &meta, &model, None).unwrap();
        (meta, model)
    }

    #[test]
    fn every_classifier_comes_back_as_it_was() {
        for kind in Kind::ALL {
            let folder = tempfile::tempdir().unwrap();
            let expected = saved(folder.path(), kind);
            assert_eq!(load(folder.path()).unwrap(), expected, "{kind}");
        }
    }

    #[test]
    fn what_is_no_fitted_classifier_is_refused_with_the_file_named() {
        let folder = tempfile::tempdir().unwrap();
        let causes = |message: &str| {
            let error = Meta::read(folder.path()).unwrap_err();
            assert!(error.message.ends_with("is no fitted classifier"), "{error}");
            assert!(error.causes.join(" ").contains(message), "{error}");
        };
        causes("meta.json");
        std::fs::write(folder.path().join(META), "{").unwrap();
        causes("meta.json is not valid");
        std::fs::write(folder.path().join(META), r#"{"format": "1"}"#).unwrap();
        causes("has the format \"1\"");
        saved(folder.path(), Kind::Logreg);
        std::fs::remove_file(folder.path().join("scale.npy")).unwrap();
        causes("scale.npy is missing");
        std::fs::write(folder.path().join("scale.npy"), "PK").unwrap();
        let error = load(folder.path()).unwrap_err();
        assert!(error.message.ends_with("scale.npy is damaged"), "{error}");
    }
}
