//! A matrix on disk, streamed in blocks of rows.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{channel, sync_channel};
use std::thread;

use hdf5_metno::{Group, LocationType};

use super::array::Array;
use super::attribute;
use super::block::Block;
use super::source::Source;
use super::sparse::Sparse;
use super::transpose::Transposed;
use super::{H5ad, native, values};
use crate::error::{Error, Result};
use crate::matrix::{RowBlock, RowBlocks};

/// Values of a block (of a dense matrix: zeros included), unless a single row has more. While a block is visited the
/// next one is read, so two are in memory: 50 MB, and as much again of dense values.
const VALUES_PER_BLOCK: usize = 1 << 19;
/// A block of a dense matrix grows up to this to take whole rows of chunks, which would else be decoded repeatedly.
const MOST_DENSE_VALUES: usize = 1 << 24;

/// How a matrix is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Dense,
    Csr,
    Csc,
}

/// A matrix of an open file. Nothing but the pointers of a sparse one is in memory.
pub struct Matrix<'file> {
    name: String,
    source: Arc<Source>,
    shape: (usize, usize),
    dtype: String,
    storage: Storage,
    file: PhantomData<&'file H5ad>,
}

enum Storage {
    Dense(Array),
    Rows(Sparse),
    Columns(Transposed),
}

impl Matrix<'_> {
    /// How the matrix is stored.
    pub fn encoding(&self) -> Encoding {
        match self.storage {
            Storage::Dense(_) => Encoding::Dense,
            Storage::Rows(_) => Encoding::Csr,
            Storage::Columns(_) => Encoding::Csc,
        }
    }

    /// The numpy name of the type of its values, such as `float32` or `int64`.
    pub fn dtype(&self) -> &str {
        &self.dtype
    }

    /// How many values are stored: all for a dense matrix.
    pub fn stored(&self) -> u64 {
        match &self.storage {
            Storage::Dense(_) => self.shape.0 as u64 * self.shape.1 as u64,
            Storage::Rows(sparse) => sparse.stored() as u64,
            Storage::Columns(transposed) => transposed.by_column().stored() as u64,
        }
    }

    /// The array of its values.
    pub(super) fn array(&self) -> &Array {
        match &self.storage {
            Storage::Dense(array) => array,
            Storage::Rows(sparse) => sparse.data(),
            Storage::Columns(transposed) => transposed.by_column().data(),
        }
    }

    /// Opens the matrix `name` and checks its shape and pointers.
    pub(super) fn open<'file>(source: &Arc<Source>, name: &str) -> Result<Matrix<'file>> {
        let (shape, storage) = match source.hdf5.loc_type_by_name(name) {
            Ok(LocationType::Dataset) => {
                let array = Array::open(source, values::open(source, &source.hdf5, name)?)?;
                ((array.rows, array.columns), Storage::Dense(array))
            }
            Ok(LocationType::Group) => {
                let group = source.hdf5.group(name).map_err(source.library_fault(name))?;
                let (format, shape) = sparse_header(source, &group, name)?;
                let storage = match format {
                    Encoding::Csc => {
                        let sparse = Sparse::open(source, &group, name, "column", (shape.1, shape.0))?;
                        Storage::Columns(Transposed::new(sparse))
                    }
                    _ => Storage::Rows(Sparse::open(source, &group, name, "row", shape)?),
                };
                (shape, storage)
            }
            Ok(_) => return Err(source.fault(name, "it is neither a group nor a dataset")),
            Err(error) => return Err(source.fault(name, native::reason(&error))),
        };
        if shape.1 >= u32::MAX as usize {
            return Err(source.fault(name, format!("it has {} columns", shape.1)));
        }
        let dtype = match &storage {
            Storage::Dense(array) => array.dtype().to_owned(),
            Storage::Rows(sparse) => sparse.dtype().to_owned(),
            Storage::Columns(transposed) => transposed.by_column().dtype().to_owned(),
        };
        Ok(Matrix {
            name: name.to_owned(),
            source: Arc::clone(source),
            shape,
            dtype,
            storage,
            file: PhantomData,
        })
    }

    /// Checks the shape against the frames.
    pub(super) fn expect_shape(self, rows: (usize, &str), columns: (usize, &str)) -> Result<Self> {
        if self.shape == (rows.0, columns.0) {
            return Ok(self);
        }
        let (have_rows, have_columns) = self.shape;
        let cause = format!(
            "it has shape {have_rows} x {have_columns}, but {} has {} rows and {} has {}",
            rows.1, rows.0, columns.1, columns.0
        );
        Err(self.source.fault(&self.name, cause))
    }

    /// Rows of the blocks of a dense matrix.
    fn dense_parts(&self, array: &Array) -> Vec<Range<usize>> {
        let (rows, columns) = self.shape;
        let natural = array.natural_rows();
        let fitting = (VALUES_PER_BLOCK / columns.max(1)).max(1);
        let step = if natural.saturating_mul(columns) <= MOST_DENSE_VALUES {
            natural.max(fitting / natural * natural)
        } else {
            fitting
        };
        (0..rows).step_by(step).map(|start| start..rows.min(start.saturating_add(step))).collect()
    }
}

impl RowBlocks for Matrix<'_> {
    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn for_each_block(&self, visit: &mut dyn FnMut(RowBlock<'_>) -> Result<()>) -> Result<()> {
        let columns = self.shape.1;
        match &self.storage {
            Storage::Dense(array) => {
                let decode = |bytes: &[u8], out: &mut [f64]| array.element.decode_f64(bytes, out);
                let mut dense = Vec::new();
                let read = move |rows: Range<usize>, block: Block| {
                    if columns == 0 {
                        let indptr = vec![0; rows.len() + 1];
                        return Ok(Block { first_row: rows.start, indptr, ..Block::default() });
                    }
                    let first = rows.start;
                    array.read(rows, &mut dense, &decode)?;
                    Ok(block.compress(first, columns, &dense))
                };
                read_ahead(self.dense_parts(array), read, visit)
            }
            Storage::Rows(sparse) => {
                let read = |rows: Range<usize>, block: Block| {
                    let first = rows.start;
                    let block = sparse.read(rows, block)?;
                    block.tidy(columns).map_err(|position| sparse.out_of_range(first, position))
                };
                read_ahead(sparse.parts(VALUES_PER_BLOCK), read, visit)
            }
            Storage::Columns(transposed) => {
                transposed.for_each_block(VALUES_PER_BLOCK, &mut |block| visit(block.view()))
            }
        }
    }
}

/// The format and the shape of a sparse matrix, from the attributes of anndata 0.7 and later, or of older ones.
fn sparse_header(source: &Source, group: &Group, name: &str) -> Result<(Encoding, (usize, usize))> {
    let encoding = attribute::encoding(group).or_else(|| attribute::text(group, "h5sparse_format"));
    let format = match encoding.as_deref() {
        Some("csr_matrix" | "csr") => Encoding::Csr,
        Some("csc_matrix" | "csc") => Encoding::Csc,
        Some(other) => return Err(source.fault(name, format!("its encoding \"{other}\" is no matrix's"))),
        None => return Err(source.fault(name, "it is a group without an encoding-type")),
    };
    let shape = attribute::integers(group, "shape").or_else(|| attribute::integers(group, "h5sparse_shape"));
    let shape = shape.ok_or_else(|| source.fault(name, "it has no shape"))?;
    let length = |length: i64| usize::try_from(length).ok();
    match shape[..] {
        [rows, columns] => length(rows).zip(length(columns)),
        _ => None,
    }
    .map(|shape| (format, shape))
    .ok_or_else(|| source.fault(name, format!("its shape is {shape:?}")))
}

/// Reads one block ahead of `visit` on another thread. Blocks go back there for their memory to be used again.
fn read_ahead(
    parts: Vec<Range<usize>>,
    mut read: impl FnMut(Range<usize>, Block) -> Result<Block> + Send,
    visit: &mut dyn FnMut(RowBlock<'_>) -> Result<()>,
) -> Result<()> {
    if parts.len() < 2 {
        return parts.into_iter().try_for_each(|part| visit(read(part, Block::default())?.view()));
    }
    thread::scope(|scope| {
        // No buffer: the reader waits with the next block in its hands.
        let (sender, receiver) = sync_channel(0);
        let (give_back, used) = channel();
        let reader = move || {
            for part in parts {
                let block = read(part, used.try_recv().unwrap_or_default());
                let failed = block.is_err();
                // The other side has gone if `visit` failed.
                if sender.send(block).is_err() || failed {
                    break;
                }
            }
        };
        thread::Builder::new()
            .name("h5ad-reader".into())
            .spawn_scoped(scope, reader)
            .map_err(|error| Error::environment("cannot start a thread").cause(error))?;
        receiver.into_iter().try_for_each(|block| {
            let block = block?;
            visit(block.view())?;
            // The reader may have read its last.
            give_back.send(block).ok();
            Ok(())
        })
    })
}
