//! Annotation frames: `obs`, `var` and `raw/var`, in every encoding anndata has used.
//!
//! | age | a frame is | a categorical is |
//! | --- | --- | --- |
//! | 0.8 and later ("0.2.0") | a group of columns | a group of codes and categories |
//! | 0.7 ("0.1.0") | a group of columns | codes with a reference to `__categories/NAME` |
//! | before 0.7 | a dataset of compound type | codes, categories in `uns/NAME_categories` |

use std::sync::Arc;

use hdf5_metno::{Dataset, Datatype, Group, LocationType, ObjectReference1, ReferencedObject};

use super::Column;
use super::source::Source;
use super::values::{self, Values};
use super::{attribute, native};
use crate::error::{Error, Result};

/// A table of named columns with a named row each. Columns are read when asked for.
#[derive(Debug)]
pub struct Frame {
    source: Arc<Source>,
    /// Where the frame is in the file: `obs`, `var`, `raw/var`.
    name: String,
    index: Vec<String>,
    index_name: String,
    column_names: Vec<String>,
    pub(super) storage: Storage,
}

/// Where the columns are.
#[derive(Debug)]
pub(super) enum Storage {
    Group(Group),
    Compound { dataset: Dataset, fields: Vec<(String, Datatype)> },
}

/// The name of a column in files that we write.
pub(super) fn without_slash(name: &str) -> String {
    name.replace('/', "_")
}

impl Frame {
    /// The names of the rows; numbers are rendered.
    pub fn index(&self) -> &[String] {
        &self.index
    }

    /// The names of the columns in the file's order; the index is not among them.
    pub fn column_names(&self) -> &[String] {
        &self.column_names
    }

    /// Reads the column `name`; an unknown name is an error that lists those there are, nearest first.
    pub fn column(&self, name: &str) -> Result<Column> {
        if !self.column_names.iter().any(|column| column == name) {
            return Err(self.unknown(name));
        }
        let column = match &self.storage {
            Storage::Group(group) => read_member(&self.source, group, name)?,
            Storage::Compound { dataset, fields } => self.read_legacy(dataset, fields, name)?,
        };
        if column.len() != self.index.len() {
            let cause = format!("it has {} rows, the index has {}", column.len(), self.index.len());
            return Err(self.source.fault(&format!("{}/{name}", self.name), cause));
        }
        Ok(column)
    }

    /// The column that `name` means, as this file calls it: an embedding file has `_` for each `/`, since anndata cannot read
    /// such names.
    pub fn find(&self, name: &str) -> Option<&str> {
        let renamed = without_slash(name);
        let named = |wanted: &str| self.column_names.iter().find(|column| *column == wanted);
        named(name).or_else(|| named(&renamed)).map(String::as_str)
    }

    /// The name under which the file stores the index.
    pub(super) fn index_name(&self) -> &str {
        &self.index_name
    }

    pub(super) fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Opens the frame `name` of the file.
    pub(super) fn open(source: &Arc<Source>, name: &str) -> Result<Frame> {
        match source.hdf5.loc_type_by_name(name) {
            Ok(LocationType::Group) => Self::open_group(source, name),
            Ok(LocationType::Dataset) => Self::open_compound(source, name),
            Ok(_) => Err(source.fault(name, "it is neither a group nor a dataset")),
            Err(error) => Err(source.fault(name, native::reason(&error))),
        }
    }

    fn open_group(source: &Arc<Source>, name: &str) -> Result<Frame> {
        let fault = source.library_fault(name);
        let group = source.hdf5.group(name).map_err(&fault)?;
        let index_name = attribute::text(&group, "_index")
            .or_else(|| {
                ["_index", "index"].into_iter().find(|name| group.link_exists(name)).map(str::to_owned)
            })
            .ok_or_else(|| source.fault(name, "it has no index"))?;
        let index = read_values(source, &group, &index_name)?.into_names();
        let column_names = match attribute::texts(&group, "column-order") {
            Some(names) => names,
            None => {
                let mut names = group.member_names().map_err(&fault)?;
                names.retain(|name| *name != index_name && name != "__categories");
                names
            }
        };
        drop(fault);
        let storage = Storage::Group(group);
        Ok(Frame {
            source: Arc::clone(source),
            name: name.to_owned(),
            index,
            index_name,
            column_names,
            storage,
        })
    }

    fn open_compound(source: &Arc<Source>, name: &str) -> Result<Frame> {
        let fault = source.library_fault(name);
        let dataset = source.hdf5.dataset(name).map_err(&fault)?;
        values::check(source, &dataset)?;
        let datatype = dataset.dtype().map_err(&fault)?;
        let mut fields = native::fields(&datatype).unwrap_or_default();
        if fields.is_empty() || dataset.ndim() != 1 {
            return Err(source.fault(name, "it is a dataset, but not a table"));
        }
        drop(fault);
        let (index_name, index_type) = fields.remove(0);
        let index = values::read_field(source, &dataset, &index_name, &index_type)?.into_names();
        let column_names = fields.iter().map(|(name, _)| name.clone()).collect();
        let storage = Storage::Compound { dataset, fields };
        Ok(Frame {
            source: Arc::clone(source),
            name: name.to_owned(),
            index,
            index_name,
            column_names,
            storage,
        })
    }

    fn read_legacy(&self, dataset: &Dataset, fields: &[(String, Datatype)], name: &str) -> Result<Column> {
        let field = fields.iter().find(|(field, _)| field == name);
        let (_, datatype) = field.ok_or_else(|| self.unknown(name))?;
        let values = values::read_field(&self.source, dataset, name, datatype)?;
        if !matches!(values, Values::Integer(_)) {
            return Ok(values.into());
        }
        match legacy_categories(&self.source, name)? {
            None => Ok(values.into()),
            Some(categories) => {
                let categories = values::read(&self.source, &categories)?.into_names();
                categorical(&self.source, &format!("{}/{name}", self.name), values, categories, false)
            }
        }
    }

    fn unknown(&self, name: &str) -> Error {
        let lower = name.to_lowercase();
        let mut names: Vec<&str> = self.column_names.iter().map(String::as_str).collect();
        let likeness = |column: &str| strsim::jaro_winkler(&column.to_lowercase(), &lower);
        names.sort_by(|left, right| likeness(right).total_cmp(&likeness(left)));
        let error = Error::input(format_args!(
            "{} of {} has no column \"{name}\"",
            self.name,
            self.source.path().display()
        ));
        if names.is_empty() {
            return error.hint(format_args!("{} has no columns at all", self.name));
        }
        error.hint(format_args!("{} has {}", self.name, names.join(", ")))
    }
}

/// The dataset `uns/NAME_categories`, where anndata before 0.7 kept the categories of a column.
pub(super) fn legacy_categories(source: &Source, name: &str) -> Result<Option<Dataset>> {
    let path = format!("uns/{name}_categories");
    if !source.hdf5.link_exists("uns")
        || !matches!(source.hdf5.loc_type_by_name(&path), Ok(LocationType::Dataset))
    {
        return Ok(None);
    }
    let dataset = source.hdf5.dataset(&path).map_err(source.library_fault(&path))?;
    values::check(source, &dataset)?;
    Ok(Some(dataset))
}

/// The categories that the attribute `categories` of a column of anndata 0.7 refers to.
pub(super) fn referenced_categories(source: &Source, dataset: &Dataset) -> Result<Option<Dataset>> {
    let Ok(attribute) = dataset.attr("categories") else { return Ok(None) };
    let name = dataset.name();
    let fault = source.library_fault(&name);
    let reference = attribute.read_scalar::<ObjectReference1>().map_err(&fault)?;
    match dataset.dereference(&reference).map_err(&fault)? {
        ReferencedObject::Dataset(categories) => {
            values::check(source, &categories)?;
            Ok(Some(categories))
        }
        _ => Err(source.fault(&name, "its categories are not a dataset")),
    }
}

/// Reads the member `name` of `group` as a column.
fn read_member(source: &Source, group: &Group, name: &str) -> Result<Column> {
    let shown = format!("{}/{name}", group.name());
    match group.loc_type_by_name(name) {
        Ok(LocationType::Dataset) => {
            let dataset = values::open(source, group, name)?;
            let values = values::read(source, &dataset)?;
            match referenced_categories(source, &dataset)? {
                None => Ok(values.into()),
                Some(categories) => {
                    let ordered = attribute::is_true(&categories, "ordered");
                    let categories = values::read(source, &categories)?.into_names();
                    categorical(source, &shown, values, categories, ordered)
                }
            }
        }
        Ok(LocationType::Group) => {
            let group = group.group(name).map_err(source.library_fault(&shown))?;
            match attribute::encoding(&group).as_deref() {
                Some("categorical") => {
                    let values = read_values(source, &group, "codes")?;
                    let categories = read_names(source, &group, "categories")?;
                    categorical(source, &shown, values, categories, attribute::is_true(&group, "ordered"))
                }
                Some("nullable-integer" | "nullable-boolean" | "nullable-string-array") => {
                    read_nullable(source, &group)
                }
                Some(encoding) => {
                    Err(source.fault(&shown, format!("its encoding \"{encoding}\" is no column's")))
                }
                None => Err(source.fault(&shown, "it is a group without an encoding-type")),
            }
        }
        Ok(_) => Err(source.fault(&shown, "it is neither a group nor a dataset")),
        Err(error) => Err(source.fault(&shown, native::reason(&error))),
    }
}

fn categorical(
    source: &Source,
    name: &str,
    codes: Values,
    categories: Vec<String>,
    ordered: bool,
) -> Result<Column> {
    let codes = codes.into_codes().ok_or_else(|| source.fault(name, "its codes are not integers"))?;
    match codes.iter().flatten().find(|&&code| code as usize >= categories.len()) {
        Some(code) => {
            Err(source.fault(name, format!("it has code {code}, but only {} categories", categories.len())))
        }
        None => Ok(Column::Categorical { categories, codes, ordered }),
    }
}

/// Reads a group of values and a mask, true where a value is missing.
fn read_nullable(source: &Source, group: &Group) -> Result<Column> {
    let member = |name| values::read(source, &values::open(source, group, name)?);
    let values = member("values")?;
    let Values::Bool(mask) = member("mask")? else {
        return Err(source.fault(&group.name(), "its mask is not boolean"));
    };
    if mask.len() != values.len() {
        let cause = format!("its mask has {} rows, its values have {}", mask.len(), values.len());
        return Err(source.fault(&group.name(), cause));
    }
    fn masked<T>(values: Vec<T>, mask: &[bool]) -> Vec<Option<T>> {
        values.into_iter().zip(mask).map(|(value, &missing)| (!missing).then_some(value)).collect()
    }
    Ok(match values {
        Values::Text(values) => Column::Text(masked(values, &mask)),
        Values::Bool(values) => Column::Bool(masked(values, &mask)),
        Values::Integer(values) => Column::Integer(masked(values, &mask)),
        Values::Float(values) => {
            let values = values.into_iter().zip(&mask);
            Column::Float(values.map(|(value, &missing)| if missing { f64::NAN } else { value }).collect())
        }
    })
}

fn read_values(source: &Source, group: &Group, name: &str) -> Result<Values> {
    if let Ok(LocationType::Group) = group.loc_type_by_name(name) {
        let names = read_names(source, group, name)?;
        return Ok(Values::Text(names));
    }
    values::read(source, &values::open(source, group, name)?)
}

/// Reads categories or an index: a dataset, or a nullable array (a missing name is empty).
fn read_names(source: &Source, group: &Group, name: &str) -> Result<Vec<String>> {
    if !matches!(group.loc_type_by_name(name), Ok(LocationType::Group)) {
        return Ok(values::read(source, &values::open(source, group, name)?)?.into_names());
    }
    let shown = format!("{}/{name}", group.name());
    let group = group.group(name).map_err(source.library_fault(&shown))?;
    let labels = match read_nullable(source, &group)? {
        Column::Text(values) => return Ok(values.into_iter().map(Option::unwrap_or_default).collect()),
        column => column.labels(),
    };
    let name =
        |code: Option<u32>| code.map_or_else(String::new, |code| labels.classes[code as usize].clone());
    Ok(labels.codes.iter().map(|&code| name(code)).collect())
}
