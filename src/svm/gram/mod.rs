//! The Gram matrix: every kernel value, computed once for all folds, classes and candidates.
//!
//! # Method
//! The whole matrix where the memory budget allows it: blocks of rows in parallel, stored as f32,
//! as LIBSVM's cache stores them. Otherwise a cache of rows, shared by all threads, that forgets
//! the row used longest ago. Where a matrix would be large and its values are few, it is
//! [coded](coded) in bytes, with such a cache before it. The estimate comes before the allocation.
//! Rows have the same bits either way: K(x, z) and K(z, x) do, so that half of a whole matrix of f32
//! is computed and the rest mirrored, except for values that the caller brought.
//!
//! Kernels that differ only in their parameters share their [base](Kernel::base): a matrix of
//! squared distances gives the RBF matrix of every γ. Rounding a distance to f32 changes
//! exp(−γd²) by at most 6e-8·γd²·exp(−γd²) < 2.3e-8, less than rounding the kernel value itself.
//!
//! # Cost
//! | | time | memory |
//! |---|---|---|
//! | whole matrix | ½n · (stored values of X) multiply-adds | 4n² bytes |
//! | one row of the cache | (stored values of X) multiply-adds | 4n bytes |
//! | coded matrix | n · (stored values of X) multiply-adds of 16 bits | n² bytes |

mod cache;
mod coded;
mod lines;
mod source;

use std::fmt::Debug;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use self::cache::RowCache;
use self::coded::{Codes, Decoded};
pub(super) use self::lines::{BLOCK, Lines};
use self::source::{Computed, Derived, Given, Source};
use super::kernel::{self, Kernel, WIDTH};
use super::memory::Budget;
use crate::data::{HugePageBuffer, Layout, Row as _};
use crate::{Error, Monitor, Result};

/// Rows that the cache must be able to hold: two for each of a few threads.
const FEWEST_ROWS: usize = 8;

/// Bytes of a matrix of f32 from which it is coded, if it can be: to read rows of a smaller one as
/// they are is faster.
const LARGE: u64 = 1 << 30;

/// What the rows that are decoded may take: hardly one is read again soon, so that more of them would
/// only be further away.
const DECODED: u64 = 1 << 23;

/// Kernel values between all samples, in the order in which they were listed.
#[derive(Debug)]
pub struct Gram<'a> {
    n: usize,
    /// What the value 1 stands for: a base has a unit of its own where f32 would overflow.
    unit: f64,
    source: Box<dyn Source + 'a>,
    store: Store,
    diagonal: Vec<f32>,
    computed: AtomicU64,
    /// Where a whole matrix goes when it is not needed any more, if it came from a base.
    home: Option<&'a Shelf>,
    /// For the matrices that are derived from this one.
    shelf: Shelf,
}

/// Memory that is not needed any more: whoever comes next has no need to ask the system, which may
/// take as long to give it out as it takes to fill it.
#[derive(Debug, Default)]
struct Shelf {
    /// All of one size.
    matrices: Mutex<Vec<HugePageBuffer<f32>>>,
    gathered: Pile<f32>,
}

/// Memory for parts of rows, which may hold anything.
#[derive(Debug, Default)]
struct Pile<T>(Mutex<Vec<Vec<T>>>);

impl<T> Pile<T> {
    fn lend(&self) -> Vec<T> {
        lock(&self.0).pop().unwrap_or_default()
    }

    /// For the next who asks.
    fn take_back(&self, memory: Vec<T>) {
        lock(&self.0).push(memory);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Gram<'_> {
    fn drop(&mut self) {
        if let (Some(home), Store::Full(values)) = (self.home, &mut self.store) {
            let values = std::mem::replace(values, HugePageBuffer::new(0));
            lock(&home.matrices).push(values);
        }
    }
}

#[derive(Debug)]
enum Store {
    Full(HugePageBuffer<f32>),
    Cache(Mutex<RowCache>),
}

/// One row of a [`Gram`].
#[derive(Debug)]
pub enum GramRow<'a> {
    /// A row of the whole matrix.
    Borrowed(&'a [f32]),
    /// A row of the cache, which may forget it meanwhile.
    Shared(Arc<Vec<f32>>),
}

impl Deref for GramRow<'_> {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match self {
            Self::Borrowed(row) => row,
            Self::Shared(row) => row,
        }
    }
}

impl<'a> Gram<'a> {
    /// The kernel between the rows listed in `order`: sample `i` of the matrix is row `order[i]`.
    pub fn new<R: Layout + Debug>(
        rows: &'a R,
        order: &'a [usize],
        kernel: Kernel,
        budget: Budget,
        monitor: &Monitor,
    ) -> Result<Self> {
        let n = order.len();
        let kernel = kernel.check()?;
        if kernel == Kernel::Precomputed {
            if rows.n_features() != rows.n_rows() {
                return Err(Error::Shape {
                    what: "a row of the precomputed kernel X",
                    expected: rows.n_rows(),
                    found: rows.n_features(),
                });
            }
            let values = order.iter().flat_map(|&row| rows.row(row).entries());
            let largest = values.map(|(_, value)| value.abs()).fold(0.0, f64::max);
            if largest > f32::MAX.into() {
                return Err(too_large("the kernel matrix", largest));
            }
            let mut places = vec![None; rows.n_rows()];
            for (place, &row) in order.iter().enumerate() {
                places[row] = Some(place);
            }
            let source = Given {
                rows,
                order,
                places,
            };
            return Self::of(Box::new(source), n, None, budget, monitor);
        }
        let norms = kernel::squared_norms(rows, order);
        let largest = norms.iter().copied().fold(0.0, f64::max);
        // Twice a norm is added to another.
        if !(4.0 * largest).is_finite() {
            return Err(too_large("a row of X", largest));
        }
        let unit = match kernel {
            Kernel::SquaredDistance => unit(largest),
            _ => 1.0,
        };
        let source = Computed {
            rows,
            order,
            kernel,
            norms,
            factor: unit.recip(),
        };
        let room = budget.beside_codes(n, LARGE);
        let room = room.filter(|room| room.rows(n) >= FEWEST_ROWS);
        if let Some((room, largest)) = room.zip(room.and_then(|_| Codes::bound(&source))) {
            let codes = Arc::new(Codes::new(&source, largest, monitor)?);
            let mut gram = Self::decoded(codes, n, kernel, room)?;
            gram.computed = AtomicU64::new(n as u64);
            return Ok(gram);
        }
        let mut gram = Self::of(Box::new(source), n, None, budget, monitor)?;
        gram.unit = unit;
        Ok(gram)
    }

    /// A kernel whose base is coded, with room for some rows.
    fn decoded(codes: Arc<Codes>, n: usize, kernel: Kernel, room: Budget) -> Result<Self> {
        let mut gram = Self::empty(Box::new(Decoded::new(codes, kernel)), n, None)?;
        let capacity = room.at_most(DECODED).rows(n).max(FEWEST_ROWS);
        gram.store = Store::Cache(Mutex::new(RowCache::new(capacity)));
        Ok(gram)
    }

    /// Another kernel of the same [base](Kernel::base), from a matrix of that base.
    pub fn derive(
        base: &'a Gram<'_>,
        kernel: Kernel,
        budget: Budget,
        monitor: &Monitor,
    ) -> Result<Self> {
        let kernel = kernel.check()?;
        if let Some(decoded) = base.source.decoded() {
            return Self::decoded(Arc::clone(decoded.codes()), base.n, kernel, budget);
        }
        let source = Derived { base, kernel };
        Self::of(Box::new(source), base.n, Some(&base.shelf), budget, monitor)
    }

    /// No values yet.
    fn empty(source: Box<dyn Source + 'a>, n: usize, home: Option<&'a Shelf>) -> Result<Self> {
        let diagonal: Vec<f32> = (0..n).map(|i| source.diagonal(i)).collect();
        // Where a computed kernel overflows, it does so here first.
        if let Some(value) = diagonal.iter().find(|value| !value.is_finite()) {
            return Err(too_large("the kernel matrix", (*value).into()));
        }
        Ok(Self {
            n,
            unit: 1.0,
            diagonal,
            source,
            store: Store::Full(HugePageBuffer::new(0)),
            computed: AtomicU64::new(0),
            home,
            shelf: Shelf::default(),
        })
    }

    fn of(
        source: Box<dyn Source + 'a>,
        n: usize,
        home: Option<&'a Shelf>,
        budget: Budget,
        monitor: &Monitor,
    ) -> Result<Self> {
        let mut gram = Self::empty(source, n, home)?;
        let fits = budget.rows(n);
        if fits >= n {
            gram.store = Store::Full(gram.fill(monitor)?);
        } else if fits >= FEWEST_ROWS {
            gram.store = Store::Cache(Mutex::new(RowCache::new(fits)));
        } else {
            return Err(Error::Parameter {
                name: "memory_mb",
                rule: "enough for eight rows of each kernel matrix",
                value: format!("{}, with rows of {n} samples", budget.described()),
            });
        }
        Ok(gram)
    }

    fn fill(&self, monitor: &Monitor) -> Result<HugePageBuffer<f32>> {
        let used = self.home.and_then(|home| lock(&home.matrices).pop());
        let mut values = used.unwrap_or_else(|| HugePageBuffer::new(self.n * self.n));
        let (n, is_symmetric) = (self.n, self.source.is_symmetric());
        values
            .par_chunks_mut((WIDTH * n).max(1))
            .enumerate()
            .try_for_each(|(index, chunk)| {
                monitor.check()?;
                let row = index * WIDTH;
                let first = if is_symmetric { row } else { 0 };
                let rows = row..row + chunk.len() / n;
                self.source.fill(rows, first, chunk);
                Ok(())
            })?;
        if is_symmetric {
            mirror(&mut values, 0, n, monitor)?;
        }
        self.computed.fetch_add(self.n as u64, Ordering::Relaxed);
        Ok(values)
    }

    /// How many samples.
    #[allow(clippy::len_without_is_empty)] // a matrix without samples is of no use
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether the whole matrix is in memory.
    pub fn is_full(&self) -> bool {
        matches!(self.store, Store::Full(_)) || self.source.decoded().is_some()
    }

    /// K(i, i) of every sample.
    pub fn diagonal(&self) -> &[f32] {
        &self.diagonal
    }

    /// How many rows were computed so far.
    pub fn rows_computed(&self) -> u64 {
        self.computed.load(Ordering::Relaxed)
    }

    /// Row `i`: K(i, ·).
    ///
    /// # Panics
    /// When there is no such sample.
    #[inline]
    pub fn row(&self, i: usize) -> GramRow<'_> {
        match &self.store {
            Store::Full(values) => GramRow::Borrowed(&values[i * self.n..][..self.n]),
            Store::Cache(cache) => GramRow::Shared(self.cached(cache, i)),
        }
    }

    fn shelf(&self) -> &Shelf {
        self.home.unwrap_or(&self.shelf)
    }

    /// The rows in their codes, if it takes no time to decode them.
    pub(super) fn coded(&self) -> Option<&Decoded> {
        let decoded = self.source.decoded();
        decoded.filter(|decoded| decoded.table().is_short())
    }

    /// A row of the cache. Two threads may compute the same row at once: both get the same bits.
    fn cached(&self, cache: &Mutex<RowCache>, i: usize) -> Arc<Vec<f32>> {
        let mut values = {
            let mut cache = lock(cache);
            if let Some(row) = cache.find(i) {
                return row;
            }
            cache.room()
        };
        values.resize(self.n, 0.0);
        self.source.fill(i..i + 1, 0, &mut values);
        if self.source.decoded().is_none() {
            self.computed.fetch_add(1, Ordering::Relaxed);
        }
        let row = Arc::new(values);
        lock(cache).keep(i, &row);
        row
    }
}

/// Completes rows of a symmetric matrix of `n` columns, the first of which is row `first`, from the
/// column that stands under it on: of every [`WIDTH`] rows, the columns from the first of them on
/// are known.
fn mirror(rows: &mut [f32], first: usize, n: usize, monitor: &Monitor) -> Result<()> {
    let n_blocks = (rows.len() / n.max(1)).div_ceil(WIDTH);
    if n_blocks < 2 {
        return Ok(());
    }
    let above = n_blocks / 2 * WIDTH;
    let (upper, lower) = rows.split_at_mut(above * n);
    let known = &*upper;
    lower
        .par_chunks_mut(WIDTH * n)
        .enumerate()
        .try_for_each(|(index, block)| {
            monitor.check()?;
            let start = first + above + index * WIDTH;
            // Tiles of as many rows as columns: each line of memory is read once and written once.
            for (tile, known) in known.chunks(WIDTH * n).enumerate() {
                for (row, out) in block.chunks_mut(n).enumerate() {
                    let out = &mut out[first + tile * WIDTH..];
                    for (value, known) in out.iter_mut().zip(known.chunks(n)) {
                        *value = known[start + row];
                    }
                }
            }
            Ok(())
        })?;
    let (upper, lower) = rayon::join(
        || mirror(upper, first, n, monitor),
        || mirror(lower, first + above, n, monitor),
    );
    upper.and(lower)
}

/// 1 for squared norms up to a size that is far from the limits of f32, else a power of two as
/// large: what is divided by it keeps its bits.
fn unit(largest: f64) -> f64 {
    let exponent = largest.log2().floor();
    if largest == 0.0 || exponent.abs() <= 64.0 {
        1.0
    } else {
        exponent.exp2()
    }
}

fn too_large(what: &str, value: f64) -> Error {
    Error::Parameter {
        name: "X",
        rule: "small enough for finite kernel values; scale the features",
        value: format!("{value:e} in {what}"),
    }
}

#[cfg(test)]
mod tests;
