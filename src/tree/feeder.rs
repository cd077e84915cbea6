//! Feeding and evaluating: what the tree and the refits have in common.

use std::marker::PhantomData;

use super::few::Few;
use super::learner::{Effort, Learner};
use super::order::{Order, Phase};
use super::undo::{Forget, Undo};
use crate::data::Samples;
use crate::{Cost, Monitor, Result};

/// Numbers to read or write between two looks at the monitor: a millisecond or so.
const STRIDE: f64 = (1 << 20) as f64;

/// Parts of a stride that fit the second cache of a core.
const PARTS: usize = 16;

/// Numbers that fit the cache of a core.
pub(super) const CACHE: f64 = (1 << 15) as f64;

/// Feeds models with rows of `data` and asks for their outputs.
pub(crate) struct Feeder<'a, D: ?Sized, L> {
    data: &'a D,
    order: Order,
    monitor: &'a Monitor,
    /// Rows between two looks at the monitor.
    stride: usize,
    /// Whether a phase may be cut at every stride.
    divisible: bool,
    learner: PhantomData<fn(L)>,
}

/// Counts, and the room for random orders.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) cost: Cost,
    buffers: [Vec<usize>; 2],
    unreported: usize,
}

impl<'a, D: Samples + ?Sized, L: Learner<D>> Feeder<'a, D, L> {
    pub(crate) fn new(data: &'a D, effort: &Effort, order: Order, monitor: &'a Monitor) -> Self {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, saturating
        let stride = (STRIDE / effort.update.max(1.0)).max(1.0) as usize;
        Self {
            data,
            order,
            monitor,
            stride,
            divisible: !effort.indivisible,
            learner: PhantomData,
        }
    }

    /// The data.
    pub(super) fn data(&self) -> &D {
        self.data
    }

    /// The same for other data.
    pub(super) fn over<'b, E: Samples>(&'b self, data: &'b E) -> Feeder<'b, E, L>
    where
        L: Learner<E>,
    {
        Feeder {
            data,
            order: self.order,
            monitor: self.monitor,
            stride: self.stride,
            divisible: self.divisible,
            learner: PhantomData,
        }
    }

    /// Whether a phase may be fed in parts, with other work between them.
    pub(super) fn may_wait(&self) -> bool {
        self.divisible && self.order == Order::Fixed
    }

    /// Feeds the rows of a training phase.
    #[inline]
    pub(crate) fn feed<const N: usize>(
        &self,
        model: &mut L,
        phase: &Phase<'_, N>,
        undo: &mut impl Undo,
        ledger: &mut Ledger,
    ) -> Result<()> {
        ledger.cost.rows_fed += phase.len() as u64;
        match self.order {
            Order::Random { seed } if phase.len() > 1 => {
                let rows = phase.shuffle(seed, &mut ledger.buffers[0]);
                self.feed_in_order(model, rows, undo, &mut ledger.unreported)
            }
            _ => {
                for rows in phase.rows {
                    self.feed_in_order(model, rows, undo, &mut ledger.unreported)?;
                }
                Ok(())
            }
        }
    }

    /// Feeds two models the rows of a training phase each.
    #[inline]
    pub(super) fn feed_both(
        &self,
        models: [&mut L; 2],
        phases: [&Phase<'_, 1>; 2],
        ledger: &mut Ledger,
    ) -> Result<()> {
        let n_rows = phases[0].len() + phases[1].len();
        let [first, second] = models;
        if n_rows > self.stride {
            self.feed(first, phases[0], &mut Forget, ledger)?;
            return self.feed(second, phases[1], &mut Forget, ledger);
        }
        ledger.cost.rows_fed += n_rows as u64;
        let rows = match self.order {
            Order::Random { seed } => {
                let [first, second] = &mut ledger.buffers;
                [
                    phases[0].shuffle(seed, first),
                    phases[1].shuffle(seed, second),
                ]
            }
            Order::Fixed => phases.map(|phase| phase.rows[0]),
        };
        L::learn_both([first, second], self.data, rows)?;
        self.report(n_rows, &mut ledger.unreported)
    }

    /// Feeds many models the same rows, where a phase may be fed in parts: rows come once for all of
    /// them, and models learn two at a time.
    pub(super) fn feed_all(
        &self,
        models: &mut [L],
        rows: &[usize],
        ledger: &mut Ledger,
    ) -> Result<()> {
        ledger.cost.rows_fed += (models.len() * rows.len()) as u64;
        let (pairs, rest) = models.as_chunks_mut::<2>();
        for rows in rows.chunks((self.stride / PARTS).max(1)) {
            for [first, second] in &mut *pairs {
                L::learn_both([first, second], self.data, [rows, rows])?;
                self.report(2 * rows.len(), &mut ledger.unreported)?;
            }
            for model in &mut *rest {
                model.update(self.data, rows)?;
                self.report(rows.len(), &mut ledger.unreported)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn feed_in_order(
        &self,
        model: &mut L,
        rows: &[usize],
        undo: &mut impl Undo,
        unreported: &mut usize,
    ) -> Result<()> {
        if rows.len() <= self.stride {
            model.learn(self.data, rows, undo)?;
            return self.report(rows.len(), unreported);
        }
        for rows in self.strides(rows, 1) {
            model.learn(self.data, rows, undo)?;
            self.report(rows.len(), unreported)?;
        }
        Ok(())
    }

    /// Writes the outputs for held-out rows.
    #[inline]
    pub(crate) fn evaluate(
        &self,
        model: &L,
        rows: &[usize],
        mut out: &mut [f64],
        ledger: &mut Ledger,
    ) -> Result<()> {
        ledger.cost.rows_evaluated += rows.len() as u64;
        if rows.len() <= self.stride {
            model.evaluate(self.data, rows, out)?;
            return self.report(rows.len(), &mut ledger.unreported);
        }
        for rows in self.strides(rows, model.batch(self.data)) {
            let here;
            (here, out) = out.split_at_mut(rows.len() * model.n_outputs());
            model.evaluate(self.data, rows, here)?;
            self.report(rows.len(), &mut ledger.unreported)?;
        }
        Ok(())
    }

    /// [`Learner::settle`] for folds of one row from the one at `first` on. Counts what the walk feeds
    /// and evaluates, and what it copies, short as it is.
    #[inline]
    pub(super) fn settle(
        &self,
        model: &L,
        rows: &[usize],
        first: usize,
        out: &mut [f64],
        ledger: &mut Ledger,
    ) -> Result<bool> {
        let mut few = Few::new(rows, first, self.order, &mut ledger.buffers[0]);
        if !model.settle(self.data, &mut few, out)? {
            return Ok(false);
        }
        let n_fed = few.n_fed();
        ledger.cost.copies += rows.len() as u64 - 1;
        ledger.cost.rows_fed += n_fed as u64;
        ledger.cost.rows_evaluated += rows.len() as u64;
        self.report(n_fed + rows.len(), &mut ledger.unreported)?;
        Ok(true)
    }

    /// Whether to go on. To be asked before work is split between threads: what has not begun when
    /// the caller cancels must not begin.
    pub(super) fn check(&self) -> Result<()> {
        self.monitor.check()
    }

    /// Tells the monitor what it has not been told yet.
    pub(crate) fn flush(&self, ledger: &mut Ledger) -> Result<()> {
        self.monitor
            .advance(std::mem::take(&mut ledger.unreported) as u64)
    }

    /// Pieces that take a moment each, but of `least` rows at least.
    #[inline]
    fn strides<'r>(&self, rows: &'r [usize], least: usize) -> std::slice::Chunks<'r, usize> {
        let length = if self.divisible {
            self.stride.max(least)
        } else {
            rows.len().max(1)
        };
        rows.chunks(length)
    }

    /// Counts rows, and looks at the monitor once a stride: leaves cost no atomic operation.
    #[inline]
    fn report(&self, rows: usize, unreported: &mut usize) -> Result<()> {
        *unreported += rows;
        if *unreported < self.stride {
            return Ok(());
        }
        self.monitor.advance(std::mem::take(unreported) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Examples};
    use crate::learners::Pegasos;

    #[test]
    fn pieces_are_as_long_as_a_moment_or_a_batch() {
        let data = Examples::unlabelled(Dense::new(&[], 0, 1).expect("shape"));
        let monitor = Monitor::new();
        let rows = [0; 20];
        let lengths = |update: f64, indivisible: bool, least: usize| -> Vec<usize> {
            let effort = Effort {
                update,
                copy: 1.0,
                undo: None,
                indivisible,
            };
            let feeder: Feeder<'_, _, Pegasos> =
                Feeder::new(&data, &effort, Order::Fixed, &monitor);
            feeder.strides(&rows, least).map(<[usize]>::len).collect()
        };
        assert_eq!(lengths(1.0, false, 1), [20]);
        assert_eq!(lengths(STRIDE / 6.0, false, 1), [6, 6, 6, 2]);
        assert_eq!(lengths(STRIDE / 6.0, false, 15), [15, 5]);
        assert_eq!(lengths(STRIDE / 6.0, true, 1), [20]);
    }
}
