//! The functions with which NumPy's arrays, numbers and types are pickled.

use std::cell::RefCell;
use std::rc::Rc;

use super::machine::Item;
use super::{Fault, Shared};

/// A function that a pickle may call, or a class that it may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Array,
    Reconstruct,
    Dtype,
    Scalar,
    FromBuffer,
    Encode,
    Bytearray,
}

impl Function {
    pub fn named(module: &str, name: &str) -> Result<Function, Fault> {
        // The homes of these have changed with the versions of NumPy.
        let core = module.strip_prefix("numpy.core.").or_else(|| module.strip_prefix("numpy._core."));
        match (core.unwrap_or(module), name) {
            ("numpy", "ndarray") => Ok(Function::Array),
            ("numpy", "dtype") => Ok(Function::Dtype),
            ("multiarray", "_reconstruct") if core.is_some() => Ok(Function::Reconstruct),
            ("multiarray", "scalar") if core.is_some() => Ok(Function::Scalar),
            ("numeric", "_frombuffer") if core.is_some() => Ok(Function::FromBuffer),
            ("_codecs", "encode") => Ok(Function::Encode),
            ("builtins", "bytearray") => Ok(Function::Bytearray),
            _ => Err(Fault::of(format_args!("it names {module}.{name}, which no table of vectors needs"))),
        }
    }
}

/// The type of an array's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dtype {
    kind: Kind,
    big_endian: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Single,
    Double,
}

impl Dtype {
    fn named(text: &str) -> Result<Dtype, Fault> {
        let big_endian = text.starts_with('>');
        let kind = match text.trim_start_matches(['<', '>', '=']) {
            "f4" => Kind::Single,
            "f8" => Kind::Double,
            _ => return Err(Fault::of(format_args!("it has an array of {text}, not of float32 or float64"))),
        };
        Ok(Dtype { kind, big_endian })
    }

    fn numbers(self, bytes: &[u8]) -> Result<Vec<f32>, Fault> {
        let rounded = |value: f64| value as f32;
        let (singles, doubles) = (bytes.as_chunks::<4>(), bytes.as_chunks::<8>());
        let (numbers, rest): (Vec<f32>, &[u8]) = match (self.kind, self.big_endian) {
            (Kind::Single, false) => (singles.0.iter().map(|b| f32::from_le_bytes(*b)).collect(), singles.1),
            (Kind::Single, true) => (singles.0.iter().map(|b| f32::from_be_bytes(*b)).collect(), singles.1),
            (Kind::Double, false) => {
                (doubles.0.iter().map(|b| rounded(f64::from_le_bytes(*b))).collect(), doubles.1)
            }
            (Kind::Double, true) => {
                (doubles.0.iter().map(|b| rounded(f64::from_be_bytes(*b))).collect(), doubles.1)
            }
        };
        if rest.is_empty() { Ok(numbers) } else { Err(Fault::of("it has an array that is cut short")) }
    }
}

/// What a function makes of its arguments.
pub(super) fn call(function: Function, given: &[Item]) -> Result<Item, Fault> {
    let made = match (function, given) {
        // Filled when it is built.
        (Function::Reconstruct, [Item::Function(Function::Array), ..]) => Item::Vector(Shared::default()),
        (Function::Dtype, [Item::Text(name), ..]) => Item::Dtype(Rc::new(RefCell::new(Dtype::named(name)?))),
        (Function::Scalar, [Item::Dtype(dtype), Item::Bytes(bytes)]) => {
            match dtype.borrow().numbers(bytes)?.as_slice() {
                [number] => Item::Float((*number).into()),
                _ => return Err(Fault::of("it has a number of several numbers")),
            }
        }
        (Function::FromBuffer, [Item::Bytes(bytes), Item::Dtype(dtype), shape, _]) => {
            vector(dtype.borrow().numbers(bytes)?, shape)?
        }
        // How protocol 2 writes bytes: as a text of which each character is one.
        (Function::Encode, [Item::Text(text), Item::Text(encoding)]) if &**encoding == "latin1" => {
            let byte = |letter| u8::try_from(letter).map_err(|_| Fault::of("it has bytes above 255"));
            Item::Bytes(
                text.chars().map(|letter| byte(u32::from(letter))).collect::<Result<Vec<u8>, _>>()?.into(),
            )
        }
        (Function::Bytearray, [Item::Bytes(bytes)]) => Item::Bytes(Rc::clone(bytes)),
        _ => return Err(Fault::of(format_args!("it calls {function:?} in a way that NumPy does not"))),
    };
    Ok(made)
}

/// Gives an array its numbers, or a type its order of bytes.
pub(super) fn build(built: &Item, state: &[Item]) -> Result<(), Fault> {
    match (built, state) {
        (Item::Vector(array), [_, shape, Item::Dtype(dtype), _, Item::Bytes(bytes)]) => {
            let numbers = dtype.borrow().numbers(bytes)?;
            check_shape(numbers.len(), shape)?;
            *array.borrow_mut() = numbers;
            Ok(())
        }
        (Item::Dtype(dtype), [_, Item::Text(order), ..]) => {
            dtype.borrow_mut().big_endian = &**order == ">";
            Ok(())
        }
        _ => Err(Fault::of("it has an array of something else than float32 or float64")),
    }
}

fn vector(numbers: Vec<f32>, shape: &Item) -> Result<Item, Fault> {
    check_shape(numbers.len(), shape)?;
    Ok(Item::Vector(Rc::new(RefCell::new(numbers))))
}

/// One dimension, or several of which all others are 1.
fn check_shape(numbers: usize, shape: &Item) -> Result<(), Fault> {
    let lengths: Option<Vec<i64>> = match shape {
        Item::Tuple(lengths) => lengths.iter().map(|length| length.number().ok().map(|n| n as i64)).collect(),
        _ => None,
    };
    let fits = lengths.is_some_and(|lengths| {
        let long: Vec<&i64> = lengths.iter().filter(|length| **length != 1).collect();
        matches!(long.as_slice(), [length] if **length == numbers as i64) || (long.is_empty() && numbers == 1)
    });
    if fits {
        Ok(())
    } else {
        Err(Fault::of("it has an array that is no vector, or whose numbers do not fill it"))
    }
}
