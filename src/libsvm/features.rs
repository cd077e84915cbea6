//! Index base and number of features, common to several files.

use super::parse::Columns;
use super::{IndexBase, ReadOptions};
use crate::{Error, Result};

/// Number of rows and range of indices of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexStats {
    pub(super) n_rows: usize,
    /// As in [`Columns`].
    min_index: i64,
    max_index: i64,
}

impl IndexStats {
    pub(super) fn new() -> Self {
        Self {
            n_rows: 0,
            min_index: i64::MAX,
            max_index: -1,
        }
    }

    pub(super) fn add(&mut self, columns: &Columns) {
        self.n_rows += columns.row_ends.len();
        self.min_index = self.min_index.min(columns.min_index);
        self.max_index = self.max_index.max(columns.max_index);
    }
}

/// The features that the matrices of all files have.
#[derive(Clone, Copy, Debug)]
pub(super) struct FeatureSpace {
    /// Whether indices in the files begin with 1.
    pub(super) is_one_based: bool,
    pub(super) n_features: u64,
}

impl FeatureSpace {
    pub(super) fn new(files: &[IndexStats], options: &ReadOptions) -> Result<Self> {
        let is_one_based = match options.base {
            IndexBase::Zero => false,
            IndexBase::One => true,
            // As in scikit-learn, if any file has no index at all, all files are zero-based.
            IndexBase::Auto => files
                .iter()
                .all(|file| file.max_index >= 0 && file.min_index > 0),
        };
        let first = i64::from(is_one_based);
        let last = files.iter().map(|file| file.max_index - first).max();
        let needed = last.unwrap_or(0).max(0).unsigned_abs() + 1;
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

    /// Whether a matrix of `n_rows` has 64-bit indices, by scipy's rule.
    pub(super) fn needs_i64(&self, n_rows: usize) -> bool {
        i32::try_from(self.n_features).is_err() || i32::try_from(n_rows).is_err()
    }
}

impl ReadOptions {
    /// Completes the options for reading part of a file, which does not determine the features.
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
        if self.base == IndexBase::Auto {
            options.base = IndexBase::Zero;
        }
        Ok(options)
    }
}
