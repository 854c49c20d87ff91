//! Columns of an annotation frame, and labels made of them.

/// The values of one column.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    Categorical { categories: Vec<String>, codes: Vec<Option<u32>>, ordered: bool },
    Text(Vec<Option<String>>),
    Bool(Vec<Option<bool>>),
    Integer(Vec<Option<i64>>),
    Float(Vec<f64>),
}

/// A column as classes: only classes that occur; a missing value has no code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    pub classes: Vec<String>,
    pub codes: Vec<Option<u32>>,
}

impl Column {
    /// The column as classes.
    pub fn labels(&self) -> Labels {
        todo!()
    }

    /// What the column holds, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Column::Categorical { .. } => "categorical",
            Column::Text(_) => "text",
            Column::Bool(_) => "boolean",
            Column::Integer(_) => "integer",
            Column::Float(_) => "float",
        }
    }
}
