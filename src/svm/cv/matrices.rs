//! The kernel matrices of a family: one for all training sets, or one for each.
//!
//! # Method
//! Training sets differ in their kernel (scikit-learn's `gamma="scale"` depends on the training
//! set), in their rows (scaled by what was fitted to the training set), or in neither. Kernels over
//! the same rows are derived from one [base](Base): one for all sets, or one per set if rows are
//! scaled. If the bases of all sets exceed the budget, every matrix is computed from its rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::linear::{FoldMaps, ScaledLayout, ScaledValues, TrainingSet, set_index};
use crate::svm::candidate::SvmSpec;
use crate::svm::gram::{Base, Buffers, Gram};
use crate::svm::kernel::Kernel;
use crate::svm::memory::Budget;
use crate::{Monitor, Result};

/// Kernel matrices over some rows.
pub(super) struct Matrices<'a, R> {
    rows: &'a R,
    row_of_sample: &'a [usize],
    scaling: Option<&'a FoldMaps>,
    /// One for all training sets, one for each, or none.
    bases: Vec<Base<'a>>,
    share: Budget,
    /// How many paths may have their matrices in memory at the same time.
    pub(super) n_parallel: usize,
    monitor: &'a Monitor,
    buffers: Buffers,
    n_from_rows: Arc<AtomicU64>,
}

impl<'a, R: ScaledLayout> Matrices<'a, R> {
    /// The matrices of `paths`, each known by one of its candidates, for all samples and `n_folds`
    /// folds.
    pub(super) fn new(
        (rows, row_of_sample): (&'a R, &'a [usize]),
        paths: &[&'a SvmSpec],
        n_folds: usize,
        budget: Budget,
        monitor: &'a Monitor,
    ) -> Result<Self> {
        let scaling = paths[0].scaling.as_deref();
        let kernels: Vec<Kernel> = paths.iter().flat_map(|path| path.kernels.clone()).collect();
        let n_sets = if scaling.is_some() { n_folds + 1 } else { 1 };
        let plan = MemoryPlan::new(paths, &kernels, n_sets, budget, row_of_sample.len());
        let mut matrices = Self {
            rows,
            row_of_sample,
            scaling,
            bases: vec![],
            share: plan.share,
            n_parallel: plan.n_parallel,
            monitor,
            buffers: Buffers::default(),
            n_from_rows: Arc::default(),
        };
        if plan.has_base {
            for set in (0..n_sets).map(|index| index.checked_sub(1)) {
                let budgets = (plan.share, plan.for_products);
                match matrices.base(set, &kernels, budgets)? {
                    Some(base) => matrices.bases.push(base),
                    None => break,
                }
            }
        }
        Ok(matrices)
    }

    fn base(
        &self,
        set: TrainingSet,
        kernels: &[Kernel],
        budgets: (Budget, Budget),
    ) -> Result<Option<Base<'a>>> {
        let (order, monitor) = (self.row_of_sample, self.monitor);
        match self.scaling {
            None => Base::new(self.rows, order, kernels, budgets, monitor),
            Some(scaling) => {
                let rows = ScaledValues::new(self.rows, scaling.of_set(set))?;
                Base::new(rows, order, kernels, budgets, monitor)
            }
        }
    }

    /// The matrix of a kernel over the rows of a training set.
    pub(super) fn gram(&self, kernel: Kernel, set: TrainingSet) -> Result<Gram<'_>> {
        let (order, share, monitor) = (self.row_of_sample, self.share, self.monitor);
        let at = self.scaling.map_or(0, |_| set_index(set));
        let gram = match (self.bases.get(at), self.scaling) {
            (Some(base), _) => return base.derive(kernel, share, monitor),
            (None, None) => Gram::new(self.rows, order, kernel, share, monitor),
            (None, Some(scaling)) => {
                let rows = ScaledValues::new(self.rows, scaling.of_set(set))?;
                Gram::of_rows(rows, order, kernel, share, monitor)
            }
        };
        Ok(gram?.sharing(&self.buffers, &self.n_from_rows))
    }

    /// Number of kernel rows computed so far, without those of matrices in use that have no base.
    pub(super) fn rows_computed(&self) -> u64 {
        let of_bases: u64 = self.bases.iter().map(Base::rows_computed).sum();
        of_bases + self.n_from_rows.load(Ordering::Relaxed)
    }
}

/// How the kernel matrices share the budget.
struct MemoryPlan {
    has_base: bool,
    /// For each matrix of f32.
    share: Budget,
    /// For a base of inner products, which are f64.
    for_products: Budget,
    /// How many paths run at the same time: as many as fit with whole matrices beside the bases.
    n_parallel: usize,
}

impl MemoryPlan {
    /// `n_sets` is the number of bases.
    fn new(
        paths: &[&SvmSpec],
        kernels: &[Kernel],
        n_sets: usize,
        budget: Budget,
        n: usize,
    ) -> Self {
        let n_matrices = |path: &&SvmSpec| {
            if path.has_one_matrix() {
                1
            } else {
                // Two while folds 0 and 1 are merged.
                rayon::current_num_threads().max(2)
            }
        };
        let per_path = paths.iter().map(n_matrices).max().unwrap_or(1);
        let n_fit = budget.rows(n) / n.max(1);
        let amplifies = kernels.iter().any(|kernel| kernel.amplifies_rounding());
        // Matrices of f32 that are as large as a base.
        let size = if amplifies { 2 } else { 1 };
        let is_shared = match n_sets {
            1 => kernels.len() > 1,
            _ => paths.len() > 1,
        };
        let fits = n_fit >= n_sets * size + per_path;
        // A single matrix of distances or of few distinct values has a form for any budget.
        let has_base = is_shared && (fits || n_sets == 1);
        let n_base = match (is_shared, fits) {
            (true, true) => n_sets * size,
            (true, false) if n_sets == 1 && !amplifies => 1,
            _ => 0,
        };
        let n_parallel = (n_fit.saturating_sub(n_base) / per_path).clamp(1, paths.len());
        let n_shares = (n_base + n_parallel * per_path) as u64;
        Self {
            has_base,
            share: budget.share(n_shares),
            for_products: budget.fraction(if fits { size as u64 } else { 0 }, n_shares),
            n_parallel,
        }
    }
}
