//! The bytes of a pickle, a bounded number at once.

use std::io::{BufRead, Read};

use super::Fault;

/// Longest text or run of bytes: a vector of two million numbers.
const LONGEST: u64 = 16 << 20;

pub(super) struct Source<'a>(pub &'a mut dyn BufRead);

impl Source<'_> {
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => Fault::of("it is cut short"),
            _ => Fault::of(error),
        })?;
        Ok(bytes)
    }

    pub fn byte(&mut self) -> Result<u8, Fault> {
        Ok(self.array::<1>()?[0])
    }

    pub fn two(&mut self) -> Result<u64, Fault> {
        self.array().map(|bytes| u16::from_le_bytes(bytes).into())
    }

    pub fn four(&mut self) -> Result<u64, Fault> {
        self.array().map(|bytes| u32::from_le_bytes(bytes).into())
    }

    pub fn eight(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn bytes(&mut self, length: u64) -> Result<Vec<u8>, Fault> {
        if length > LONGEST {
            return Err(Fault::of(format_args!("it has a value of {length} bytes, more than {LONGEST}")));
        }
        let mut bytes = Vec::new();
        self.0.take(length).read_to_end(&mut bytes).map_err(Fault::of)?;
        if bytes.len() as u64 == length { Ok(bytes) } else { Err(Fault::of("it is cut short")) }
    }

    pub fn text(&mut self, length: u64) -> Result<String, Fault> {
        String::from_utf8(self.bytes(length)?).map_err(|_| Fault::of("it has a text that is not UTF-8"))
    }

    /// A line without its end.
    pub fn line(&mut self) -> Result<String, Fault> {
        let mut bytes = Vec::new();
        self.0.take(1024).read_until(b'\n', &mut bytes).map_err(Fault::of)?;
        match bytes.pop() {
            Some(b'\n') => String::from_utf8(bytes).map_err(|_| Fault::of("it has a name that is not UTF-8")),
            _ => Err(Fault::of("it is cut short")),
        }
    }
}
