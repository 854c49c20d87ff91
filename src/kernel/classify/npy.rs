//! Arrays in NumPy's file format, version 1.0, which `numpy.load` reads.
//!
//! The format: <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>.

const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";

/// What the length of the header, with all in front of it, is a multiple of.
const ALIGNMENT: usize = 64;

/// An array in C order.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    pub shape: Vec<usize>,
    pub values: Values,
}

/// The values of an array.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Unsigned(Vec<u32>),
}

impl Values {
    fn code(&self) -> &'static str {
        match self {
            Values::Float32(_) => "<f4",
            Values::Float64(_) => "<f8",
            Values::Unsigned(_) => "<u4",
        }
    }
}

/// The bytes of a file that holds the array.
pub fn encode(array: &Array) -> Vec<u8> {
    let lengths: Vec<String> = array.shape.iter().map(|length| format!("{length},")).collect();
    let code = array.values.code();
    let header = format!("{{'descr': '{code}', 'fortran_order': False, 'shape': ({}), }}", lengths.join(" "));
    let used = MAGIC.len() + 2 + header.len() + 1;
    let padding = used.next_multiple_of(ALIGNMENT) - used;
    let length = (header.len() + padding + 1) as u16;
    let mut bytes = MAGIC.to_vec();
    bytes.extend(length.to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(std::iter::repeat_n(b' ', padding));
    bytes.push(b'\n');
    match &array.values {
        Values::Float32(values) => bytes.extend(values.iter().flat_map(|value| value.to_le_bytes())),
        Values::Float64(values) => bytes.extend(values.iter().flat_map(|value| value.to_le_bytes())),
        Values::Unsigned(values) => bytes.extend(values.iter().flat_map(|value| value.to_le_bytes())),
    }
    bytes
}

/// The array of a file; an error says what is wrong with it.
pub fn decode(bytes: &[u8]) -> Result<Array, String> {
    let rest = bytes.strip_prefix(MAGIC).ok_or("it is no NumPy array of version 1.0")?;
    let (length, rest) = rest.split_first_chunk::<2>().ok_or("it is cut short")?;
    let length = usize::from(u16::from_le_bytes(*length));
    let (header, data) = rest.split_at_checked(length).ok_or("it is cut short")?;
    let header = std::str::from_utf8(header).map_err(|_| "its header is no text")?;
    if field(header, "fortran_order").is_some_and(|value| value.starts_with("True")) {
        return Err("it is in Fortran order".to_owned());
    }
    let shape = shape(header).ok_or("its header has no shape")?;
    let code = field(header, "descr").and_then(|value| value.split('\'').nth(1)).unwrap_or_default();
    let count = shape.iter().try_fold(1usize, |product, &length| product.checked_mul(length));
    let count = count.ok_or("its shape is too large")?;
    let values = match code {
        "<f4" => Values::Float32(numbers(data, count, f32::from_le_bytes)?),
        "<f8" => Values::Float64(numbers(data, count, f64::from_le_bytes)?),
        "<u4" => Values::Unsigned(numbers(data, count, u32::from_le_bytes)?),
        other => return Err(format!("its type is {other:?}, not one of <f4 <f8 <u4")),
    };
    Ok(Array { shape, values })
}

/// What stands behind a key of the header.
fn field<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = header.split_once(&format!("'{key}':"))?;
    Some(rest.trim_start())
}

fn shape(header: &str) -> Option<Vec<usize>> {
    let (lengths, _) = field(header, "shape")?.strip_prefix('(')?.split_once(')')?;
    let lengths = lengths.split(',').map(str::trim).filter(|length| !length.is_empty());
    lengths.map(|length| length.parse().ok()).collect()
}

fn numbers<T, const SIZE: usize>(
    data: &[u8],
    count: usize,
    read: impl Fn([u8; SIZE]) -> T,
) -> Result<Vec<T>, String> {
    let (chunks, rest) = data.as_chunks::<SIZE>();
    if chunks.len() != count || !rest.is_empty() {
        return Err(format!("it holds {} bytes, its shape needs {count} times {SIZE}", data.len()));
    }
    Ok(chunks.iter().map(|chunk| read(*chunk)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_come_back_as_they_went() {
        let arrays = [
            Array {
                shape: vec![2, 3],
                values: Values::Float64(vec![1.0, -0.5, f64::MIN_POSITIVE, 1e300, 0.1, 3.0]),
            },
            Array { shape: vec![3], values: Values::Float32(vec![0.1, -2.0, 3.5]) },
            Array { shape: vec![0, 4], values: Values::Float32(Vec::new()) },
            Array { shape: vec![2], values: Values::Unsigned(vec![7, u32::MAX]) },
        ];
        for array in arrays {
            let bytes = encode(&array);
            let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
            assert_eq!((header % ALIGNMENT, bytes[header - 1]), (0, b'\n'));
            assert_eq!(decode(&bytes), Ok(array));
        }
    }

    #[test]
    fn damage_is_named() {
        let bytes = encode(&Array { shape: vec![2], values: Values::Float32(vec![1.0, 2.0]) });
        assert!(decode(&bytes[..bytes.len() - 1]).unwrap_err().contains("its shape needs 2 times 4"));
        assert!(decode(&bytes[..20]).unwrap_err().contains("cut short"));
        assert!(decode(b"PK").unwrap_err().contains("no NumPy array"));
        let text = String::from_utf8_lossy(&bytes[10..]).replace("<f4", "<c8");
        let other = [&bytes[..10], text.as_bytes()].concat();
        assert!(decode(&other).unwrap_err().contains("<c8"));
    }
}
