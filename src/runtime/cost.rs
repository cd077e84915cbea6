//! Exact counters of the work an engine did.
//!
//! Times depend on the machine; counts do not. Tests hold these to the theory,
//! and `CVResult.cost` shows them.

use std::ops::AddAssign;

/// What an engine did to compute its outputs. Counters that do not apply to an engine stay 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Models trained from nothing.
    pub fits: u64,
    /// Rows fed to models, each time counted.
    pub rows_fed: u64,
    /// Held-out rows predicted.
    pub rows_evaluated: u64,
    /// Models forked or copied, including those of which only the outputs were ever written.
    pub copies: u64,
    /// Bytes of model vectors copied: by whole copies, or by writes to shared vectors.
    pub bytes_copied: u64,
    /// Models merged into others.
    pub merges: u64,
    /// Overwritten values saved in undo logs.
    pub undo_entries: u64,
    /// Most models alive at one time.
    pub peak_models: u64,
    /// Rows of the kernel matrix that were computed.
    pub kernel_rows: u64,
    /// Uses of a kernel row that was there already.
    pub cache_hits: u64,
    /// Steps of the SMO solver.
    pub smo_iterations: u64,
    /// Rows read for gradients of smooth losses, once for each problem.
    pub gradient_rows: u64,
    /// Rows read for Hessians, for products with them, and for bounds.
    pub hessian_rows: u64,
}

impl Cost {
    /// The counters of engines that feed rows to models, with their names.
    pub fn of_models(&self) -> [(&'static str, u64); 8] {
        [
            ("fits", self.fits),
            ("rows_fed", self.rows_fed),
            ("rows_evaluated", self.rows_evaluated),
            ("copies", self.copies),
            ("bytes_copied", self.bytes_copied),
            ("merges", self.merges),
            ("undo_entries", self.undo_entries),
            ("peak_models", self.peak_models),
        ]
    }

    /// The counters of the engines of least squares, penalised or not, with their names.
    pub fn of_linear_models(&self) -> [(&'static str, u64); 3] {
        [
            ("fits", self.fits),
            ("rows_fed", self.rows_fed),
            ("rows_evaluated", self.rows_evaluated),
        ]
    }

    /// The counters of the engine of smooth losses, with their names.
    pub fn of_smooth_losses(&self) -> [(&'static str, u64); 3] {
        [
            ("gradient_rows", self.gradient_rows),
            ("hessian_rows", self.hessian_rows),
            ("rows_evaluated", self.rows_evaluated),
        ]
    }

    /// The counters of the engine of support vector machines, with their names.
    pub fn of_svms(&self) -> [(&'static str, u64); 5] {
        [
            ("fits", self.fits),
            ("rows_evaluated", self.rows_evaluated),
            ("kernel_rows", self.kernel_rows),
            ("cache_hits", self.cache_hits),
            ("smo_iterations", self.smo_iterations),
        ]
    }
}

impl Cost {
    /// Without the counters that belong to all candidates of a pass together.
    pub(crate) fn unshared(self) -> Self {
        Self {
            undo_entries: 0,
            bytes_copied: 0,
            ..self
        }
    }
}

impl AddAssign for Cost {
    /// Joins the cost of another part of the same work: counts add up, the peak is the larger.
    fn add_assign(&mut self, other: Self) {
        self.fits += other.fits;
        self.rows_fed += other.rows_fed;
        self.rows_evaluated += other.rows_evaluated;
        self.copies += other.copies;
        self.bytes_copied += other.bytes_copied;
        self.merges += other.merges;
        self.undo_entries += other.undo_entries;
        self.peak_models = self.peak_models.max(other.peak_models);
        self.kernel_rows += other.kernel_rows;
        self.cache_hits += other.cache_hits;
        self.smo_iterations += other.smo_iterations;
        self.gradient_rows += other.gradient_rows;
        self.hessian_rows += other.hessian_rows;
    }
}
