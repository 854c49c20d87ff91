//! The machine that a pickle is a program for, as far as tables of vectors need it.

use std::cell::RefCell;
use std::io::BufRead;
use std::rc::{Rc, Weak};

use super::numpy::{self, Dtype, Function};
use super::source::Source;
use super::{Fault, Shared, Table};

/// Most values on the stack, and most values that are remembered: two for each of millions of names.
const DEEPEST: usize = 1 << 22;

/// A value on the stack.
#[derive(Debug, Clone)]
pub(super) enum Item {
    Mark,
    None,
    /// Truth values count as numbers, as in Python.
    Integer(i64),
    Float(f64),
    Text(Rc<str>),
    Bytes(Rc<[u8]>),
    Tuple(Rc<[Item]>),
    /// A list of numbers, or a NumPy array.
    Vector(Shared),
    /// The one dictionary.
    Table,
    Function(Function),
    Dtype(Rc<RefCell<Dtype>>),
}

/// What is remembered: vectors only as long as somebody holds them.
enum Memory {
    Kept(Item),
    Lent(Weak<RefCell<Vec<f32>>>),
}

pub(super) struct Machine<'a> {
    source: Source<'a>,
    stack: Vec<Item>,
    memory: Vec<Option<Memory>>,
    has_table: bool,
    keep_all: bool,
}

impl<'a> Machine<'a> {
    pub fn new(source: &'a mut dyn BufRead, keep_all: bool) -> Machine<'a> {
        Machine { source: Source(source), stack: Vec::new(), memory: Vec::new(), has_table: false, keep_all }
    }

    /// Runs the program to its end; what it puts into its dictionary goes into `table`.
    pub fn run(&mut self, table: &mut Table<'_>) -> Result<(), Fault> {
        match self.source.array::<2>()? {
            [0x80, 2..=5] => {}
            [0x80, protocol] => {
                return Err(Fault::of(format_args!("its protocol is {protocol}, not 2 to 5")));
            }
            _ => return Err(Fault::of("it does not begin as a pickle of protocol 2 or later does")),
        }
        loop {
            if self.stack.len() > DEEPEST || self.memory.len() > DEEPEST {
                return Err(Fault::of("it has more values at once than any table of genes"));
            }
            match self.source.byte()? {
                b'.' => break,
                // The length of a frame, by which nothing is decided here.
                0x95 => drop(self.source.eight()?),
                b's' => self.set_items(1, table)?,
                b'u' => self.set_items(2, table)?,
                code => self.step(code)?,
            }
        }
        match self.stack.as_slice() {
            [Item::Table] => Ok(()),
            _ => Err(Fault::of("it is no dictionary")),
        }
    }

    /// One instruction that only makes or moves values.
    fn step(&mut self, code: u8) -> Result<(), Fault> {
        let item = match code {
            b'(' => Item::Mark,
            b'N' => Item::None,
            0x88 => Item::Integer(1),
            0x89 => Item::Integer(0),
            b'J' => Item::Integer(i32::from_le_bytes(self.source.array()?).into()),
            b'K' => Item::Integer(self.source.byte()?.into()),
            b'M' => Item::Integer(self.source.two()? as i64),
            0x8a => self.long()?,
            b'G' => Item::Float(f64::from_be_bytes(self.source.array()?)),
            0x8c | b'U' => {
                let length = self.source.byte()?;
                self.text(length.into())?
            }
            b'X' | b'T' => {
                let length = self.source.four()?;
                self.text(length)?
            }
            0x8d => {
                let length = self.source.eight()?;
                self.text(length)?
            }
            b'C' | b'B' | 0x8e | 0x96 => {
                let length = match code {
                    b'C' => self.source.byte()?.into(),
                    b'B' => self.source.four()?,
                    _ => self.source.eight()?,
                };
                Item::Bytes(self.source.bytes(length)?.into())
            }
            b']' => Item::Vector(Shared::default()),
            b'}' if self.has_table => return Err(Fault::of("it holds a dictionary within another")),
            b'}' => {
                self.has_table = true;
                Item::Table
            }
            b')' => Item::Tuple(Rc::new([])),
            0x85..=0x87 => {
                let items = self.last((code - 0x84).into())?;
                Item::Tuple(items.into())
            }
            b't' => Item::Tuple(self.above_mark()?.into()),
            b'h' => self.recall(1)?,
            b'j' => self.recall(4)?,
            b'c' => {
                let (module, name) = (self.source.line()?, self.source.line()?);
                Item::Function(Function::named(&module, &name)?)
            }
            0x93 => match self.last(2)?.as_slice() {
                [Item::Text(module), Item::Text(name)] => Item::Function(Function::named(module, name)?),
                _ => return Err(Fault::of("it names a function by something else than texts")),
            },
            b'R' => match self.last(2)?.as_slice() {
                [Item::Function(function), Item::Tuple(given)] => numpy::call(*function, given)?,
                _ => return Err(Fault::of("it calls something that is no function")),
            },
            b'a' | b'e' | b'b' | b'q' | b'r' | 0x94 => return self.change(code),
            _ => return Err(unknown(code)),
        };
        self.stack.push(item);
        Ok(())
    }

    /// One instruction that changes the last value, or remembers it.
    fn change(&mut self, code: u8) -> Result<(), Fault> {
        match code {
            b'q' => {
                let place = self.source.byte()?;
                self.remember(place.into())
            }
            b'r' => {
                let place = self.source.four()?;
                self.remember(place as usize)
            }
            0x94 => self.remember(self.memory.len()),
            b'b' => {
                let state = self.last(1)?;
                match (self.stack.last(), state.as_slice()) {
                    (Some(built), [Item::Tuple(state)]) => numpy::build(built, state),
                    _ => Err(Fault::of("it builds something other than an array")),
                }
            }
            _ => {
                let items = if code == b'a' { self.last(1)? } else { self.above_mark()? };
                let Some(Item::Vector(vector)) = self.stack.last() else {
                    return Err(Fault::of("it appends to something that is no list"));
                };
                let mut vector = vector.borrow_mut();
                for item in &items {
                    vector.push(item.number()? as f32);
                }
                Ok(())
            }
        }
    }

    /// The pairs on the stack go into the dictionary below them: one, or all above the mark.
    fn set_items(&mut self, kind: u8, table: &mut Table<'_>) -> Result<(), Fault> {
        let items = if kind == 1 { self.last(2)? } else { self.above_mark()? };
        if !matches!(self.stack.last(), Some(Item::Table)) {
            return Err(Fault::of("it sets items of something that is no dictionary"));
        }
        for pair in items.chunks(2) {
            match pair {
                [Item::Text(name), Item::Vector(vector)] => table.add(name, Rc::clone(vector))?,
                [Item::Text(name), _] => {
                    return Err(Fault::of(format_args!("what it has for {name} is no vector of numbers")));
                }
                _ => return Err(Fault::of("its dictionary has a key that is no text")),
            }
        }
        Ok(())
    }

    fn text(&mut self, length: u64) -> Result<Item, Fault> {
        Ok(Item::Text(self.source.text(length)?.into()))
    }

    /// A whole number of up to eight bytes.
    fn long(&mut self) -> Result<Item, Fault> {
        let length = self.source.byte()?;
        let bytes = self.source.bytes(length.into())?;
        if bytes.len() > 8 {
            return Err(Fault::of("it has a whole number of more than 64 bits"));
        }
        let sign = if bytes.last().is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 };
        let mut whole = [sign; 8];
        whole[..bytes.len()].copy_from_slice(&bytes);
        Ok(Item::Integer(i64::from_le_bytes(whole)))
    }

    fn remember(&mut self, place: usize) -> Result<(), Fault> {
        if place > DEEPEST {
            return Err(Fault::of("it has more values at once than any table of genes"));
        }
        let item = self.stack.last().ok_or_else(empty)?;
        let memory = match item {
            Item::Vector(vector) if !self.keep_all => Memory::Lent(Rc::downgrade(vector)),
            item => Memory::Kept(item.clone()),
        };
        if self.memory.len() <= place {
            self.memory.resize_with(place + 1, || None);
        }
        self.memory[place] = Some(memory);
        Ok(())
    }

    fn recall(&mut self, bytes: u8) -> Result<Item, Fault> {
        let place = if bytes == 1 { self.source.byte()?.into() } else { self.source.four()? };
        match self.memory.get(place as usize).and_then(Option::as_ref) {
            Some(Memory::Kept(item)) => Ok(item.clone()),
            Some(Memory::Lent(vector)) => vector.upgrade().map(Item::Vector).ok_or(Fault::Forgotten),
            None => Err(Fault::of("it recalls what it has not remembered")),
        }
    }

    /// Takes the last values.
    fn last(&mut self, count: usize) -> Result<Vec<Item>, Fault> {
        let start = self.stack.len().checked_sub(count).ok_or_else(empty)?;
        Ok(self.stack.split_off(start))
    }

    /// Takes the values above the last mark, and the mark.
    fn above_mark(&mut self) -> Result<Vec<Item>, Fault> {
        let mark = self.stack.iter().rposition(|item| matches!(item, Item::Mark)).ok_or_else(empty)?;
        let items = self.stack.split_off(mark + 1);
        self.stack.pop();
        Ok(items)
    }
}

impl Item {
    pub fn number(&self) -> Result<f64, Fault> {
        match self {
            Item::Integer(value) => Ok(*value as f64),
            Item::Float(value) => Ok(*value),
            Item::Vector(one) if one.borrow().len() == 1 => Ok(one.borrow()[0].into()),
            _ => Err(Fault::of("it has a list of something else than numbers")),
        }
    }
}

fn empty() -> Fault {
    Fault::of("it takes more values from its stack than are there")
}

/// An instruction that no table of vectors needs, by the name that Python's `pickletools` gives it.
fn unknown(code: u8) -> Fault {
    let name = match code {
        b'0' => "POP",
        b'1' => "POP_MARK",
        b'2' => "DUP",
        b'F' | b'I' | b'L' | b'S' | b'V' | b'g' | b'p' | b'l' | b'd' => "an instruction of protocol 0",
        b'P' | b'Q' => "PERSID",
        b'i' => "INST",
        b'o' => "OBJ",
        0x81 => "NEWOBJ",
        0x82..=0x84 => "EXT",
        0x8b => "LONG4",
        0x8f..=0x91 => "a set",
        0x92 => "NEWOBJ_EX",
        0x97 | 0x98 => "a buffer outside the file",
        _ => "no instruction of pickle",
    };
    Fault::of(format_args!("it holds opcode 0x{code:02x} ({name}), which no table of vectors needs"))
}
