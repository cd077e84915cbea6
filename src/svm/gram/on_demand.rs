//! Kernel rows that are computed when they are first needed.
//!
//! # Problem
//! A solver reads the rows of the variables that it moves. Of an easy problem these are few, and
//! computing the whole matrix takes longer than solving.
//!
//! # Method
//! Rows are computed one at a time and kept. A single row costs more than its share of a whole matrix,
//! of which one triangle is computed, in panels and by all threads; so once a limit of single rows is
//! exceeded, [`OnDemandRows::reserve`] computes the whole matrix. Where every row is as cheap alone,
//! there is no limit.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, TryLockError};

use super::Buffers;
use crate::Result;
use crate::data::HugePageBuffer;

/// Rows of `n` values, each computed once.
#[derive(Debug)]
pub(super) struct OnDemandRows {
    n: usize,
    rows: Vec<OnceLock<Vec<f32>>>,
    n_single: AtomicUsize,
    /// The number of single rows above which the whole matrix is computed.
    max_single: usize,
    whole: OnceLock<HugePageBuffer<f32>>,
    /// Held by the thread that computes the whole matrix.
    filling: Mutex<()>,
}

impl OnDemandRows {
    pub(super) fn new(n: usize, max_single: usize) -> Self {
        Self {
            n,
            rows: (0..n).map(|_| OnceLock::new()).collect(),
            n_single: AtomicUsize::new(0),
            max_single,
            whole: OnceLock::new(),
            filling: Mutex::new(()),
        }
    }

    /// Row `i`, if it has been computed.
    #[inline]
    pub(super) fn get(&self, i: usize) -> Option<&[f32]> {
        match self.whole.get() {
            Some(values) => Some(&values[i * self.n..][..self.n]),
            None => self.rows[i].get().map(Vec::as_slice),
        }
    }

    /// Keeps a row. Two threads may compute the same row at the same time, with the same bits.
    pub(super) fn insert(&self, i: usize, values: Vec<f32>) {
        if self.rows[i].set(values).is_ok() {
            self.n_single.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Number of computed rows: all, once more than the limit are needed. It does not depend on
    /// when the whole matrix was computed, and so not on the number of threads.
    pub(super) fn n_computed(&self) -> usize {
        let n_single = self.n_single.load(Ordering::Relaxed);
        if self.whole.get().is_some() || n_single > self.max_single {
            self.n
        } else {
            n_single
        }
    }

    /// Computes the whole matrix if the listed rows bring the number of single ones above the limit.
    /// Meanwhile other threads, and work that `fill` itself waits for, compute single rows.
    pub(super) fn reserve(
        &self,
        rows: &[usize],
        fill: impl FnOnce() -> Result<Option<HugePageBuffer<f32>>>,
    ) -> Result<()> {
        if self.max_single >= self.n || self.whole.get().is_some() {
            return Ok(());
        }
        let n_missing = rows.iter().filter(|&&i| self.get(i).is_none()).count();
        if self.n_single.load(Ordering::Relaxed) + n_missing <= self.max_single {
            return Ok(());
        }
        let _guard = match self.filling.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        if self.whole.get().is_none()
            && let Some(values) = fill()?
        {
            // No other thread sets it while this one has the lock.
            let _ = self.whole.set(values);
        }
        Ok(())
    }

    /// Returns the memory of all rows to pools.
    pub(super) fn recycle(&mut self, buffers: &Buffers) {
        for values in self.rows.iter_mut().filter_map(OnceLock::take) {
            buffers.rows.release(values);
        }
        if let Some(values) = self.whole.take() {
            buffers.matrices.release(values);
        }
    }
}
