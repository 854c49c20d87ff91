//! Columns of an annotation frame, and labels made of them.

use super::values::{Values, boolean_name};

/// The values of one column; a missing value is `None` (of floats: NaN).
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// Codes are indices into `categories`, all within range.
    Categorical {
        categories: Vec<String>,
        codes: Vec<Option<u32>>,
        ordered: bool,
    },
    Text(Vec<Option<String>>),
    Bool(Vec<Option<bool>>),
    Integer(Vec<Option<i64>>),
    Float(Vec<f64>),
}

/// A column as classes: only classes that occur; a missing value has no code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    pub classes: Vec<String>,
    /// One for each row: an index into `classes`.
    pub codes: Vec<Option<u32>>,
}

impl Column {
    /// The column as classes, in the order of the categories, or sorted.
    ///
    /// Numbers become names: `1.0` and `1` are both "1"; booleans are "False" and "True". A category without rows is no
    /// class.
    pub fn labels(&self) -> Labels {
        match self {
            Column::Categorical { categories, codes, .. } => present(categories, codes),
            Column::Text(values) => {
                sorted(values.iter().map(|value| value.as_deref()), Ord::cmp, str::to_owned)
            }
            Column::Bool(values) => {
                sorted(values.iter().copied(), Ord::cmp, |&value| boolean_name(value).to_owned())
            }
            Column::Integer(values) => sorted(values.iter().copied(), Ord::cmp, i64::to_string),
            Column::Float(values) => {
                // A negative zero is the same class as zero.
                let values = values.iter().map(|&value| (!value.is_nan()).then_some(value + 0.0));
                sorted(values, f64::total_cmp, f64::to_string)
            }
        }
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

    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Column::Categorical { codes, .. } => codes.len(),
            Column::Text(values) => values.len(),
            Column::Bool(values) => values.len(),
            Column::Integer(values) => values.len(),
            Column::Float(values) => values.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Values> for Column {
    fn from(values: Values) -> Column {
        match values {
            Values::Text(values) => Column::Text(values.into_iter().map(Some).collect()),
            Values::Bool(values) => Column::Bool(values.into_iter().map(Some).collect()),
            Values::Integer(values) => Column::Integer(values.into_iter().map(Some).collect()),
            Values::Float(values) => Column::Float(values),
        }
    }
}

/// Keeps the categories that occur, in their order.
fn present(categories: &[String], codes: &[Option<u32>]) -> Labels {
    let mut occurs = vec![false; categories.len()];
    for &code in codes.iter().flatten() {
        occurs[code as usize] = true;
    }
    let mut classes = Vec::new();
    let new_codes: Vec<u32> = categories
        .iter()
        .zip(&occurs)
        .map(|(category, &occurs)| {
            let code = classes.len() as u32;
            if occurs {
                classes.push(category.clone());
            }
            code
        })
        .collect();
    let codes = codes.iter().map(|code| code.map(|code| new_codes[code as usize])).collect();
    Labels { classes, codes }
}

/// Makes a class of each different value, in the values' order.
fn sorted<T, V>(
    values: impl Iterator<Item = Option<T>>,
    order: impl Fn(&V, &V) -> std::cmp::Ordering,
    name: impl Fn(&V) -> String,
) -> Labels
where
    T: std::borrow::Borrow<V>,
    V: ?Sized,
{
    let values: Vec<Option<T>> = values.collect();
    let mut distinct: Vec<&V> = values.iter().flatten().map(|value| value.borrow()).collect();
    distinct.sort_unstable_by(|left, right| order(left, right));
    distinct.dedup_by(|left, right| order(left, right).is_eq());
    let code = |value: &T| distinct.binary_search_by(|other| order(other, value.borrow())).ok();
    let codes = values.iter().map(|value| value.as_ref().and_then(code).map(|code| code as u32)).collect();
    Labels { classes: distinct.iter().map(|value| name(value)).collect(), codes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(column: Column) -> (Vec<String>, Vec<Option<u32>>) {
        let Labels { classes, codes } = column.labels();
        (classes, codes)
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn a_category_without_rows_is_no_class() {
        let codes = vec![Some(2), None, Some(0)];
        let column = Column::Categorical { categories: names(&["c", "b", "a"]), codes, ordered: false };
        assert_eq!(labels(column), (names(&["c", "a"]), vec![Some(1), None, Some(0)]));
    }

    #[test]
    fn numbers_are_named_alike() {
        let float = Column::Float(vec![2.0, f64::NAN, 1.0, 10.0, -0.0, 0.0]);
        let codes = vec![Some(2), None, Some(1), Some(3), Some(0), Some(0)];
        assert_eq!(labels(float), (names(&["0", "1", "2", "10"]), codes));
        let integer = Column::Integer(vec![Some(10), Some(2), None]);
        assert_eq!(labels(integer), (names(&["2", "10"]), vec![Some(1), Some(0), None]));
        assert_eq!(labels(Column::Float(vec![0.5])).0, names(&["0.5"]));
    }

    #[test]
    fn booleans_and_texts_are_sorted() {
        let column = Column::Bool(vec![Some(true), None, Some(false)]);
        assert_eq!(labels(column), (names(&["False", "True"]), vec![Some(1), None, Some(0)]));
        let column = Column::Text(vec![Some("b".into()), Some("a".into()), None, Some("b".into())]);
        assert_eq!(labels(column), (names(&["a", "b"]), vec![Some(1), Some(0), None, Some(1)]));
    }
}
