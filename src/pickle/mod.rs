//! Pickled tables of vectors, read without running any code: dictionaries from texts to lists or NumPy arrays of numbers.
//!
//! A pickle is a program for a machine with a stack. This one knows the instructions that such a table is made of
//! (protocols 2 to 5), and the few functions that NumPy's arrays, numbers and types are made with; it stops at any other,
//! which its error names. The protocol: the comments of Python's `pickletools`.

mod machine;
mod numpy;
mod source;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::BufRead;
use std::rc::Rc;

use machine::Machine;

/// A list that is still being filled when others hold it already.
type Shared = Rc<RefCell<Vec<f32>>>;

/// Vectors by name.
#[derive(Debug, Default, PartialEq)]
pub struct Vectors {
    /// Those that were wanted.
    pub found: HashMap<String, Vec<f32>>,
    /// Names in the file, wanted or not.
    pub names: usize,
    /// Numbers in each vector.
    pub dims: usize,
}

/// Why a pickle was not read.
#[derive(Debug, PartialEq)]
pub enum Fault {
    /// What is wrong, in one sentence.
    Refused(String),
    /// A vector that was not wanted stands for a second name as well: it can be read again with all of them kept.
    Forgotten,
}

impl Fault {
    fn of(text: impl ToString) -> Fault {
        Fault::Refused(text.to_string())
    }
}

/// Reads the vectors of the names that `wanted` picks. The others take no memory, unless `keep_all`.
///
/// # Errors
/// It is no such table, or holds an instruction or a function that no such table needs; vectors differ in length.
pub fn read(
    source: &mut dyn BufRead,
    wanted: &dyn Fn(&str) -> bool,
    keep_all: bool,
) -> Result<Vectors, Fault> {
    let mut machine = Machine::new(source, keep_all);
    let mut table =
        Table { wanted, keep_all, kept: HashMap::new(), aside: Vec::new(), names: 0, first: None };
    machine.run(&mut table)?;
    let dims = table.first.map_or(0, |(_, dims)| dims);
    let found = table.kept.into_iter().map(|(name, vector)| (name, vector.borrow().clone())).collect();
    Ok(Vectors { found, names: table.names, dims })
}

/// The table as it comes in.
struct Table<'a> {
    wanted: &'a dyn Fn(&str) -> bool,
    keep_all: bool,
    kept: HashMap<String, Shared>,
    /// Kept for further names only.
    aside: Vec<Shared>,
    names: usize,
    /// The first name and the length of its vector.
    first: Option<(String, usize)>,
}

impl Table<'_> {
    fn add(&mut self, name: &str, vector: Shared) -> Result<(), Fault> {
        let length = vector.borrow().len();
        let (first, dims) = self.first.get_or_insert_with(|| (name.to_owned(), length));
        if length == 0 {
            return Err(Fault::of(format_args!("the vector of {name} is empty")));
        }
        if length != *dims {
            return Err(Fault::of(format_args!(
                "its vectors differ in length: {first} has {dims} numbers, {name} has {length}"
            )));
        }
        self.names += 1;
        if (self.wanted)(name) {
            self.kept.insert(name.to_owned(), vector);
        } else if self.keep_all {
            self.aside.push(vector);
        }
        Ok(())
    }
}
