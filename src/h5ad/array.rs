//! A large numeric dataset, read by rows, outside the HDF5 library wherever its layout allows.
//!
//! The library gives the addresses of the chunks; their bytes are then read and decoded on all cores, which the library,
//! one global lock around one thread, cannot do.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use hdf5_metno::dataset::Layout as StorageLayout;
use hdf5_metno::{Dataset, Datatype};
use rayon::prelude::*;

use super::element::Element;
use super::filter::{self, Filter, Pipeline};
use super::native;
use super::source::Source;
use crate::error::{Error, Result};

/// Elements read and decoded at once from a contiguous dataset.
const PIECE: usize = 1 << 18;

/// A dataset of numbers with one or two dimensions; with one, every row has one column.
pub(super) struct Array {
    source: Arc<Source>,
    dataset: Dataset,
    name: String,
    dtype: String,
    /// The type of the bytes given to [`Decode`].
    pub element: Element,
    pub rows: usize,
    pub columns: usize,
    storage: Storage,
    /// The chunk at the end of the last read, where the next read begins.
    last_chunk: Mutex<Option<(u64, Arc<Vec<u8>>)>>,
}

enum Storage {
    Contiguous {
        address: u64,
    },
    Chunked(Chunks),
    /// Only the library can read it.
    Library,
}

struct Chunks {
    rows: usize,
    columns: usize,
    /// Chunks side by side.
    across: u64,
    filters: Vec<Filter>,
    fill: Vec<u8>,
    /// Sorted by key; what is not here has not been written.
    places: Vec<Place>,
}

struct Place {
    /// Number of the chunk in row-major order.
    key: u64,
    address: u64,
    size: usize,
    mask: u32,
}

/// Turns bytes of elements into values.
pub(super) type Decode<'a, T> = &'a (dyn Fn(&[u8], &mut [T]) + Sync);

impl Array {
    /// Looks at the dataset `name` of `source`; the error of a filter that nobody can undo comes here.
    pub(super) fn open(source: &Arc<Source>, dataset: Dataset) -> Result<Array> {
        let name = dataset.name().trim_start_matches('/').to_owned();
        let fault = source.library_fault(&name);
        let shape = dataset.get_shape().map_err(&fault)?;
        let (rows, columns) = match shape[..] {
            [rows] => (rows, 1),
            [rows, columns] => (rows, columns),
            _ => return Err(source.fault(&name, format!("it has {} dimensions", shape.len()))),
        };
        let element = Element::of(dataset.dtype().map_err(&fault)?).map_err(&fault)?;
        if !element.is_number() {
            return Err(
                source.fault(&name, format!("its values are of type {}, not numbers", element.name()))
            );
        }
        let storage = storage(source, &dataset, &name, &element, columns)?;
        let dtype = element.name();
        let element = match storage {
            Storage::Library => element.in_memory().map_err(&fault)?,
            _ => element,
        };
        drop(fault);
        let last_chunk = Mutex::new(None);
        let source = Arc::clone(source);
        Ok(Array { source, dataset, name, dtype, element, rows, columns, storage, last_chunk })
    }

    /// The path of the dataset in the file, without the leading slash.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The numpy name of the type of the values in the file.
    pub(super) fn dtype(&self) -> &str {
        &self.dtype
    }

    /// The type of the values in the file.
    pub(super) fn file_type(&self) -> Result<Datatype> {
        self.dataset.dtype().map_err(self.source.library_fault(&self.name))
    }

    /// Whether its chunks are compressed as gzip does.
    pub(super) fn is_deflated(&self) -> bool {
        matches!(&self.storage, Storage::Chunked(chunks) if chunks.filters.contains(&Filter::Deflate))
    }

    /// Rows that are best read together: those of one row of chunks.
    pub(super) fn natural_rows(&self) -> usize {
        match &self.storage {
            Storage::Chunked(chunks) => chunks.rows,
            _ => 1,
        }
    }

    /// Reads all of it; `decode` turns bytes into values.
    pub(super) fn read_all<T: Copy + Default + Send>(&self, decode: Decode<'_, T>) -> Result<Vec<T>> {
        let mut values = Vec::new();
        self.read(0..self.rows, &mut values, decode)?;
        Ok(values)
    }

    /// Reads `rows`, row-major, in place of what is in `values`; `decode` turns bytes into values.
    pub(super) fn read<T: Copy + Default + Send>(
        &self,
        rows: Range<usize>,
        values: &mut Vec<T>,
        decode: Decode<'_, T>,
    ) -> Result<()> {
        let length = rows.len().checked_mul(self.columns);
        let length =
            length.filter(|length| values.try_reserve_exact(length.saturating_sub(values.len())).is_ok());
        let length = length.ok_or_else(|| {
            self.fault(format_args!("no memory for {} rows of {} values", rows.len(), self.columns))
        })?;
        // What was there need not be cleared: all of it is overwritten.
        values.resize(length, T::default());
        if values.is_empty() {
            return Ok(());
        }
        match &self.storage {
            Storage::Contiguous { address } => self.read_contiguous(*address, rows, values, decode),
            Storage::Chunked(chunks) => self.read_chunks(chunks, rows, values, decode),
            Storage::Library => {
                let bytes = native::read_rows(&self.dataset, &self.element.datatype, rows.start, rows.len())
                    .map_err(self.source.library_fault(&self.name))?;
                decode(&bytes, values);
                Ok(())
            }
        }
    }

    fn fault(&self, cause: impl std::fmt::Display) -> Error {
        self.source.fault(&self.name, cause)
    }

    fn read_contiguous<T: Send>(
        &self,
        address: u64,
        rows: Range<usize>,
        out: &mut [T],
        decode: Decode<'_, T>,
    ) -> Result<()> {
        let size = self.element.size;
        let first = rows.start * self.columns;
        out.par_chunks_mut(PIECE).enumerate().try_for_each(|(piece, out)| {
            let place = address + ((first + piece * PIECE) * size) as u64;
            let bytes = self.source.read_at(&self.name, place, out.len() * size)?;
            decode(&bytes, out);
            Ok(())
        })
    }

    fn read_chunks<T: Send>(
        &self,
        chunks: &Chunks,
        rows: Range<usize>,
        out: &mut [T],
        decode: Decode<'_, T>,
    ) -> Result<()> {
        // One band is what a row of chunks has in common with the rows asked for.
        let mut bands = Vec::new();
        let mut rest = out;
        let mut row = rows.start;
        while row < rows.end {
            let end = rows.end.min((row / chunks.rows + 1) * chunks.rows);
            let (band, after) = rest.split_at_mut((end - row) * self.columns);
            bands.push((row..end, band));
            (rest, row) = (after, end);
        }
        bands.into_par_iter().try_for_each(|(rows, band)| self.read_band(chunks, rows, band, decode))?;
        if chunks.across == 1 && rows.end.is_multiple_of(chunks.rows) {
            *self.last_chunk.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = None;
        }
        Ok(())
    }

    /// Reads rows that lie in one row of chunks.
    fn read_band<T: Send>(
        &self,
        chunks: &Chunks,
        rows: Range<usize>,
        out: &mut [T],
        decode: Decode<'_, T>,
    ) -> Result<()> {
        let size = self.element.size;
        let band = (rows.start / chunks.rows) as u64;
        let inside = rows.start % chunks.rows;
        let keys = band * chunks.across..(band + 1) * chunks.across;
        if chunks.across == 1 {
            let whole = rows.len() == chunks.rows || rows.end == self.rows && inside == 0;
            let bytes = self.chunk(chunks, keys.start, !whole)?;
            let stride = chunks.columns * size;
            if chunks.columns == self.columns {
                decode(&bytes[inside * stride..(inside + rows.len()) * stride], out);
            } else {
                for (row, out) in out.chunks_mut(self.columns).enumerate() {
                    let start = (inside + row) * stride;
                    decode(&bytes[start..start + self.columns * size], out);
                }
            }
            return Ok(());
        }
        let decoded: Vec<Arc<Vec<u8>>> =
            keys.into_par_iter().map(|key| self.chunk(chunks, key, false)).collect::<Result<_>>()?;
        let columns = self.columns;
        out.par_chunks_mut(columns).enumerate().for_each(|(row, out)| {
            for (out, bytes) in out.chunks_mut(chunks.columns).zip(&decoded) {
                let start = (inside + row) * chunks.columns * size;
                decode(&bytes[start..start + out.len() * size], out);
            }
        });
        Ok(())
    }

    /// The decoded bytes of one chunk; `keep` it when the next read will begin with it.
    fn chunk(&self, chunks: &Chunks, key: u64, keep: bool) -> Result<Arc<Vec<u8>>> {
        if keep {
            let last = self.last_chunk.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if let Some((_, bytes)) = last.as_ref().filter(|(last, _)| *last == key) {
                return Ok(Arc::clone(bytes));
            }
        }
        let length = chunks.rows * chunks.columns * self.element.size;
        let bytes = match chunks.places.binary_search_by_key(&key, |place| place.key) {
            Ok(index) => {
                let place = &chunks.places[index];
                let stored = self.source.read_at(&self.name, place.address, place.size)?;
                filter::undo(&chunks.filters, place.mask, stored, self.element.size, length)
                    .map_err(|cause| self.fault(cause))?
            }
            Err(_) => chunks.fill.repeat(length / chunks.fill.len().max(1)),
        };
        let bytes = Arc::new(bytes);
        if keep {
            *self.last_chunk.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) =
                Some((key, Arc::clone(&bytes)));
        }
        Ok(bytes)
    }
}

/// An error if `dataset` has a filter that neither we nor the library can undo.
pub(super) fn check_filters(source: &Source, name: &str, identifiers: &[i32]) -> Result<Pipeline> {
    match filter::pipeline(identifiers) {
        Pipeline::Unknown(identifier) => {
            let known = filter::filter_name(identifier);
            let cause =
                format!("it is compressed with HDF5 filter {identifier} ({known}), which is not built in");
            Err(source.fault(name, cause).hint(
                "rewrite it with gzip: python -c \"import hdf5plugin, anndata; \
                 anndata.read_h5ad('IN.h5ad').write_h5ad('OUT.h5ad', compression='gzip')\"",
            ))
        }
        pipeline => Ok(pipeline),
    }
}

/// Finds out how the bytes of `dataset` lie in the file.
fn storage(
    source: &Source,
    dataset: &Dataset,
    name: &str,
    element: &Element,
    columns: usize,
) -> Result<Storage> {
    let fault = source.library_fault(name);
    let layout = dataset.layout();
    let chunked = layout == StorageLayout::Chunked;
    let creation = native::creation(dataset, &element.datatype, chunked).map_err(&fault)?;
    let pipeline = check_filters(source, name, &creation.filters)?;
    if !source.addressable || creation.external || !element.is_plain() {
        return Ok(Storage::Library);
    }
    match (layout, pipeline) {
        (StorageLayout::Contiguous, _) => {
            Ok(native::offset(dataset).map_or(Storage::Library, |address| Storage::Contiguous { address }))
        }
        (StorageLayout::Chunked, Pipeline::Ours(filters)) if !creation.unfiltered_edges => {
            let Some(shape) = dataset.chunk() else { return Ok(Storage::Library) };
            let (chunk_rows, chunk_columns) = match shape[..] {
                [rows] => (rows, 1),
                [rows, columns] => (rows, columns),
                _ => return Ok(Storage::Library),
            };
            let bytes =
                chunk_rows.checked_mul(chunk_columns).and_then(|count| count.checked_mul(element.size));
            // HDF5 itself allows no chunk of 4 GiB or more.
            if bytes.is_none_or(|bytes| bytes == 0 || bytes > u32::MAX as usize) {
                return Err(source.fault(name, format!("its chunks have the impossible shape {shape:?}")));
            }
            let across = columns.div_ceil(chunk_columns).max(1) as u64;
            let mut places = Vec::new();
            dataset
                .chunks_visit(|chunk| {
                    let row = chunk.offset[0] / chunk_rows as u64;
                    let column = chunk.offset.get(1).map_or(0, |&column| column / chunk_columns as u64);
                    if chunk.addr != u64::MAX && column < across {
                        let (address, size) = (chunk.addr, chunk.size as usize);
                        let key = row.saturating_mul(across).saturating_add(column);
                        places.push(Place { key, address, size, mask: chunk.filter_mask });
                    }
                    0
                })
                .map_err(&fault)?;
            places.sort_unstable_by_key(|place| place.key);
            let fill = creation.fill;
            Ok(Storage::Chunked(Chunks {
                rows: chunk_rows,
                columns: chunk_columns,
                across,
                filters,
                fill,
                places,
            }))
        }
        _ => Ok(Storage::Library),
    }
}
