//! Attributes of groups and datasets; one that is missing or of another type reads as none.

use hdf5_metno::{Attribute, Location};

use super::element::{Class, Element};
use super::native;

/// The strings of the attribute `name`.
pub(super) fn texts(location: &Location, name: &str) -> Option<Vec<String>> {
    let attribute = location.attr(name).ok()?;
    // numpy stores an empty list of strings as an empty list of floats.
    if attribute.size() == 0 {
        return Some(Vec::new());
    }
    let element = element(&attribute)?;
    match element.class {
        Class::Text { variable } => native::read_texts(&attribute, &element.datatype, variable).ok(),
        _ => None,
    }
}

/// The string of the attribute `name`.
pub(super) fn text(location: &Location, name: &str) -> Option<String> {
    texts(location, name)?.into_iter().next()
}

/// The integers of the attribute `name`; a boolean is 0 or 1.
pub(super) fn integers(location: &Location, name: &str) -> Option<Vec<i64>> {
    let attribute = location.attr(name).ok()?;
    let element = element(&attribute)?;
    if !element.is_number() {
        return None;
    }
    let element = element.in_memory().ok()?;
    let bytes = native::read_bytes(&attribute, &element.datatype).ok()?;
    let mut values = vec![0; attribute.size()];
    element.decode_i64(&bytes, &mut values);
    Some(values)
}

/// Whether the attribute `name` is there and true.
pub(super) fn is_true(location: &Location, name: &str) -> bool {
    integers(location, name).is_some_and(|values| values.first().is_some_and(|&value| value != 0))
}

/// The name anndata gave to the encoding of an object: `csr_matrix`, `dataframe`, `categorical`, …
pub(super) fn encoding(location: &Location) -> Option<String> {
    text(location, "encoding-type")
}

fn element(attribute: &Attribute) -> Option<Element> {
    Element::of(attribute.dtype().ok()?).ok()
}
