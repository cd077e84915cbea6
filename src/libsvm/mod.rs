//! LIBSVM text files: a strict, parallel reader, a writer, and a memory-mappable copy.
//!
//! **Problem.** `label index:value index:value …`, one row a line, is how most public data sets
//! are kept. Files may be larger than memory, compressed, or wrong, and a wrong one must never
//! become a matrix.
//!
//! **Method.** Text is cut into blocks at line ends. Three things happen at once: the next batch
//! of blocks is read (and decompressed), the current one is parsed, a block a task, and the columns
//! of the previous one are appended in order to where they belong. The same body serves whole
//! files, blocks of rows and the conversion to arrays on disk; what it gives does not depend on
//! the number of threads, and the fault it reports is the first of the file.
//!
//! **Cost.** One pass over the text. Memory beyond the result: a few blocks a thread.
//!
//! | file | what it holds |
//! |---|---|
//! | `number` | decimal numbers, rounded exactly |
//! | `parse` | a block of lines → columns |
//! | `compression`, `codecs` | gzip, bzip2, xz, zstd (feature `compression`, on by default) |
//! | `source` | paths and streams → blocks of whole lines |
//! | `read` | the pipeline, and [`load`] |
//! | `rows` | [`RowReader`]: rows in portions |
//! | `layout` | what the indices of several files say together |
//! | `matrix`, `column` | the result in memory |
//! | `store`, `npy` | [`convert`]: the result on disk |
//! | `write`, `place` | [`Document`], and files that appear whole or not at all |
//!
//! ```
//! use onefold::libsvm::{Input, Ints, Options, load};
//!
//! let text = std::io::Cursor::new("+1 1:0.5 3:2 # a comment\n-1 2:1e-3\n");
//! let loaded = load(vec![Input::stream("text", text)], &Options::default(), &Default::default())?;
//! assert_eq!(loaded.n_features, 3);
//! assert_eq!(loaded.matrices[0].labels, [1.0, -1.0]);
//! assert_eq!(loaded.matrices[0].indices, Ints::Narrow(vec![0, 2, 1].into()));
//! # Ok::<(), onefold::Error>(())
//! ```

#[cfg(feature = "compression")]
mod codecs;
mod column;
mod compression;
mod layout;
mod matrix;
mod npy;
mod number;
mod parse;
mod place;
mod read;
mod rows;
mod source;
mod store;
mod write;

pub use column::Column;
pub use compression::Compression;
pub use matrix::{Ints, Matrix, Room, Values};
pub use read::{Loaded, load, load_into};
pub use rows::RowReader;
pub use source::{Input, Stream, StreamError};
pub use store::convert;
pub use write::{Document, Labels};

/// How to read a file. The defaults are scikit-learn's.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many features there are; by default as many as the largest index tells.
    pub n_features: Option<u64>,
    /// The type of the values.
    pub precision: Precision,
    /// Whether a row has any number of labels, with commas between them.
    pub multilabel: bool,
    /// The index of the first feature.
    pub base: Base,
    /// Whether every line has a `qid`, to be returned.
    pub query_id: bool,
    /// Where to begin: at the first line that starts after this byte (0: at the beginning).
    pub offset: u64,
    /// Read lines that start no later than this many bytes after `offset`.
    pub length: Option<u64>,
    /// Whether values and labels may be NaN or infinite.
    pub allow_nonfinite: bool,
    /// How many bytes of text, about, are parsed as one piece.
    pub block_size: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            n_features: None,
            precision: Precision::default(),
            multilabel: false,
            base: Base::default(),
            query_id: false,
            offset: 0,
            length: None,
            allow_nonfinite: false,
            // The columns of a block then fit a core's cache.
            block_size: 1 << 16,
        }
    }
}

/// The index that the first feature has in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Base {
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
pub enum Precision {
    /// f32: read as f64, then rounded.
    Single,
    /// f64.
    #[default]
    Double,
}
