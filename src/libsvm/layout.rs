//! What the indices of one or several files say together.

use super::parse::Columns;
use super::{Base, Options};
use crate::{Error, Result};

/// What was read of a file so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tally {
    pub(super) n_rows: usize,
    /// The smallest and the largest index, as in [`Columns`].
    smallest: i64,
    largest: i64,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            n_rows: 0,
            smallest: i64::MAX,
            largest: -1,
        }
    }

    pub(super) fn add(&mut self, columns: &Columns) {
        self.n_rows += columns.row_ends.len();
        self.smallest = self.smallest.min(columns.smallest);
        self.largest = self.largest.max(columns.largest);
    }
}

/// What must be done to the indices of every file to get matrices with the same features.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Whether all must be decremented.
    pub(super) is_one_based: bool,
    pub(super) n_features: u64,
}

impl Layout {
    pub(super) fn new(files: &[Tally], options: &Options) -> Result<Self> {
        let is_one_based = match options.base {
            Base::Zero => false,
            Base::One => true,
            // A file without any index proves nothing: scikit-learn then changes none of them.
            Base::Auto => files
                .iter()
                .all(|file| file.largest >= 0 && file.smallest > 0),
        };
        let first = i64::from(is_one_based);
        let largest = files.iter().map(|file| file.largest - first).max();
        let needed = largest.unwrap_or(0).max(0).unsigned_abs() + 1;
        match options.n_features {
            Some(given) if given < needed => Err(Error::Parameter {
                name: "n_features",
                rule: "at least the number of features in the files",
                value: format!("{given} for {needed} features"),
            }),
            given => Ok(Self {
                is_one_based,
                n_features: given.unwrap_or(needed),
            }),
        }
    }

    /// Whether a matrix of `n_rows` takes 64-bit integers, as scipy decides it.
    pub(super) fn is_wide(&self, n_rows: usize) -> bool {
        i32::try_from(self.n_features).is_err() || i32::try_from(n_rows).is_err()
    }
}

impl Options {
    /// The options of a reader that sees only part of a file say all that the part cannot.
    pub(super) fn resolved(&self) -> Result<Self> {
        let mut options = self.clone();
        if self.offset == 0 && self.length.is_none() {
            return Ok(options);
        }
        if self.n_features.is_none() {
            return Err(Error::Parameter {
                name: "n_features",
                rule: "given where offset or length is",
                value: "None".into(),
            });
        }
        if self.base == Base::Auto {
            options.base = Base::Zero;
        }
        Ok(options)
    }
}
