//! LIBSVM text files: a strict, parallel reader, a writer, and a memory-mappable copy.
//!
//! # Problem
//! Most public data sets are stored as `label index:value index:value …`, one row per
//! line. Files may be larger than memory, compressed, or malformed, and a malformed file must never
//! become a matrix.
//!
//! # Method
//! Text is cut into blocks at line ends. Three stages run concurrently: the next batch
//! of blocks is read (and decompressed), the current batch is parsed, one task per block, and the
//! columns of the previous batch are appended in file order. The same pipeline serves whole files,
//! chunks of rows and the conversion to arrays on disk; its result does not depend on the number of
//! threads, and the error it reports is the first of the file.
//!
//! # Cost
//! One pass over the text. Memory beyond the result: a few blocks per thread.
//!
//! | file | what it holds |
//! |---|---|
//! | `number` | decimal numbers, correctly rounded |
//! | `parse` | a block of lines → columns |
//! | `compression`, `codecs` | gzip, bzip2, xz, zstd (feature `compression`, on by default) |
//! | `source` | paths and streams → blocks of whole lines |
//! | `read` | the pipeline, and [`load`] |
//! | `rows` | [`RowReader`]: chunks of rows |
//! | `features` | index base and number of features, common to several files |
//! | `matrix`, `column` | the result in memory |
//! | `convert`, `npy` | [`convert`](fn@convert): the result on disk |
//! | `write`, `atomic` | [`Document`], and atomic replacement of files |
//!
//! ```
//! use onefold::libsvm::{Input, IndexArray, ReadOptions, load};
//!
//! let text = std::io::Cursor::new("+1 1:0.5 3:2 # a comment\n-1 2:1e-3\n");
//! let loaded = load(vec![Input::stream("text", text)], &ReadOptions::default(), &Default::default())?;
//! assert_eq!(loaded.n_features, 3);
//! assert_eq!(loaded.matrices[0].labels, [1.0, -1.0]);
//! assert_eq!(loaded.matrices[0].indices, IndexArray::I32(vec![0, 2, 1].into()));
//! # Ok::<(), onefold::Error>(())
//! ```

mod atomic;
#[cfg(feature = "compression")]
mod codecs;
mod column;
mod compression;
mod convert;
mod features;
mod matrix;
mod npy;
mod number;
mod parse;
mod pipe;
mod read;
mod rows;
mod source;
mod write;

pub use column::GrowableColumn;
pub use compression::Compression;
pub use convert::convert;
pub use matrix::{Buffers, IndexArray, Matrix, Values};
pub use read::{Loaded, load, load_into};
pub use rows::RowReader;
pub use source::{Input, Stream, StreamError};
pub use write::{Document, Labels};

/// How to read a file. The defaults are scikit-learn's.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Number of features; by default determined by the largest index.
    pub n_features: Option<u64>,
    /// The type of the values.
    pub precision: ValueType,
    /// Whether rows have any number of labels, separated by commas.
    pub multilabel: bool,
    /// The index of the first feature.
    pub base: IndexBase,
    /// Whether every line must have a `qid`, which is returned.
    pub query_id: bool,
    /// Reading begins with the first line that starts after this byte (0: the beginning).
    pub offset: u64,
    /// Reading ends with the last line that starts at most this many bytes after `offset`.
    pub length: Option<u64>,
    /// Whether values and labels may be NaN or infinite.
    pub allow_nonfinite: bool,
    /// Approximate number of bytes parsed by one task.
    pub block_size: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            n_features: None,
            precision: ValueType::default(),
            multilabel: false,
            base: IndexBase::default(),
            query_id: false,
            offset: 0,
            length: None,
            allow_nonfinite: false,
            // The columns of a block fit the cache of one core.
            block_size: 1 << 16,
        }
    }
}

/// The index of the first feature in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexBase {
    /// One, unless an index 0 occurs or a file has no index at all.
    #[default]
    Auto,
    /// Zero.
    Zero,
    /// One.
    One,
}

/// The type of the values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValueType {
    /// f32: read as f64, then rounded.
    Single,
    /// f64.
    #[default]
    Double,
}
