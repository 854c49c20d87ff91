//! Objects of a new file in the encodings of anndata 0.8 and later.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use hdf5_metno::types::VarLenUnicode;
use hdf5_metno::{Dataset, Datatype, Group, Location};

use super::element::{Class, Element};
use super::source::Source;
use super::{attribute, native, values};
use crate::error::{Error, Result};

/// Where a new file goes; makes errors of what HDF5 says while it is written.
#[derive(Debug, Clone)]
pub(super) struct Target(pub PathBuf);

impl Target {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Turns an error of the HDF5 library into ours; a full disk is the environment's fault.
    pub(super) fn fault(&self, error: hdf5_metno::Error) -> Error {
        if native::is_disk_full(&error) {
            let full = std::io::Error::from_raw_os_error(28);
            return Error::io("write", &self.0)(full);
        }
        Error::failed(format_args!("cannot write {}", self.0.display())).cause(native::reason(&error))
    }

    pub(super) fn attribute(&self, location: &Location, name: &str, value: &str) -> Result<()> {
        let write = || {
            let value = unicode(value)?;
            location.new_attr::<VarLenUnicode>().create(name)?.write_scalar(&value)
        };
        write().map_err(|error| self.fault(error))
    }

    pub(super) fn attributes(&self, location: &Location, name: &str, values: &[String]) -> Result<()> {
        let write = || {
            let values: Vec<VarLenUnicode> =
                values.iter().map(|value| unicode(value)).collect::<hdf5_metno::Result<_>>()?;
            let attribute = location.new_attr::<VarLenUnicode>().shape(values.len()).create(name)?;
            // HDF5 refuses to write no elements from an empty buffer.
            if values.is_empty() { Ok(()) } else { attribute.write_raw(&values) }
        };
        write().map_err(|error| self.fault(error))
    }

    pub(super) fn flag(&self, location: &Location, name: &str, value: bool) -> Result<()> {
        let write = || location.new_attr::<bool>().create(name)?.write_scalar(&value);
        write().map_err(|error| self.fault(error))
    }

    /// Marks an object with what anndata looks for first.
    pub(super) fn mark(&self, location: &Location, encoding: &str, version: &str) -> Result<()> {
        self.attribute(location, "encoding-type", encoding)?;
        self.attribute(location, "encoding-version", version)
    }

    pub(super) fn group(&self, parent: &Group, name: &str, encoding: &str, version: &str) -> Result<Group> {
        let group = parent.create_group(name).map_err(|error| self.fault(error))?;
        self.mark(&group, encoding, version)?;
        Ok(group)
    }

    pub(super) fn dictionary(&self, parent: &Group, name: &str) -> Result<Group> {
        self.group(parent, name, "dict", "0.1.0")
    }

    pub(super) fn texts(&self, group: &Group, name: &str, values: &[String]) -> Result<()> {
        let write = || {
            let values: Vec<VarLenUnicode> =
                values.iter().map(|value| unicode(value)).collect::<hdf5_metno::Result<_>>()?;
            let dataset = group
                .new_dataset::<VarLenUnicode>()
                .set_create_plist(&native::timeless()?)
                .shape(values.len())
                .create(name)?;
            if !values.is_empty() {
                dataset.write_raw(&values)?;
            }
            Ok(dataset)
        };
        let dataset: Dataset = write().map_err(|error| self.fault(error))?;
        self.mark(&dataset, "string-array", "0.2.0")
    }

    /// Writes numbers that are given as bytes of `datatype`.
    pub(super) fn numbers(
        &self,
        group: &Group,
        name: &str,
        datatype: &Datatype,
        shape: &[usize],
        bytes: &[u8],
    ) -> Result<()> {
        let dataset =
            native::write_bytes(group, name, datatype, shape, bytes).map_err(|error| self.fault(error))?;
        self.mark(&dataset, "array", "0.2.0")
    }

    pub(super) fn scalar<T: hdf5_metno::types::H5Type>(
        &self,
        group: &Group,
        name: &str,
        value: &T,
        encoding: &str,
    ) -> Result<()> {
        let write = || {
            let dataset = group.new_dataset::<T>().set_create_plist(&native::timeless()?).create(name)?;
            dataset.write_scalar(value)?;
            Ok(dataset)
        };
        let dataset: Dataset = write().map_err(|error| self.fault(error))?;
        self.mark(&dataset, encoding, "0.2.0")
    }

    /// Writes the chosen rows of a dataset of numbers or strings, of any age, its type unchanged; `false` where it is neither.
    pub(super) fn copy_rows(
        &self,
        source: &Source,
        dataset: &Dataset,
        (group, name): (&Group, &str),
        rows: &[usize],
    ) -> Result<bool> {
        let shown = dataset.name();
        let fault = source.library_fault(&shown);
        let element = Element::of(dataset.dtype().map_err(&fault)?).map_err(&fault)?;
        let shape = dataset.shape();
        let Some((&length, rest)) = shape.split_first() else { return Ok(false) };
        if rows.iter().any(|&row| row >= length) {
            return Err(source.fault(&shown, format!("it has {length} rows, fewer than the index")));
        }
        if matches!(element.class, Class::Text { .. }) {
            let names = values::read(source, dataset)?.into_names();
            self.texts(group, name, &chosen(&names, 1, rows))?;
        } else if element.is_number() {
            let bytes = native::read_bytes(dataset, &element.datatype).map_err(&fault)?;
            let width = rest.iter().product::<usize>() * element.size;
            let shape: Vec<usize> = std::iter::once(rows.len()).chain(rest.iter().copied()).collect();
            self.numbers(group, name, &element.datatype, &shape, &chosen(&bytes, width, rows))?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Copies a dataset of numbers or strings, of any age, to `name` in `group`, its type unchanged.
    pub(super) fn copy_array(
        &self,
        source: &Source,
        dataset: &Dataset,
        group: &Group,
        name: &str,
    ) -> Result<()> {
        let shown = dataset.name();
        let fault = source.library_fault(&shown);
        if attribute::encoding(dataset).is_some() {
            return dataset.copy_to(group, name).map_err(|error| self.fault(error));
        }
        let element = Element::of(dataset.dtype().map_err(&fault)?).map_err(&fault)?;
        if !element.is_number() {
            let names = values::read(source, dataset)?.into_names();
            return self.texts(group, name, &names);
        }
        if dataset.ndim() == 0 {
            let bytes = native::read_bytes(dataset, &element.datatype).map_err(&fault)?;
            return self.numbers(group, name, &element.datatype, &[1], &bytes);
        }
        let copy = || {
            dataset.copy_to(group, name)?;
            let copy = group.dataset(name)?;
            // What anndata 0.7 put on columns and categories.
            for old in ["categories", "ordered"] {
                if copy.attr(old).is_ok() {
                    copy.delete_attr(old)?;
                }
            }
            Ok(copy)
        };
        let copy: Dataset = copy().map_err(|error| self.fault(error))?;
        self.mark(&copy, "array", "0.2.0")
    }

    /// Writes the field `field` of a table of a compound type as an array of its own: all rows, or the chosen ones.
    pub(super) fn copy_field(
        &self,
        source: &Source,
        table: &Dataset,
        (field, datatype): (&str, &Datatype),
        (group, name): (&Group, &str),
        rows: Option<&[usize]>,
    ) -> Result<()> {
        let shown = format!("{}[{field}]", table.name());
        let fault = source.library_fault(&shown);
        let element = Element::of(datatype.clone()).map_err(&fault)?;
        if matches!(element.class, Class::Text { .. }) {
            let names = values::read_field(source, table, field, datatype)?.into_names();
            return match rows {
                Some(rows) => self.texts(group, name, &chosen(&names, 1, rows)),
                None => self.texts(group, name, &names),
            };
        }
        let (base, width) = native::array_parts(datatype).map_err(&fault)?;
        if !Element::of(base.clone()).map_err(&fault)?.is_number() {
            return Err(source.fault(&shown, format!("its values are of type {}", element.name())));
        }
        let memory_type = native::field_type(field, datatype).map_err(&fault)?;
        let mut bytes = native::read_bytes(table, &memory_type).map_err(&fault)?;
        let mut shape = vec![rows.map_or(table.size(), <[usize]>::len)];
        if let Some(rows) = rows {
            bytes = chosen(&bytes, memory_type.size(), rows);
        }
        shape.extend(width);
        self.numbers(group, name, &base, &shape, &bytes)
    }
}

/// The values of the chosen rows, each of which has `width` values.
fn chosen<T: Clone>(values: &[T], width: usize, rows: &[usize]) -> Vec<T> {
    rows.iter().flat_map(|row| values[row * width..(row + 1) * width].iter().cloned()).collect()
}

fn unicode(text: &str) -> hdf5_metno::Result<VarLenUnicode> {
    VarLenUnicode::from_str(text).map_err(|_| "a text holds a NUL character".into())
}
