//! Tables of gene vectors, and which of a file's genes they know.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::h5ad::{Frame, H5ad};
use crate::pickle::{self, Fault, Vectors};

/// How a method finds its genes in a file.
#[derive(Debug, Deserialize)]
pub struct GeneRules {
    /// Columns of var that may hold their names.
    columns: Vec<String>,
    /// The least share of the file's genes that has to be known.
    minimum_matched: Option<f64>,
}

/// A table of vectors and the names under which a file's genes stand in it.
pub struct GeneTable {
    pub vectors: Vectors,
    /// The name of each gene of the file, by the source of names of which most are known.
    names: Vec<Option<String>>,
    /// That source, in words.
    pub source: String,
    pub matched: usize,
}

impl GeneTable {
    /// Reads the vectors of the genes of `data` from a pickle, or a table of text: a gene's name and its numbers in each line.
    ///
    /// # Errors
    /// Environment: the table is missing. Input: it is no such table, or knows too few of the genes.
    pub fn read(path: &Path, data: &H5ad, rules: &GeneRules, method: &str) -> Result<GeneTable> {
        let sources = sources(data.var(), &rules.columns)?;
        let wanted: HashSet<&str> =
            sources.iter().flat_map(|(_, names)| names.iter().flatten().map(String::as_str)).collect();
        let vectors = read(path, &wanted, method)?;
        let known = |names: &[Option<String>]| {
            names.iter().flatten().filter(|&name| vectors.found.contains_key(name)).count()
        };
        // The first of those that are as good.
        let mut best = (0, String::new(), Vec::new());
        for (source, names) in sources {
            let matched = known(&names);
            if best.2.is_empty() || matched > best.0 {
                best = (matched, source, names);
            }
        }
        let (matched, source, names) = best;
        let genes = data.n_vars();
        let least = rules.minimum_matched.unwrap_or(0.0) * genes as f64;
        if matched == 0 || (matched as f64) < least {
            let example: Vec<&str> = data.var().index().iter().take(3).map(String::as_str).collect();
            return Err(Error::input(format_args!(
                "{matched} of the {genes} genes of {} are in {}, too few to embed its cells",
                data.path().display(),
                path.display()
            ))
            .cause(format_args!(
                "the file has {}; the table has {} symbols",
                example.join(", "),
                vectors.names
            ))
            .hint(format_args!("`scfoundry check --method {method}` tells what the genes are called")));
        }
        Ok(GeneTable { vectors, names, source, matched })
    }

    /// The vector of each gene of the file.
    pub fn columns(&self) -> Vec<Option<&[f32]>> {
        let vector = |name: &Option<String>| self.vectors.found.get(name.as_ref()?).map(Vec::as_slice);
        self.names.iter().map(vector).collect()
    }
}

/// Where names of genes stand: the index of var, then its customary columns.
fn sources(var: &Frame, columns: &[String]) -> Result<Vec<(String, Vec<Option<String>>)>> {
    let mut sources = vec![("var_names".to_owned(), var.index().iter().cloned().map(Some).collect())];
    for column in columns.iter().filter(|column| var.column_names().contains(column)) {
        let labels = var.column(column)?.labels();
        let name = |code: &Option<u32>| code.map(|code| labels.classes[code as usize].clone());
        sources.push((format!("var['{column}']"), labels.codes.iter().map(name).collect()));
    }
    Ok(sources)
}

fn read(path: &Path, wanted: &HashSet<&str>, method: &str) -> Result<Vectors> {
    let open = || {
        let file = File::open(path).map_err(|error| {
            Error::environment(format_args!(
                "the gene vectors of {method} cannot be read: {}",
                path.display()
            ))
            .cause(error)
            .hint(format_args!("`scfoundry download --method {method}` brings them"))
        })?;
        Ok(BufReader::with_capacity(1 << 20, file))
    };
    let damaged = |cause: &str| {
        Error::input(format_args!("{} is no table of gene vectors", path.display())).cause(cause)
    };
    let mut source = open()?;
    let start = source.fill_buf().map_err(Error::io("read", path))?;
    if start.starts_with(b"PK") {
        return Err(damaged("it is an archive").hint("unpack it, and name the file that is in it"));
    }
    if start.first() != Some(&0x80) {
        return text(source, path, wanted).map_err(|cause| {
            damaged(&cause)
                .hint("a pickled dictionary, or lines with a gene's symbol and its numbers, can be read")
        });
    }
    let wanted = |name: &str| wanted.contains(name);
    let found = match pickle::read(&mut source, &wanted, false) {
        Err(Fault::Forgotten) => pickle::read(&mut open()?, &wanted, true),
        found => found,
    };
    let vectors = found.map_err(|fault| match fault {
        Fault::Refused(cause) => damaged(&cause),
        Fault::Forgotten => damaged("it recalls what it has not remembered"),
    })?;
    finite(vectors).map_err(|cause| damaged(&cause))
}

/// Lines of a symbol and its numbers, between tabs in a .tsv and commas elsewhere; a first line without numbers is a title.
fn text(source: impl BufRead, path: &Path, wanted: &HashSet<&str>) -> std::result::Result<Vectors, String> {
    let tabs = path.extension().is_some_and(|ending| ending == "tsv");
    let mut lines = csv::ReaderBuilder::new()
        .has_headers(false)
        .delimiter(if tabs { b'\t' } else { b',' })
        .from_reader(source);
    let mut vectors = Vectors { found: HashMap::new(), names: 0, dims: 0 };
    for (line, record) in lines.records().enumerate() {
        let record = record.map_err(|error| error.to_string())?;
        let numbers: std::result::Result<Vec<f32>, _> = record.iter().skip(1).map(str::parse).collect();
        let Ok(numbers) = numbers else {
            if line == 0 {
                continue;
            }
            return Err(format!("line {} has something else than numbers", line + 1));
        };
        let name = record.get(0).unwrap_or_default();
        if numbers.is_empty() {
            return Err(format!("line {} has no numbers", line + 1));
        }
        vectors.dims = numbers.len();
        vectors.names += 1;
        if wanted.contains(name) {
            vectors.found.insert(name.to_owned(), numbers);
        }
    }
    if vectors.names == 0 { Err("it is empty".to_owned()) } else { finite(vectors) }
}

fn finite(vectors: Vectors) -> std::result::Result<Vectors, String> {
    let broken = vectors.found.iter().find(|(_, vector)| vector.iter().any(|value| !value.is_finite()));
    match broken {
        Some((name, _)) => Err(format!("the vector of {name} has values that are not finite")),
        None => Ok(vectors),
    }
}
