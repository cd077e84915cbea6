//! The Gram matrix: every kernel value, computed once for all folds, classes and candidates.
//!
//! # Method
//! If the matrix fits the memory budget, rows are computed [when they are needed](on_demand), and
//! all of them once many are: blocks of rows in parallel, stored as f32, as in LIBSVM's cache.
//! Otherwise a cache of the most recently used rows, shared by all threads. A large matrix with few
//! distinct values is stored as [bytes](quantized), with a cache of decoded rows. Memory is checked
//! before it is allocated. Row bits do not depend on the storage: K(x, z) and K(z, x) are equal, so
//! one triangle of an f32 matrix is computed and mirrored, except for precomputed values.
//!
//! Kernels that differ only in their parameters share their [base]. Every value is that of the
//! kernel to 5e-14, rounded to f32, except that of RBF kernels derived from distances in f32: rounding
//! a distance changes exp(−γd²) by at most 6e-8·γd²·exp(−γd²) < 2.3e-8, less than rounding a kernel
//! value near 1.
//!
//! # Cost
//! | | time | memory |
//! |---|---|---|
//! | whole matrix | ½n · (stored values of X) multiply-adds | 4n² bytes |
//! | one cached row | (stored values of X) multiply-adds | 4n bytes |
//! | inner products as a base | ½n · (stored values of X) multiply-adds | 8n² bytes |
//! | quantised matrix | n · (stored values of X) multiply-adds of 16 bits | n² bytes |

mod base;
mod derived;
mod mirror;
mod on_demand;
mod quantized;
mod rows;
mod source;

use std::fmt::Debug;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

pub(super) use self::base::Base;
use self::derived::FromBase;
use self::mirror::mirror;
use self::on_demand::OnDemandRows;
use self::quantized::{LookupKernel, QuantizedGram};
pub(super) use self::rows::{BLOCK, KernelRows};
use self::source::{Computed, KernelSource, Precomputed, too_large};
use super::kernel::{Kernel, PANEL_ROWS};
use super::memory::Budget;
use super::row_cache::RowCache;
use crate::data::{HugePageBuffer, Layout, Row as _};
use crate::linear::RowStore;
use crate::runtime::buffers::BufferPool;
use crate::runtime::{cache, memory};
use crate::{Error, Monitor, Result};

/// Minimum capacity of a row cache: two rows for each of four threads.
const MIN_CACHED_ROWS: usize = 8;

/// Matrices of fewer samples are computed as a whole: that takes a millisecond or two.
const ON_DEMAND_FROM: usize = 1000;

/// Size of an f32 matrix from which bytes are preferred. Smaller matrices are read faster as f32.
const QUANTIZE_FROM_BYTES: u64 = 1 << 30;

/// Kernel values between all samples.
#[derive(Debug)]
pub struct Gram<'a> {
    n: usize,
    /// Stored values are base values divided by this; not 1 where f32 would overflow.
    scale: f64,
    source: Box<dyn KernelSource + 'a>,
    /// The source, if it is a lookup table over quantised values.
    lookup: Option<Arc<LookupKernel>>,
    store: Store,
    diagonal: Vec<f32>,
    rows_computed: AtomicU64,
    /// Where the number of computed rows is added at the end.
    total: Option<Arc<AtomicU64>>,
    /// Buffers shared with other matrices, if there are any.
    shared_buffers: Option<&'a Buffers>,
    own_buffers: Buffers,
}

/// Buffers that matrices of the same size reuse: fresh pages cost as much as filling them.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    matrices: BufferPool<HugePageBuffer<f32>>,
    rows: BufferPool<Vec<f32>>,
    gathered: BufferPool<Vec<f32>>,
    /// Number of matrices that [share](Gram::sharing) the buffers.
    n_users: AtomicUsize,
}

impl Buffers {
    fn n_users(&self) -> usize {
        self.n_users.load(Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Gram<'_> {
    fn drop(&mut self) {
        if let Some((total, buffers)) = self.total.as_ref().zip(self.shared_buffers) {
            total.fetch_add(self.rows_computed(), Ordering::Relaxed);
            buffers.n_users.fetch_sub(1, Ordering::Relaxed);
        }
        match (self.shared_buffers, &mut self.store) {
            (Some(buffers), Store::Full(values)) => {
                buffers.matrices.release(std::mem::take(values));
            }
            (Some(buffers), Store::OnDemand(rows)) => rows.recycle(buffers),
            _ => {}
        }
    }
}

#[derive(Debug)]
enum Store {
    Full(HugePageBuffer<f32>),
    OnDemand(OnDemandRows),
    Cached(Mutex<RowCache<Arc<Vec<f32>>>>),
}

/// Checks the memory of one panel of rows for each thread.
pub(super) fn check_panels(rows: &impl Layout) -> Result<()> {
    let (p, n_threads) = (rows.n_features(), rayon::current_num_threads());
    let what = format_args!("a few rows of X with {p} features");
    memory::check_shape::<f64>(what, &[p, PANEL_ROWS, n_threads])
}

/// One row of a [`Gram`].
#[derive(Debug)]
pub enum GramRow<'a> {
    /// A row that stays in memory.
    Borrowed(&'a [f32]),
    /// A row of the cache, alive even after its eviction.
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
    /// The kernel between the listed rows: sample `i` of the matrix is row `row_of_sample[i]`.
    pub fn new<R: Layout + Debug>(
        rows: &'a R,
        row_of_sample: &'a [usize],
        kernel: Kernel,
        budget: Budget,
        monitor: &Monitor,
    ) -> Result<Self> {
        let n = row_of_sample.len();
        if kernel == Kernel::Precomputed {
            check_panels(rows)?;
            if rows.n_features() != rows.n_rows() {
                return Err(Error::Shape {
                    what: "a row of the precomputed kernel X",
                    expected: rows.n_rows(),
                    found: rows.n_features(),
                });
            }
            let values = row_of_sample
                .iter()
                .flat_map(|&row| rows.row(row).entries());
            let largest = values.map(|(_, value)| value.abs()).fold(0.0, f64::max);
            if largest > f32::MAX.into() {
                return Err(too_large("the kernel matrix", largest));
            }
            let mut sample_of_row = vec![None; rows.n_rows()];
            for (sample, &row) in row_of_sample.iter().enumerate() {
                sample_of_row[row] = Some(sample);
            }
            let source = Precomputed {
                rows,
                row_of_sample,
                sample_of_row,
            };
            return Self::empty(Box::new(source), n, None)?.filled(budget, monitor);
        }
        Self::of_rows(rows, row_of_sample, kernel, budget, monitor)
    }

    /// The same for a kernel that is not precomputed, with rows that the matrix may own.
    pub(super) fn of_rows<S: RowStore + 'a>(
        store: S,
        row_of_sample: &'a [usize],
        kernel: Kernel,
        budget: Budget,
        monitor: &Monitor,
    ) -> Result<Self> {
        let n = row_of_sample.len();
        check_panels(&store.view())?;
        let source = Computed::new(store, row_of_sample, kernel.check()?)?;
        if let Some(gram) = Self::try_quantized(&source, budget, monitor)? {
            return Ok(gram);
        }
        let scale = source.factor.recip();
        let mut gram = Self::empty(Box::new(source), n, None)?.filled(budget, monitor)?;
        gram.scale = scale;
        Ok(gram)
    }

    /// A quantised matrix, if it is possible and better than f32.
    fn try_quantized<S: RowStore>(
        source: &Computed<'_, S>,
        budget: Budget,
        monitor: &Monitor,
    ) -> Result<Option<Self>> {
        let n = source.row_of_sample.len();
        let rest = budget.beside_quantized(n, QUANTIZE_FROM_BYTES);
        let rest = rest.filter(|rest| rest.rows(n) >= MIN_CACHED_ROWS);
        let Some((rest, largest)) = rest.zip(rest.and_then(|_| QuantizedGram::bound(source)))
        else {
            return Ok(None);
        };
        let base = Arc::new(QuantizedGram::new(source, largest, monitor)?);
        let gram = Self::quantized(base, n, source.kernel, rest)?;
        gram.rows_computed.store(n as u64, Ordering::Relaxed);
        Ok(Some(gram))
    }

    /// Another kernel of the same [base](Kernel::base), from a matrix of that base. Values of the base
    /// are rounded to f32, which suffices for RBF and linear kernels.
    pub fn derive(
        base: &'a Gram<'_>,
        kernel: Kernel,
        budget: Budget,
        monitor: &Monitor,
    ) -> Result<Self> {
        let kernel = kernel.check()?;
        if let Some(lookup) = &base.lookup {
            return Self::quantized(Arc::clone(lookup.base()), base.n, kernel, budget);
        }
        let source = FromBase { base, kernel };
        Self::empty(Box::new(source), base.n, Some(&base.own_buffers))?.filled(budget, monitor)
    }

    /// A kernel over a quantised base, with a cache of decoded rows.
    fn quantized(
        base: Arc<QuantizedGram>,
        n: usize,
        kernel: Kernel,
        budget: Budget,
    ) -> Result<Self> {
        let lookup = Arc::new(LookupKernel::new(base, kernel));
        let mut gram = Self::empty(Box::new(Arc::clone(&lookup)), n, None)?;
        gram.lookup = Some(lookup);
        // Few decoded rows are read again soon: more would only leave the CPU's cache.
        let budget = budget.at_most(cache::LLC_SHARE_BYTES as u64);
        let capacity = budget.rows(n).max(MIN_CACHED_ROWS);
        gram.store = Store::Cached(Mutex::new(RowCache::new(n, capacity)));
        Ok(gram)
    }

    /// A matrix without values.
    fn empty(
        source: Box<dyn KernelSource + 'a>,
        n: usize,
        shared_buffers: Option<&'a Buffers>,
    ) -> Result<Self> {
        let diagonal: Vec<f32> = (0..n).map(|i| source.diagonal(i)).collect();
        // If a computed kernel overflows, it does so on the diagonal.
        if let Some(value) = diagonal.iter().find(|value| !value.is_finite()) {
            return Err(too_large("the kernel matrix", (*value).into()));
        }
        Ok(Self {
            n,
            scale: 1.0,
            diagonal,
            source,
            lookup: None,
            store: Store::Full(HugePageBuffer::default()),
            rows_computed: AtomicU64::new(0),
            total: None,
            shared_buffers,
            own_buffers: Buffers::default(),
        })
    }

    /// Sets up rows on demand or computes the whole matrix if it fits the budget, or sets up a row
    /// cache.
    fn filled(mut self, budget: Budget, monitor: &Monitor) -> Result<Self> {
        let capacity = budget.rows(self.n);
        let max_single = self.source.max_single_rows();
        let needed = if max_single < self.n {
            self.n + max_single
        } else {
            self.n
        };
        if self.n >= ON_DEMAND_FROM && max_single > 0 && capacity >= needed {
            self.store = Store::OnDemand(OnDemandRows::new(self.n, max_single));
            return Ok(self);
        }
        let whole = (capacity >= self.n).then(|| self.new_matrix()).flatten();
        if let Some(values) = whole {
            self.store = Store::Full(self.compute(values, monitor)?);
        } else if capacity >= MIN_CACHED_ROWS {
            // A matrix that the system does not grant in one piece: half of its rows.
            let is_refused = capacity >= self.n;
            let capacity = if is_refused { self.n / 2 } else { capacity };
            let capacity = capacity.max(MIN_CACHED_ROWS);
            self.store = Store::Cached(Mutex::new(RowCache::new(self.n, capacity)));
        } else {
            let rule = "enough for eight rows of each kernel matrix";
            let value = format!("{}, with rows of {} samples", budget.described(), self.n);
            return Err(Error::parameter("kernel memory", rule, value));
        }
        Ok(self)
    }

    /// Memory for the whole matrix, if there is enough.
    fn new_matrix(&self) -> Option<HugePageBuffer<f32>> {
        let used = self.shared_buffers.and_then(|pool| pool.matrices.acquire());
        used.or_else(|| HugePageBuffer::zeroed(self.n.checked_mul(self.n)?))
    }

    fn compute(
        &self,
        mut values: HugePageBuffer<f32>,
        monitor: &Monitor,
    ) -> Result<HugePageBuffer<f32>> {
        let (n, is_symmetric) = (self.n, self.source.is_symmetric());
        // A thread that waits for others would start another training set, with a matrix of its own.
        let n_users = self.shared_buffers.map_or(0, Buffers::n_users);
        let is_serial = n_users > rayon::current_num_threads();
        values
            .par_chunks_mut((PANEL_ROWS * n).max(1))
            .with_min_len(if is_serial { usize::MAX } else { 1 })
            .enumerate()
            .try_for_each(|(index, chunk)| {
                monitor.check()?;
                let row = index * PANEL_ROWS;
                let first = if is_symmetric { row } else { 0 };
                let rows = row..row + chunk.len() / n;
                self.source.fill(rows, first, chunk);
                Ok(())
            })?;
        if is_symmetric {
            mirror::<_, PANEL_ROWS>(&mut values, 0, n, is_serial, monitor)?;
        }
        self.rows_computed.fetch_add(n as u64, Ordering::Relaxed);
        Ok(values)
    }

    /// Reuses buffers, and adds the number of computed rows to `total` at the end.
    pub(super) fn sharing(mut self, buffers: &'a Buffers, total: &Arc<AtomicU64>) -> Self {
        buffers.n_users.fetch_add(1, Ordering::Relaxed);
        self.shared_buffers = Some(buffers);
        self.total = Some(Arc::clone(total));
        self
    }

    /// Number of samples.
    #[allow(clippy::len_without_is_empty)] // a matrix without samples is of no use
    pub fn len(&self) -> usize {
        self.n
    }

    /// Returns true if a row, once computed, stays in memory.
    pub fn is_full(&self) -> bool {
        !matches!(self.store, Store::Cached(_)) || self.lookup.is_some()
    }

    /// Announces that the listed rows are read soon. If many rows have been or will be computed,
    /// computes the whole matrix, in parallel.
    pub(super) fn reserve(&self, rows: &[usize], monitor: &Monitor) -> Result<()> {
        if let Store::OnDemand(store) = &self.store {
            store.reserve(rows, || {
                let values = self.new_matrix();
                values
                    .map(|values| self.compute(values, monitor))
                    .transpose()
            })?;
        }
        self.source.reserve(rows, monitor)
    }

    /// K(i, i) of every sample.
    pub fn diagonal(&self) -> &[f32] {
        &self.diagonal
    }

    /// Number of rows computed so far.
    pub fn rows_computed(&self) -> u64 {
        match &self.store {
            Store::OnDemand(rows) => rows.n_computed() as u64,
            _ => self.rows_computed.load(Ordering::Relaxed),
        }
    }

    /// Row `i`: K(i, ·).
    ///
    /// # Panics
    /// When there is no such sample.
    #[inline]
    pub fn row(&self, i: usize) -> GramRow<'_> {
        match &self.store {
            Store::Full(values) => GramRow::Borrowed(&values[i * self.n..][..self.n]),
            Store::OnDemand(rows) => GramRow::Borrowed(self.on_demand_row(rows, i)),
            Store::Cached(cache) => GramRow::Shared(self.cached_row(cache, i)),
        }
    }

    /// Squared distances of sample `i` divided by a number, and that number, if the kernel is
    /// derived from them.
    pub(super) fn distances(&self, i: usize) -> Option<(GramRow<'_>, f64)> {
        let base = self.source.distances()?;
        Some((base.row(i), base.scale))
    }

    /// The quantised rows, if decoding them is as fast as reading f32.
    pub(super) fn fast_lookup(&self) -> Option<&LookupKernel> {
        self.lookup.as_deref().filter(|lookup| lookup.is_fast())
    }

    fn on_demand_row<'s>(&self, rows: &'s OnDemandRows, i: usize) -> &'s [f32] {
        loop {
            if let Some(row) = rows.get(i) {
                return row;
            }
            let used = self
                .shared_buffers
                .and_then(|buffers| buffers.rows.acquire());
            let mut values = used.unwrap_or_else(|| vec![0.0; self.n]);
            self.source.fill(i..i + 1, 0, &mut values);
            rows.insert(i, values);
        }
    }

    /// A cached row. Two threads may compute the same row at the same time, with the same bits.
    fn cached_row(&self, cache: &Mutex<RowCache<Arc<Vec<f32>>>>, i: usize) -> Arc<Vec<f32>> {
        let evicted = {
            let mut cache = lock(cache);
            if let Some(row) = cache.get(i) {
                return Arc::clone(row);
            }
            cache.evict_if_full()
        };
        // A row that another thread still reads is not reused.
        let mut values = evicted.and_then(Arc::into_inner).unwrap_or_default();
        values.resize(self.n, 0.0);
        self.source.fill(i..i + 1, 0, &mut values);
        if self.lookup.is_none() {
            self.rows_computed.fetch_add(1, Ordering::Relaxed);
        }
        let row = Arc::new(values);
        lock(cache).insert(i, Arc::clone(&row));
        row
    }
}

impl<'a> KernelRows for &'a Gram<'a> {
    type Value = f32;
    type Row = GramRow<'a>;
    type DecodeBuffer = ();

    #[inline]
    fn row(self, i: usize) -> GramRow<'a> {
        Gram::row(self, i)
    }

    fn gather(self, i: usize, columns: &[u32], out: &mut [f32]) {
        match &self.lookup {
            Some(lookup) => lookup.gather_values(i, columns, out),
            None => rows::gather(&Gram::row(self, i), columns, out),
        }
    }

    #[inline(always)]
    fn decode_buffer() {}

    #[inline(always)]
    fn decode<'r>(self, stored: &'r [f32], (): &'r mut ()) -> &'r [f32] {
        stored
    }

    fn buffers(&self) -> &BufferPool<Vec<f32>> {
        &self.shared_buffers.unwrap_or(&self.own_buffers).gathered
    }
}

#[cfg(test)]
mod tests;
