//! One-dimensional data of a frame: strings, booleans, integers, floats.

use hdf5_metno::{Container, Dataset, Group};

use super::array::check_filters;
use super::element::{Class, Element};
use super::native;
use super::source::Source;
use crate::error::Result;

/// Deflate never does better than 1032 to 1.
const MOST_COMPRESSION: u64 = 1100;
/// Bytes that a dataset may promise without storing anything.
const MOST_UNSTORED: u64 = 1 << 28;

/// A list of values of one kind.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Values {
    Text(Vec<String>),
    Bool(Vec<bool>),
    Integer(Vec<i64>),
    Float(Vec<f64>),
}

impl Values {
    pub(super) fn len(&self) -> usize {
        match self {
            Values::Text(values) => values.len(),
            Values::Bool(values) => values.len(),
            Values::Integer(values) => values.len(),
            Values::Float(values) => values.len(),
        }
    }

    /// The values as names: 1.0 is "1", a boolean is "True" or "False".
    pub(super) fn into_names(self) -> Vec<String> {
        match self {
            Values::Text(values) => values,
            Values::Bool(values) => values.into_iter().map(|value| boolean_name(value).to_owned()).collect(),
            Values::Integer(values) => values.iter().map(i64::to_string).collect(),
            Values::Float(values) => values.iter().map(f64::to_string).collect(),
        }
    }

    /// The values as codes, negative ones missing; `None` if they are not integers.
    pub(super) fn into_codes(self) -> Option<Vec<Option<u32>>> {
        match self {
            Values::Integer(values) => {
                Some(values.into_iter().map(|value| u32::try_from(value).ok()).collect())
            }
            Values::Bool(values) => Some(values.into_iter().map(|value| Some(u32::from(value))).collect()),
            _ => None,
        }
    }
}

/// A boolean as pandas writes it.
pub(super) fn boolean_name(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// Opens the dataset `name` of `group` after a check that it can be read and is not absurdly large.
pub(super) fn open(source: &Source, group: &Group, name: &str) -> Result<Dataset> {
    let shown = format!("{}/{name}", group.name());
    let fault = source.library_fault(&shown);
    let dataset = group.dataset(name).map_err(&fault)?;
    check(source, &dataset)?;
    Ok(dataset)
}

/// Checks the filters and the size of `dataset`.
pub(super) fn check(source: &Source, dataset: &Dataset) -> Result<()> {
    let name = dataset.name();
    let fault = source.library_fault(&name);
    let datatype = dataset.dtype().map_err(&fault)?;
    let creation = native::creation(dataset, &datatype, false).map_err(&fault)?;
    check_filters(source, &name, &creation.filters)?;
    let promised = (dataset.size() as u64).saturating_mul(datatype.size() as u64);
    let stored = dataset.storage_size();
    if promised > stored.saturating_mul(MOST_COMPRESSION).saturating_add(MOST_UNSTORED) {
        let cause = format!("it promises {} values but stores {stored} bytes", dataset.size());
        return Err(source.fault(&name, cause));
    }
    Ok(())
}

/// Reads all values of a dataset that holds strings or numbers.
pub(super) fn read(source: &Source, dataset: &Dataset) -> Result<Values> {
    let name = dataset.name();
    let fault = source.library_fault(&name);
    let element = Element::of(dataset.dtype().map_err(&fault)?).map_err(&fault)?;
    let element = element.in_memory().map_err(&fault)?;
    read_as(source, dataset, &name, &element, &element.datatype)
}

/// Reads all values of the field `field` of a dataset of a compound type.
pub(super) fn read_field(
    source: &Source,
    dataset: &Dataset,
    field: &str,
    datatype: &hdf5_metno::Datatype,
) -> Result<Values> {
    let name = format!("{}[{field}]", dataset.name());
    let fault = source.library_fault(&name);
    let element = Element::of(datatype.clone()).and_then(|element| element.in_memory()).map_err(&fault)?;
    let memory_type = native::field_type(field, &element.datatype).map_err(&fault)?;
    read_as(source, dataset, &name, &element, &memory_type)
}

fn read_as(
    source: &Source,
    container: &Container,
    name: &str,
    element: &Element,
    memory_type: &hdf5_metno::Datatype,
) -> Result<Values> {
    let fault = source.library_fault(name);
    if let Class::Text { variable } = element.class {
        return Ok(Values::Text(native::read_texts(container, memory_type, variable).map_err(fault)?));
    }
    if !element.is_number() {
        return Err(source.fault(name, format!("its values are of type {}", element.name())));
    }
    let bytes = native::read_bytes(container, memory_type).map_err(fault)?;
    let count = container.size();
    Ok(match element.class {
        Class::Boolean => Values::Bool(bytes.iter().map(|&byte| byte != 0).collect()),
        Class::Float => Values::Float(floats(element, &bytes, count)),
        _ => {
            let mut values = vec![0; count];
            element.decode_i64(&bytes, &mut values);
            let beyond = element.class == Class::Unsigned && element.size == 8 && values.contains(&i64::MAX);
            if beyond { Values::Float(floats(element, &bytes, count)) } else { Values::Integer(values) }
        }
    })
}

fn floats(element: &Element, bytes: &[u8], count: usize) -> Vec<f64> {
    let mut values = vec![0.0; count];
    element.decode_f64(bytes, &mut values);
    values
}
