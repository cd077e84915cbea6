//! Scratch models, counters and undo logs of the threads of a call.

use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::driver::{Counters, Driver};
use crate::learners::{Learner, UndoLog};
use crate::runtime::buffers::BufferPool;
use crate::{Cost, Result};

/// What one thread needs for its work; reused, so that nodes allocate nothing.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    pub(crate) log: UndoLog,
    pub(crate) counters: Counters,
    scratch: Vec<Box<dyn Learner>>,
    /// Forks less drops on this thread, and their largest number; a fork may be dropped by another
    /// thread than it was made by.
    alive: i64,
    peak: i64,
}

impl Workspace {
    /// A model that shares all vectors with `model`.
    pub(crate) fn fork(&mut self, model: &dyn Learner) -> Result<Box<dyn Learner>> {
        self.alive += 1;
        self.peak = self.peak.max(self.alive);
        model.fork()
    }

    /// A copy of `model` that shares nothing with it, in a scratch model if there is one.
    #[inline]
    pub(crate) fn copy(&mut self, model: &dyn Learner) -> Result<Box<dyn Learner>> {
        let mut copy = match self.scratch.pop() {
            Some(scratch) => scratch,
            None => self.fork(model)?,
        };
        copy.copy_from(model)?;
        Ok(copy)
    }

    /// Drops a fork and counts what it copied.
    pub(crate) fn drop_fork(&mut self, mut model: Box<dyn Learner>) {
        self.counters.cost.bytes_copied += model.take_bytes_copied();
        self.alive -= 1;
    }

    /// Keeps a copy as a scratch model.
    #[inline]
    pub(crate) fn release(&mut self, model: Box<dyn Learner>) {
        self.scratch.push(model);
    }

    fn finish(&mut self) {
        for mut model in mem::take(&mut self.scratch) {
            self.counters.cost.bytes_copied += model.take_bytes_copied();
        }
    }
}

/// Workspaces of the threads of a call, and a count of the threads that are busy.
///
/// A thread that waits for another one returns its workspace first, so there are never more of them
/// than threads.
#[derive(Debug)]
pub(crate) struct WorkspacePool {
    workspaces: BufferPool<Workspace>,
    /// Tasks that run, or would run if there were a thread for them.
    n_tasks: AtomicUsize,
}

impl WorkspacePool {
    pub(crate) fn new() -> Self {
        Self {
            workspaces: BufferPool::default(),
            n_tasks: AtomicUsize::new(1),
        }
    }

    /// A workspace, to be released when its work is done.
    pub(crate) fn acquire(&self) -> Workspace {
        self.workspaces.acquire().unwrap_or_default()
    }

    /// Takes a workspace back, with its counters.
    pub(crate) fn release(&self, workspace: Workspace) {
        self.workspaces.release(workspace);
    }

    /// Runs `work` with a workspace of its own.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Workspace) -> T) -> T {
        let mut workspace = self.acquire();
        let result = work(&mut workspace);
        self.release(workspace);
        result
    }

    /// Whether there is a thread without a task. An estimate: others may fork at the same time.
    pub(crate) fn has_idle_thread(&self) -> bool {
        self.n_tasks.load(Ordering::Relaxed) < rayon::current_num_threads()
    }

    /// Runs both closures, on two threads if there are two, each with a workspace of its own. When
    /// both fail, the error is that of the first.
    pub(crate) fn join(
        &self,
        workspace: &mut Workspace,
        first: impl FnOnce(&mut Workspace) -> Result<()> + Send,
        second: impl FnOnce(&mut Workspace) -> Result<()> + Send,
    ) -> Result<()> {
        let ends = |result| {
            self.n_tasks.fetch_sub(1, Ordering::Relaxed);
            result
        };
        self.release(mem::take(workspace));
        self.n_tasks.fetch_add(1, Ordering::Relaxed);
        let (first, second) = rayon::join(|| ends(self.with(first)), || ends(self.with(second)));
        self.n_tasks.fetch_add(1, Ordering::Relaxed);
        *workspace = self.acquire();
        first.and(second)
    }

    /// Ends all work: its cost, summed over all threads.
    pub(crate) fn finish(&self, driver: &Driver<'_>) -> Result<Cost> {
        let mut total = Cost::default();
        let mut peak_models = 0_i64;
        for mut workspace in self.workspaces.drain() {
            workspace.finish();
            driver.flush(&mut workspace.counters)?;
            total += workspace.counters.cost;
            peak_models += workspace.peak;
        }
        total.peak_models = peak_models.unsigned_abs();
        Ok(total)
    }
}
