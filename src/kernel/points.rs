//! Cells in an embedding: a dense matrix that kernels read by rows.

/// An embedding, row-major cells x dims, every value finite.
///
/// Values are float32, which is what embeddings are stored in; kernels sum in float64.
#[derive(Debug, Clone, PartialEq)]
pub struct Points {
    values: Vec<f32>,
    dims: usize,
}

impl Points {
    /// Takes row-major values of `dims` columns; a rest that fills no row is cut off.
    pub fn new(mut values: Vec<f32>, dims: usize) -> Points {
        let whole = values.len().checked_div(dims).unwrap_or(0) * dims;
        values.truncate(whole);
        Points { values, dims }
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.values.len().checked_div(self.dims).unwrap_or(0)
    }

    /// Whether there is no cell.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Number of dimensions.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// The coordinates of one cell.
    pub fn row(&self, cell: usize) -> &[f32] {
        &self.values[cell * self.dims..(cell + 1) * self.dims]
    }

    /// All coordinates, row-major.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The named cells, in the order named.
    pub fn select(&self, cells: &[usize]) -> Points {
        let values = cells.iter().flat_map(|&cell| self.row(cell)).copied().collect();
        Points { values, dims: self.dims }
    }
}

/// A partition of cells into named classes: labels, batches or clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classes {
    /// The name of each class, sorted; every one has a cell.
    pub names: Vec<String>,
    /// The class of each cell.
    pub codes: Vec<u32>,
}

impl Classes {
    /// Groups cells by equal names.
    pub fn of<T: AsRef<str>>(labels: &[T]) -> Classes {
        let mut names: Vec<String> = labels.iter().map(|label| label.as_ref().to_owned()).collect();
        names.sort_unstable();
        names.dedup();
        let code = |label: &T| names.partition_point(|name| name.as_str() < label.as_ref()) as u32;
        let codes = labels.iter().map(code).collect();
        Classes { names, codes }
    }

    /// Number of classes.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is no class, so no cell.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Cells in each class.
    pub fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.len()];
        for &code in &self.codes {
            sizes[code as usize] += 1;
        }
        sizes
    }

    /// The cells of each class, ascending.
    pub fn members(&self) -> Vec<Vec<usize>> {
        let mut members: Vec<Vec<usize>> =
            self.sizes().iter().map(|&size| Vec::with_capacity(size)).collect();
        for (cell, &code) in self.codes.iter().enumerate() {
            members[code as usize].push(cell);
        }
        members
    }

    /// The partition of the named cells, in the order named; classes without a cell are gone.
    pub fn select(&self, cells: &[usize]) -> Classes {
        let labels: Vec<&str> =
            cells.iter().map(|&cell| self.names[self.codes[cell] as usize].as_str()).collect();
        Classes::of(&labels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_sorted_and_never_empty() {
        let classes = Classes::of(&["b", "a", "b", "c"]);
        assert_eq!(classes.names, ["a", "b", "c"]);
        assert_eq!(classes.codes, [1, 0, 1, 2]);
        assert_eq!(classes.members(), [vec![1], vec![0, 2], vec![3]]);
        assert_eq!(
            classes.select(&[3, 0]),
            Classes { names: vec!["b".into(), "c".into()], codes: vec![1, 0] }
        );
    }

    #[test]
    fn rows() {
        let points = Points::new(vec![1.0, 2.0, 3.0, 4.0], 2);
        assert_eq!((points.len(), points.row(1)), (2, &[3.0, 4.0][..]));
        assert_eq!(points.select(&[1, 1, 0]).values(), [3.0, 4.0, 3.0, 4.0, 1.0, 2.0]);
        assert!(Points::new(Vec::new(), 0).is_empty());
    }
}
