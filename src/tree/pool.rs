//! Models and other things to be used again, and to be shared between threads.

use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::feeder::{Feeder, Ledger};
use super::learner::{Learner, Model};
use super::undo::Log;
use crate::data::Samples;
use crate::{Cost, Result};

/// What one thread of work needs at hand. Used again and again, so that nodes allocate nothing.
pub(crate) struct Workspace<L> {
    pub(crate) log: Log,
    pub(crate) ledger: Ledger,
    /// Models of nodes to come, which have yet to learn the rows between here and there.
    pub(super) waiting: Vec<L>,
    models: Vec<L>,
    made: u64,
}

impl<L: Model> Workspace<L> {
    /// A copy of `model`, in a model that is no longer needed if there is one.
    #[inline]
    pub(crate) fn lend(&mut self, model: &L) -> Result<L> {
        if let Some(mut used) = self.models.pop() {
            used.copy_from(model)?;
            return Ok(used);
        }
        self.made += 1;
        model.copy()
    }

    /// Takes a model that is no longer needed.
    #[inline]
    pub(crate) fn give_back(&mut self, model: L) {
        self.models.push(model);
    }
}

impl<L> Default for Workspace<L> {
    fn default() -> Self {
        Self {
            log: Log::default(),
            ledger: Ledger::default(),
            waiting: Vec::new(),
            models: Vec::new(),
            made: 0,
        }
    }
}

/// Workspaces that nobody uses at the moment.
///
/// Whoever waits for another thread puts its workspace here first, so there are never more of them
/// than threads.
pub(crate) struct Pool<L> {
    idle: Mutex<Vec<Workspace<L>>>,
    /// Tasks that are at work, or would be if there were a thread for them.
    n_tasks: AtomicUsize,
}

impl<L: Model> Pool<L> {
    pub(crate) fn new() -> Self {
        Self {
            idle: Mutex::new(Vec::new()),
            n_tasks: AtomicUsize::new(1),
        }
    }

    fn take(&self) -> Workspace<L> {
        lock(&self.idle).pop().unwrap_or_default()
    }

    fn put(&self, workspace: Workspace<L>) {
        lock(&self.idle).push(workspace);
    }

    /// Runs `work` with a workspace of its own.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Workspace<L>) -> T) -> T {
        let mut workspace = self.take();
        let result = work(&mut workspace);
        self.put(workspace);
        result
    }

    /// Whether there is a thread without a task. A guess: others may fork at the same time.
    pub(crate) fn has_idle_thread(&self) -> bool {
        self.n_tasks.load(Ordering::Relaxed) < rayon::current_num_threads()
    }

    /// Runs both, on two threads if there are two, each with a workspace of its own. When both
    /// fail, the error is that of the first, whoever was faster.
    pub(crate) fn fork(
        &self,
        workspace: &mut Workspace<L>,
        first: impl FnOnce(&mut Workspace<L>) -> Result<()> + Send,
        second: impl FnOnce(&mut Workspace<L>) -> Result<()> + Send,
    ) -> Result<()> {
        let ends = |result| {
            self.n_tasks.fetch_sub(1, Ordering::Relaxed);
            result
        };
        self.put(mem::take(workspace));
        self.n_tasks.fetch_add(1, Ordering::Relaxed);
        let (first, second) = rayon::join(|| ends(self.with(first)), || ends(self.with(second)));
        self.n_tasks.fetch_add(1, Ordering::Relaxed);
        *workspace = self.take();
        first.and(second)
    }

    /// Ends all work: what it cost, counted over all threads.
    pub(crate) fn close<D: Samples + ?Sized>(&self, feeder: &Feeder<'_, D, L>) -> Result<Cost>
    where
        L: Learner<D>,
    {
        let mut total = Cost::default();
        let mut models = 0;
        for mut workspace in lock(&self.idle).drain(..) {
            feeder.flush(&mut workspace.ledger)?;
            total += workspace.ledger.cost;
            models += workspace.made;
        }
        total.peak_models = models;
        Ok(total)
    }
}

/// A model that two threads want to change: the first to come copies it, the second takes it as it
/// is. One copy, made by the thread that uses it.
pub(crate) struct Shared<'a, L>(Mutex<(bool, &'a mut L)>);

impl<'a, L: Model> Shared<'a, L> {
    pub(crate) fn new(model: &'a mut L) -> Self {
        Self(Mutex::new((false, model)))
    }

    /// Runs `work` on a model that is the caller's alone. To be called twice at most.
    pub(crate) fn with(
        &self,
        workspace: &mut Workspace<L>,
        work: impl FnOnce(&mut L, &mut Workspace<L>) -> Result<()>,
    ) -> Result<()> {
        // The lock is held while the first comer copies, and then for as long as the second works.
        let mut guard = lock(&self.0);
        let (copied, original) = &mut *guard;
        if *copied {
            return work(original, workspace);
        }
        *copied = true;
        let mut copy = workspace.lend(original)?;
        drop(guard);
        workspace.ledger.cost.copies += 1;
        work(&mut copy, workspace)?;
        workspace.give_back(copy);
        Ok(())
    }
}

/// A panic elsewhere ends the work anyway; what it left behind is not used.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
