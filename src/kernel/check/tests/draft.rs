//! Small .h5ad files written on the spot, for what no fixture holds.

use std::path::Path;

use hdf5_metno::types::VarLenUnicode;
use hdf5_metno::{File, Group, H5Type};

use super::super::{Report, Request, check};
use crate::h5ad::H5ad;

/// A file of sound defaults: cells c0, c1, …, human-like gene names, no column.
pub struct Draft {
    pub cells: Vec<String>,
    pub genes: Vec<String>,
    /// Row-major, cells x genes; absent: the file has no X.
    pub x: Option<Vec<f32>>,
    pub layers: Vec<(&'static str, Vec<f32>)>,
    pub obs: Vec<(&'static str, Vec<String>)>,
    pub var: Vec<(&'static str, Vec<String>)>,
    pub obsm: Vec<&'static str>,
}

/// An open file with the directory that it is in.
pub struct Drafted {
    pub data: H5ad,
    _directory: tempfile::TempDir,
}

impl Draft {
    /// Counts that repeat 0, 1, 2, 3, 4.
    pub fn new(cells: usize, genes: usize) -> Draft {
        Draft {
            cells: (0..cells).map(|cell| format!("c{cell}")).collect(),
            genes: (0..genes).map(|gene| format!("HOX{gene}A")).collect(),
            x: Some((0..cells * genes).map(|value| (value % 5) as f32).collect()),
            layers: Vec::new(),
            obs: Vec::new(),
            var: Vec::new(),
            obsm: Vec::new(),
        }
    }

    /// Sets one value of X.
    pub fn set(mut self, cell: usize, gene: usize, value: f32) -> Draft {
        let genes = self.genes.len();
        self.x.as_mut().unwrap()[cell * genes + gene] = value;
        self
    }

    /// Adds a column of obs that repeats `classes`.
    pub fn obs(mut self, column: &'static str, classes: &[&str]) -> Draft {
        let values = (0..self.cells.len()).map(|cell| classes[cell % classes.len()].to_owned()).collect();
        self.obs.push((column, values));
        self
    }

    pub fn open(&self) -> Drafted {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("draft.h5ad");
        self.write(&path).unwrap();
        Drafted { data: H5ad::open(&path).unwrap(), _directory: directory }
    }

    /// Checks a file whose X is 2 x 3 in CSR with these pointers and indices, and values of 1.
    pub fn check_csr(indptr: &[i32], indices: &[i32]) -> crate::error::Result<Report> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("draft.h5ad");
        let draft = Draft { x: None, ..Draft::new(2, 3) };
        draft.write(&path).and_then(|()| write_csr(&path, indptr, indices)).unwrap();
        check(&H5ad::open(&path)?, &Request::default())
    }

    fn write(&self, path: &Path) -> hdf5_metno::Result<()> {
        let file = File::create(path)?;
        encode(&file, "anndata", "0.1.0")?;
        if let Some(x) = &self.x {
            self.write_dense(&file, "X", x)?;
        }
        write_frame(&file, "obs", &self.cells, &self.obs)?;
        write_frame(&file, "var", &self.genes, &self.var)?;
        let layers = dictionary(&file, "layers")?;
        for (name, values) in &self.layers {
            self.write_dense(&layers, name, values)?;
        }
        let obsm = dictionary(&file, "obsm")?;
        for name in &self.obsm {
            write_array(&obsm, name, &vec![0.0f64; self.cells.len() * 2], (self.cells.len(), 2))?;
        }
        Ok(())
    }

    fn write_dense(&self, group: &Group, name: &str, values: &[f32]) -> hdf5_metno::Result<()> {
        write_array(group, name, values, (self.cells.len(), self.genes.len()))
    }
}

fn write_csr(path: &Path, indptr: &[i32], indices: &[i32]) -> hdf5_metno::Result<()> {
    let file = File::append(path)?;
    let group = file.create_group("X")?;
    encode(&group, "csr_matrix", "0.1.0")?;
    group.new_attr::<i64>().shape(2).create("shape")?.write_raw(&[2, 3])?;
    group.new_dataset::<i32>().shape(indptr.len()).create("indptr")?.write_raw(indptr)?;
    group.new_dataset::<i32>().shape(indices.len()).create("indices")?.write_raw(indices)?;
    group.new_dataset::<f32>().shape(indices.len()).create("data")?.write_raw(&vec![1.0f32; indices.len()])
}

fn write_array<T: H5Type>(
    group: &Group,
    name: &str,
    values: &[T],
    shape: (usize, usize),
) -> hdf5_metno::Result<()> {
    let dataset = group.new_dataset::<T>().shape(shape).create(name)?;
    if !values.is_empty() {
        dataset.write_raw(values)?;
    }
    for (key, text) in [("encoding-type", "array"), ("encoding-version", "0.2.0")] {
        dataset.new_attr::<VarLenUnicode>().create(key)?.write_scalar(&text_of(text))?;
    }
    Ok(())
}

fn write_frame(
    file: &Group,
    name: &str,
    index: &[String],
    columns: &[(&str, Vec<String>)],
) -> hdf5_metno::Result<()> {
    let group = file.create_group(name)?;
    encode(&group, "dataframe", "0.2.0")?;
    group.new_attr::<VarLenUnicode>().create("_index")?.write_scalar(&text_of("_index"))?;
    let order: Vec<VarLenUnicode> = columns.iter().map(|column| text_of(column.0)).collect();
    group.new_attr::<VarLenUnicode>().shape(order.len()).create("column-order")?.write_raw(&order)?;
    write_texts(&group, "_index", index)?;
    columns.iter().try_for_each(|(name, values)| write_texts(&group, name, values))
}

fn write_texts(group: &Group, name: &str, texts: &[String]) -> hdf5_metno::Result<()> {
    let values: Vec<VarLenUnicode> = texts.iter().map(|text| text_of(text)).collect();
    let dataset = group.new_dataset::<VarLenUnicode>().shape(values.len()).create(name)?;
    if !values.is_empty() {
        dataset.write_raw(&values)?;
    }
    for (key, text) in [("encoding-type", "string-array"), ("encoding-version", "0.2.0")] {
        dataset.new_attr::<VarLenUnicode>().create(key)?.write_scalar(&text_of(text))?;
    }
    Ok(())
}

fn dictionary(file: &Group, name: &str) -> hdf5_metno::Result<Group> {
    let group = file.create_group(name)?;
    encode(&group, "dict", "0.1.0")?;
    Ok(group)
}

fn encode(group: &Group, kind: &str, version: &str) -> hdf5_metno::Result<()> {
    group.new_attr::<VarLenUnicode>().create("encoding-type")?.write_scalar(&text_of(kind))?;
    group.new_attr::<VarLenUnicode>().create("encoding-version")?.write_scalar(&text_of(version))
}

fn text_of(text: &str) -> VarLenUnicode {
    text.parse().unwrap()
}
