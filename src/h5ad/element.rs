//! Types of array elements, and how their bytes become numbers.

use hdf5_metno::{Datatype, Result, sync::sync};
use hdf5_metno_sys::h5t::{
    H5T_class_t, H5T_order_t, H5T_sign_t, H5Tget_class, H5Tget_fields, H5Tget_member_value, H5Tget_nmembers,
    H5Tget_offset, H5Tget_order, H5Tget_precision, H5Tget_sign, H5Tget_super,
};

use super::native;

/// What the elements of a dataset or an attribute are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Signed,
    Unsigned,
    Float,
    /// An enumeration of 0 and 1, which is how h5py stores booleans.
    Boolean,
    Text {
        variable: bool,
    },
    Reference,
    Compound,
    Other,
}

/// The type of the elements of a dataset or an attribute.
#[derive(Debug, Clone)]
pub(super) struct Element {
    pub class: Class,
    /// Bytes of one element in the file.
    pub size: usize,
    pub big_endian: bool,
    /// Whether the bits lie as numpy has them; if not, the library must convert.
    plain: bool,
    /// The type in the file.
    pub datatype: Datatype,
}

impl Element {
    pub(super) fn of(datatype: Datatype) -> Result<Element> {
        let id = datatype.id();
        // SAFETY: queries of a live type.
        let class = sync(|| unsafe { H5Tget_class(id) });
        let element = |class, plain| Element {
            class,
            size: datatype.size(),
            // SAFETY: as above.
            big_endian: sync(|| unsafe { H5Tget_order(id) }) == H5T_order_t::H5T_ORDER_BE,
            plain,
            datatype: datatype.clone(),
        };
        Ok(match class {
            H5T_class_t::H5T_INTEGER => element(integer_class(&datatype), is_whole_integer(&datatype)),
            H5T_class_t::H5T_FLOAT => element(Class::Float, is_ieee(&datatype)),
            H5T_class_t::H5T_ENUM => {
                // SAFETY: the base type of an enumeration is a new identifier of ours.
                let base: Datatype = unsafe { hdf5_metno::from_id(sync(|| H5Tget_super(id)))? };
                let class = if is_boolean(&datatype) { Class::Boolean } else { integer_class(&base) };
                element(class, is_whole_integer(&base))
            }
            H5T_class_t::H5T_STRING => {
                element(Class::Text { variable: native::is_variable_text(&datatype) }, false)
            }
            H5T_class_t::H5T_REFERENCE => element(Class::Reference, false),
            H5T_class_t::H5T_COMPOUND => element(Class::Compound, false),
            _ => element(Class::Other, false),
        })
    }

    /// Whether the elements are numbers (booleans are).
    pub(super) fn is_number(&self) -> bool {
        matches!(self.class, Class::Signed | Class::Unsigned | Class::Float | Class::Boolean)
    }

    pub(super) fn is_integer(&self) -> bool {
        matches!(self.class, Class::Signed | Class::Unsigned)
    }

    /// Whether the file's bytes can be decoded here; the library converts other numbers to `f64`.
    pub(super) fn is_plain(&self) -> bool {
        self.plain && matches!(self.size, 1 | 2 | 4 | 8)
    }

    /// The element as it arrives in memory when the library reads it: itself, or `f64` if only the library knows it.
    pub(super) fn in_memory(&self) -> Result<Element> {
        if self.is_plain() || !self.is_number() {
            Ok(self.clone())
        } else {
            Element::of(native::native_double()?)
        }
    }

    /// The numpy name of the type: `float32`, `int64`, `bool`, `string`, …
    pub(super) fn name(&self) -> String {
        let bits = self.size * 8;
        match self.class {
            Class::Signed => format!("int{bits}"),
            Class::Unsigned => format!("uint{bits}"),
            Class::Float => format!("float{bits}"),
            Class::Boolean => "bool".into(),
            Class::Text { .. } => "string".into(),
            Class::Reference => "reference".into(),
            Class::Compound => "compound".into(),
            Class::Other => "an unusual type".into(),
        }
    }

    /// Decodes as many elements as `out` has; `bytes` holds as many.
    pub(super) fn decode_f64(&self, bytes: &[u8], out: &mut [f64]) {
        let big = self.big_endian;
        match (self.class, self.size) {
            (Class::Float, 2) => decode(bytes, out, big, |b| f16_to_f64(u16::from_le_bytes(b))),
            (Class::Float, 4) => decode(bytes, out, big, |b| f64::from(f32::from_le_bytes(b))),
            (Class::Float, _) => decode(bytes, out, big, f64::from_le_bytes),
            (Class::Signed, 1) => decode(bytes, out, big, |b| f64::from(i8::from_le_bytes(b))),
            (Class::Signed, 2) => decode(bytes, out, big, |b| f64::from(i16::from_le_bytes(b))),
            (Class::Signed, 4) => decode(bytes, out, big, |b| f64::from(i32::from_le_bytes(b))),
            (Class::Signed, _) => decode(bytes, out, big, |b| i64::from_le_bytes(b) as f64),
            (_, 1) => decode(bytes, out, big, |[b]: [u8; 1]| f64::from(b)),
            (_, 2) => decode(bytes, out, big, |b| f64::from(u16::from_le_bytes(b))),
            (_, 4) => decode(bytes, out, big, |b| f64::from(u32::from_le_bytes(b))),
            (_, _) => decode(bytes, out, big, |b| u64::from_le_bytes(b) as f64),
        }
    }

    /// Decodes integers; an unsigned one above the range becomes `i64::MAX`, a fraction is cut off.
    pub(super) fn decode_i64(&self, bytes: &[u8], out: &mut [i64]) {
        let big = self.big_endian;
        match (self.class, self.size) {
            (Class::Float, 2) => decode(bytes, out, big, |b| f16_to_f64(u16::from_le_bytes(b)) as i64),
            (Class::Float, 4) => decode(bytes, out, big, |b| f32::from_le_bytes(b) as i64),
            (Class::Float, _) => decode(bytes, out, big, |b| f64::from_le_bytes(b) as i64),
            (Class::Signed, 1) => decode(bytes, out, big, |b| i64::from(i8::from_le_bytes(b))),
            (Class::Signed, 2) => decode(bytes, out, big, |b| i64::from(i16::from_le_bytes(b))),
            (Class::Signed, 4) => decode(bytes, out, big, |b| i64::from(i32::from_le_bytes(b))),
            (Class::Signed, _) => decode(bytes, out, big, i64::from_le_bytes),
            (_, 1) => decode(bytes, out, big, |[b]: [u8; 1]| i64::from(b)),
            (_, 2) => decode(bytes, out, big, |b| i64::from(u16::from_le_bytes(b))),
            (_, 4) => decode(bytes, out, big, |b| i64::from(u32::from_le_bytes(b))),
            (_, _) => {
                decode(bytes, out, big, |b| i64::try_from(u64::from_le_bytes(b)).unwrap_or(i64::MAX));
            }
        }
    }

    /// Decodes indices; one that is negative or too large becomes `u32::MAX`, which no matrix has.
    pub(super) fn decode_index(&self, bytes: &[u8], out: &mut [u32]) {
        let big = self.big_endian;
        match (self.class, self.size) {
            (Class::Signed, 4) => decode(bytes, out, big, |b| narrow(i64::from(i32::from_le_bytes(b)))),
            (Class::Signed, 8) => decode(bytes, out, big, |b| narrow(i64::from_le_bytes(b))),
            _ => {
                let mut wide = vec![0; out.len()];
                self.decode_i64(bytes, &mut wide);
                for (out, &value) in out.iter_mut().zip(&wide) {
                    *out = narrow(value);
                }
            }
        }
    }
}

fn narrow(value: i64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Turns elements of `SIZE` bytes into values; `convert` is given them in little-endian order.
fn decode<const SIZE: usize, T>(bytes: &[u8], out: &mut [T], big: bool, convert: impl Fn([u8; SIZE]) -> T) {
    let (elements, _) = bytes.as_chunks::<SIZE>();
    for (out, &element) in out.iter_mut().zip(elements) {
        let mut element = element;
        if big {
            element.reverse();
        }
        *out = convert(element);
    }
}

/// IEEE 754 half precision, of which every value is exact in `f64`.
fn f16_to_f64(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f64::from(bits & 0x3ff);
    let magnitude = match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2_f64.powi(exponent - 25),
    };
    sign * magnitude
}

fn integer_class(datatype: &Datatype) -> Class {
    // SAFETY: a query of a live type.
    match sync(|| unsafe { H5Tget_sign(datatype.id()) }) {
        H5T_sign_t::H5T_SGN_NONE => Class::Unsigned,
        _ => Class::Signed,
    }
}

fn is_byte_ordered(datatype: &Datatype) -> bool {
    // SAFETY: a query of a live type.
    let order = sync(|| unsafe { H5Tget_order(datatype.id()) });
    matches!(order, H5T_order_t::H5T_ORDER_LE | H5T_order_t::H5T_ORDER_BE)
}

/// Whether an integer uses all its bits.
fn is_whole_integer(datatype: &Datatype) -> bool {
    let id = datatype.id();
    // SAFETY: queries of a live type.
    let (precision, offset) = sync(|| unsafe { (H5Tget_precision(id), H5Tget_offset(id)) });
    is_byte_ordered(datatype) && precision == datatype.size() * 8 && offset == 0
}

/// Whether a float is one of IEEE 754's half, single and double precision.
fn is_ieee(datatype: &Datatype) -> bool {
    let (mut sign, mut exponent, mut exponent_size, mut fraction, mut fraction_size) = (0, 0, 0, 0, 0);
    // SAFETY: a query of a live type that writes five numbers.
    let status = sync(|| unsafe {
        H5Tget_fields(
            datatype.id(),
            &mut sign,
            &mut exponent,
            &mut exponent_size,
            &mut fraction,
            &mut fraction_size,
        )
    });
    let layout = (sign, exponent, exponent_size, fraction, fraction_size);
    let expected = match datatype.size() {
        2 => (15, 10, 5, 0, 10),
        4 => (31, 23, 8, 0, 23),
        8 => (63, 52, 11, 0, 52),
        _ => return false,
    };
    status >= 0 && layout == expected && is_byte_ordered(datatype)
}

/// Whether an enumeration has exactly the values 0 and 1 in one byte.
fn is_boolean(datatype: &Datatype) -> bool {
    if datatype.size() != 1 {
        return false;
    }
    let id = datatype.id();
    let value = |member| {
        let mut value = [0_u8; 8];
        // SAFETY: the value has the size of the type, one byte.
        let status = sync(|| unsafe { H5Tget_member_value(id, member, value.as_mut_ptr().cast()) });
        (status >= 0).then_some(value[0])
    };
    // SAFETY: a query of a live type.
    let members = sync(|| unsafe { H5Tget_nmembers(id) });
    members == 2 && value(0) == Some(0) && value(1) == Some(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_exact() {
        let cases =
            [(0x0000, 0.0), (0x3c00, 1.0), (0xc000, -2.0), (0x7bff, 65504.0), (0x0001, 2_f64.powi(-24))];
        for (bits, value) in cases {
            assert_eq!(f16_to_f64(bits), value, "{bits:#x}");
        }
        assert_eq!(f16_to_f64(0x3555), 0.333251953125);
        assert_eq!(f16_to_f64(0xfc00), f64::NEG_INFINITY);
        assert!(f16_to_f64(0x7e00).is_nan());
    }

    #[test]
    fn bytes_are_swapped() {
        let mut out = [0; 2];
        decode(&[0, 1, 1, 0], &mut out, true, u16::from_le_bytes);
        assert_eq!(out, [1, 256]);
    }
}
