//! What an embedding or a sample keeps of the file it was made from: frames and `obsm`, re-encoded where they are old.

use std::sync::Arc;

use hdf5_metno::{Dataset, Group, LocationType};

use super::element::{Class, Element};
use super::encode::Target;
use super::frame::{Storage, legacy_categories, referenced_categories, without_slash};
use super::source::Source;
use super::{Frame, attribute, native, values};
use crate::error::Result;

/// The only entry of `obsm` that the built-in methods read.
const COORDINATES: &str = "spatial";

/// What is taken over of `obsm`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Taken<'a> {
    All,
    /// Chosen rows of all entries.
    Rows(&'a [usize]),
    /// Chosen rows of the coordinates.
    Coordinates(&'a [usize]),
}

/// Writes `frame` as `name` in `parent`: the same columns of the same types, in the encoding of anndata 0.8. Of chosen
/// `rows`, a column of an encoding that nobody reads is left out.
///
/// A slash in a column's name makes anndata unable to read the whole file, so it becomes an underscore.
pub(super) fn frame(
    target: &Target,
    frame: &Frame,
    parent: &Group,
    name: &str,
    rows: Option<&[usize]>,
) -> Result<()> {
    let group = target.group(parent, name, "dataframe", "0.2.0")?;
    let source = frame.source();
    let mut taken = vec![without_slash(frame.index_name())];
    index(target, source, frame, (&group, &taken[0]), rows)?;
    for column in frame.column_names() {
        let mut new_name = without_slash(column);
        while taken.contains(&new_name) {
            new_name.push('_');
        }
        let into = (&group, new_name.as_str());
        match &frame.storage {
            Storage::Group(old) => {
                if !member(target, source, (old, column), into, rows)? {
                    continue;
                }
            }
            Storage::Compound { dataset, fields } => {
                let field = fields.iter().find(|(field, _)| field == column);
                if let Some((field, datatype)) = field {
                    legacy_column(target, source, dataset, (field, datatype), into, rows)?;
                }
            }
        }
        taken.push(new_name);
    }
    target.attribute(&group, "_index", &taken[0])?;
    target.attributes(&group, "column-order", &taken[1..])
}

fn index(
    target: &Target,
    source: &Source,
    frame: &Frame,
    into: (&Group, &str),
    rows: Option<&[usize]>,
) -> Result<()> {
    if let Storage::Group(old) = &frame.storage
        && member(target, source, (old, frame.index_name()), into, rows)?
    {
        return Ok(());
    }
    let names = frame.index();
    match rows {
        None => target.texts(into.0, into.1, names),
        Some(rows) => {
            let names: Vec<String> = rows.iter().map(|&row| names[row].clone()).collect();
            target.texts(into.0, into.1, &names)
        }
    }
}

/// Copies a column or another array or frame `name` of `old`, all of it or the chosen rows; `false` where its rows cannot be
/// told apart.
fn member(
    target: &Target,
    source: &Source,
    (old, name): (&Group, &str),
    (group, new_name): (&Group, &str),
    rows: Option<&[usize]>,
) -> Result<bool> {
    let shown = format!("{}/{name}", old.name());
    if let Ok(LocationType::Dataset) = old.loc_type_by_name(name) {
        let dataset = old.dataset(name).map_err(source.library_fault(&shown))?;
        return match referenced_categories(source, &dataset)? {
            None => array(target, source, &dataset, (group, new_name), rows),
            Some(categories) => {
                let ordered = attribute::is_true(&categories, "ordered");
                let column = target.group(group, new_name, "categorical", "0.2.0")?;
                target.flag(&column, "ordered", ordered)?;
                target.copy_array(source, &categories, &column, "categories")?;
                array(target, source, &dataset, (&column, "codes"), rows)
            }
        };
    }
    let inner = old.group(name).map_err(source.library_fault(&shown))?;
    if let Some(rows) = rows {
        return group_rows(target, source, &inner, (group, new_name), rows);
    }
    inner.copy_to(group, new_name).map_err(|error| target.fault(error))?;
    Ok(true)
}

fn array(
    target: &Target,
    source: &Source,
    dataset: &Dataset,
    (group, name): (&Group, &str),
    rows: Option<&[usize]>,
) -> Result<bool> {
    match rows {
        None => target.copy_array(source, dataset, group, name).map(|()| true),
        Some(rows) => target.copy_rows(source, dataset, (group, name), rows),
    }
}

/// Writes the chosen rows of a column that is a group: categories stay all, codes, values and masks are chosen from.
fn group_rows(
    target: &Target,
    source: &Source,
    old: &Group,
    (group, name): (&Group, &str),
    rows: &[usize],
) -> Result<bool> {
    let encoding = attribute::encoding(old).unwrap_or_default();
    let (whole, by_row): (&[&str], &[&str]) = match encoding.as_str() {
        "categorical" => (&["categories"], &["codes"]),
        "nullable-integer" | "nullable-boolean" | "nullable-string-array" => (&[], &["values", "mask"]),
        _ => return Ok(false),
    };
    let version = attribute::text(old, "encoding-version").unwrap_or_default();
    let column = target.group(group, name, &encoding, &version)?;
    if encoding == "categorical" {
        target.flag(&column, "ordered", attribute::is_true(old, "ordered"))?;
    }
    for part in whole {
        member(target, source, (old, part), (&column, part), None)?;
    }
    for part in by_row {
        if !member(target, source, (old, part), (&column, part), Some(rows))? {
            return Err(source.fault(&format!("{}/{part}", old.name()), "its values are no numbers or texts"));
        }
    }
    Ok(true)
}

/// Writes a column of a table of anndata before 0.7.
fn legacy_column(
    target: &Target,
    source: &Source,
    table: &Dataset,
    (field, datatype): (&str, &hdf5_metno::Datatype),
    (group, new_name): (&Group, &str),
    rows: Option<&[usize]>,
) -> Result<()> {
    let element = Element::of(datatype.clone()).map_err(source.library_fault(field))?;
    let categories = if element.is_integer() { legacy_categories(source, field)? } else { None };
    let Some(categories) = categories else {
        return target.copy_field(source, table, (field, datatype), (group, new_name), rows);
    };
    let column = target.group(group, new_name, "categorical", "0.2.0")?;
    target.flag(&column, "ordered", false)?;
    target.copy_field(source, table, (field, datatype), (&column, "codes"), rows)?;
    target.copy_array(source, &categories, &column, "categories")
}

/// The bytes that the datasets of `obs` and `obsm` take in the file and, copied as they are, in an embedding.
///
/// A lower bound: strings, which lie outside of their datasets, and what is re-encoded do not count.
pub(super) fn stored_bytes(source: &Source) -> u64 {
    ["obs", "obsm"].iter().filter_map(|name| source.hdf5.group(name).ok()).map(|group| stored(&group)).sum()
}

fn stored(group: &Group) -> u64 {
    let datasets = group.datasets().unwrap_or_default().into_iter();
    let copied = datasets.filter(|dataset| attribute::encoding(dataset).is_some());
    let inner = group.groups().unwrap_or_default();
    copied.map(|dataset| dataset.storage_size()).sum::<u64>() + inner.iter().map(stored).sum::<u64>()
}

/// The names of the entries of `obsm`, sorted.
pub(super) fn obsm_keys(source: &Source) -> Result<Vec<String>> {
    let fault = source.library_fault("obsm");
    let mut keys = match source.hdf5.loc_type_by_name("obsm") {
        Ok(LocationType::Group) => {
            source.hdf5.group("obsm").and_then(|obsm| obsm.member_names()).map_err(&fault)?
        }
        Ok(LocationType::Dataset) => {
            let table = source.hdf5.dataset("obsm").map_err(&fault)?;
            let fields = table.dtype().and_then(|datatype| native::fields(&datatype)).unwrap_or_default();
            fields.into_iter().map(|(name, _)| name).collect()
        }
        _ => Vec::new(),
    };
    keys.sort();
    Ok(keys)
}

/// Writes entries of the source's `obsm` into `obsm`.
pub(super) fn obsm(target: &Target, source: &Arc<Source>, obsm: &Group, taken: Taken<'_>) -> Result<()> {
    let rows = match taken {
        Taken::All => None,
        Taken::Rows(rows) | Taken::Coordinates(rows) => Some(rows),
    };
    let wanted = |key: &String| !matches!(taken, Taken::Coordinates(_)) || key == COORDINATES;
    let fault = source.library_fault("obsm");
    match source.hdf5.loc_type_by_name("obsm") {
        Ok(LocationType::Group) => {
            let old = source.hdf5.group("obsm").map_err(&fault)?;
            for key in old.member_names().map_err(&fault)?.iter().filter(|key| wanted(key)) {
                obsm_entry(target, source, (&old, key), obsm, rows)?;
            }
            Ok(())
        }
        // Before anndata 0.7 `obsm` was one table whose fields are short arrays.
        Ok(LocationType::Dataset) => {
            let table = source.hdf5.dataset("obsm").map_err(&fault)?;
            values::check(source, &table)?;
            let datatype = table.dtype().map_err(&fault)?;
            let fields = native::fields(&datatype).map_err(&fault)?;
            for (key, datatype) in fields.iter().filter(|(key, _)| wanted(key)) {
                target.copy_field(source, &table, (key, datatype), (obsm, key), rows)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn obsm_entry(
    target: &Target,
    source: &Arc<Source>,
    (old, key): (&Group, &str),
    obsm: &Group,
    rows: Option<&[usize]>,
) -> Result<()> {
    let shown = format!("obsm/{key}");
    match old.loc_type_by_name(key) {
        Ok(LocationType::Dataset) => {
            let dataset = old.dataset(key).map_err(source.library_fault(&shown))?;
            let datatype = dataset.dtype().map_err(source.library_fault(&shown))?;
            if let Some(rows) = rows {
                return target.copy_rows(source, &dataset, (obsm, key), rows).map(drop);
            }
            let class = Element::of(datatype).map_err(source.library_fault(&shown))?.class;
            if attribute::encoding(&dataset).is_none() && class == Class::Compound {
                return dataset.copy_to(obsm, key).map_err(|error| target.fault(error));
            }
            target.copy_array(source, &dataset, obsm, key)
        }
        Ok(LocationType::Group) => {
            let group = old.group(key).map_err(source.library_fault(&shown))?;
            let is_frame = attribute::encoding(&group).as_deref() == Some("dataframe");
            let is_old = attribute::text(&group, "encoding-version").as_deref() == Some("0.1.0");
            if is_frame && (is_old || rows.is_some()) {
                return frame(target, &Frame::open(source, &shown)?, obsm, key, rows);
            }
            if rows.is_some() {
                return Ok(());
            }
            group.copy_to(obsm, key).map_err(|error| target.fault(error))
        }
        _ => Ok(()),
    }
}
