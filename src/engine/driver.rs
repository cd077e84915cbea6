//! Updating and evaluating models, with counters and progress: what tree, merge and refit share.

use crate::data::Dataset;
use crate::learners::{Batch, CostModel, LeafBlock, Learner, Order, UndoLog};
use crate::runtime::cache;
use crate::{Cost, Monitor, Result};

/// Values read or written between two polls of the monitor: about a millisecond.
const REPORT_INTERVAL: f64 = cache::LLC_SHARE_VALUES;

/// Pieces of a report interval that fit the second-level cache of a core.
const L2_PARTS: usize = 16;

/// Updates models with rows of `data` and evaluates them.
#[derive(Debug)]
pub(crate) struct Driver<'a> {
    data: &'a Dataset<'a>,
    order: Order,
    monitor: &'a Monitor,
    /// Rows between two polls of the monitor.
    report_rows: usize,
    atomic_batches: bool,
    /// Values that one row overwrites, and values of the model.
    undo_values: f64,
    model_values: f64,
}

/// Counters of one thread, and its buffers for random orders.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) cost: Cost,
    buffers: [Vec<usize>; 2],
    unreported: usize,
}

impl<'a> Driver<'a> {
    pub(crate) fn new(
        data: &'a Dataset<'a>,
        cost_model: &CostModel,
        order: Order,
        monitor: &'a Monitor,
    ) -> Self {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, saturating
        let report_rows = (REPORT_INTERVAL / cost_model.update.max(1.0)).max(1.0) as usize;
        Self {
            data,
            order,
            monitor,
            report_rows,
            atomic_batches: cost_model.atomic_batches,
            undo_values: cost_model.undo.unwrap_or(0.0),
            model_values: cost_model.copy,
        }
    }

    /// The same driver for other data.
    pub(crate) fn with_data<'b>(&self, data: &'b Dataset<'b>) -> Driver<'b>
    where
        'a: 'b,
    {
        Driver { data, ..*self }
    }

    /// The data.
    pub(crate) fn data(&self) -> &'a Dataset<'a> {
        self.data
    }

    /// Whether a batch may be learnt in parts, with other work between them.
    pub(crate) fn can_defer(&self) -> bool {
        !self.atomic_batches && !matches!(self.order, Order::Random { .. })
    }

    /// Updates a model with the rows of a training batch.
    #[inline]
    pub(crate) fn update<const N: usize>(
        &self,
        model: &mut dyn Learner,
        batch: &Batch<'_, N>,
        mut undo: Option<&mut UndoLog>,
        counters: &mut Counters,
    ) -> Result<()> {
        counters.cost.rows_fed += batch.len() as u64;
        let Counters {
            buffers: [buffer, _],
            unreported,
            ..
        } = counters;
        match self.order {
            Order::Random { seed } if batch.len() > 1 => {
                let rows = batch.shuffle(seed, buffer);
                self.update_in_order(model, rows, undo, unreported)
            }
            _ => batch.rows.iter().try_for_each(|rows| {
                self.update_in_order(model, rows, undo.as_deref_mut(), unreported)
            }),
        }
    }

    /// Saves a whole model in the log.
    pub(crate) fn save(&self, model: &dyn Learner, log: &mut UndoLog) -> Result<()> {
        log.reserve(self.model_values)?;
        model.save(log);
        Ok(())
    }

    /// Updates two models with the rows of a training batch each.
    #[inline]
    pub(crate) fn update_pair(
        &self,
        [first, second]: [&mut dyn Learner; 2],
        batches: [&Batch<'_, 1>; 2],
        counters: &mut Counters,
    ) -> Result<()> {
        let n_rows = batches[0].len() + batches[1].len();
        if n_rows > self.report_rows {
            self.update(first, batches[0], None, counters)?;
            return self.update(second, batches[1], None, counters);
        }
        counters.cost.rows_fed += n_rows as u64;
        let rows = match self.order {
            Order::Random { seed } => {
                let [first, second] = &mut counters.buffers;
                [
                    batches[0].shuffle(seed, first),
                    batches[1].shuffle(seed, second),
                ]
            }
            Order::Fixed | Order::Once { .. } => batches.map(|batch| batch.rows[0]),
        };
        first.update_pair(second, self.data, rows)?;
        self.report(n_rows, &mut counters.unreported)
    }

    /// Updates all models with the same rows, in pairs, one cache block of rows after the other.
    pub(crate) fn update_all(
        &self,
        models: &mut [Box<dyn Learner>],
        rows: &[usize],
        counters: &mut Counters,
    ) -> Result<()> {
        counters.cost.rows_fed += (models.len() * rows.len()) as u64;
        let (pairs, rest) = models.as_chunks_mut::<2>();
        for rows in rows.chunks((self.report_rows / L2_PARTS).max(1)) {
            for [first, second] in &mut *pairs {
                first.update_pair(&mut **second, self.data, [rows, rows])?;
                self.report(2 * rows.len(), &mut counters.unreported)?;
            }
            for model in &mut *rest {
                model.update(self.data, rows, None)?;
                self.report(rows.len(), &mut counters.unreported)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn update_in_order(
        &self,
        model: &mut dyn Learner,
        rows: &[usize],
        mut undo: Option<&mut UndoLog>,
        unreported: &mut usize,
    ) -> Result<()> {
        for rows in self.pieces(rows, 1) {
            if let Some(log) = &mut undo {
                log.reserve(self.undo_values * rows.len() as f64)?;
            }
            model.update(self.data, rows, undo.as_deref_mut())?;
            self.report(rows.len(), unreported)?;
        }
        Ok(())
    }

    /// Writes the outputs for held-out rows.
    #[inline]
    pub(crate) fn evaluate(
        &self,
        model: &dyn Learner,
        rows: &[usize],
        mut out: &mut [f64],
        counters: &mut Counters,
    ) -> Result<()> {
        counters.cost.rows_evaluated += rows.len() as u64;
        let n_outputs = model.n_outputs();
        for rows in self.pieces(rows, model.min_evaluation_rows(self.data)) {
            let here;
            (here, out) = out.split_at_mut(rows.len() * n_outputs);
            model.evaluate(self.data, rows, here)?;
            self.report(rows.len(), &mut counters.unreported)?;
        }
        Ok(())
    }

    /// [`Learner::leave_one_out_block`]. Counts what Algorithm 1 would update, evaluate and fork.
    #[inline]
    pub(crate) fn leave_one_out_block(
        &self,
        model: &dyn Learner,
        (rows, first_fold): (&[usize], usize),
        out: &mut [f64],
        counters: &mut Counters,
    ) -> Result<bool> {
        let mut block = LeafBlock {
            rows,
            first_fold,
            order: self.order,
        };
        if !model.leave_one_out_block(self.data, &mut block, out)? {
            return Ok(false);
        }
        let n_fed = block.n_rows_fed();
        counters.cost.copies += rows.len() as u64 - 1;
        counters.cost.rows_fed += n_fed as u64;
        counters.cost.rows_evaluated += rows.len() as u64;
        self.report(n_fed + rows.len(), &mut counters.unreported)?;
        Ok(true)
    }

    /// An error if the work was cancelled. To be called before work is split between threads.
    pub(crate) fn check(&self) -> Result<()> {
        self.monitor.check()
    }

    /// Reports the rest of the work of a thread.
    pub(crate) fn flush(&self, counters: &mut Counters) -> Result<()> {
        self.monitor
            .advance(std::mem::take(&mut counters.unreported) as u64)
    }

    /// `rows` in pieces of one report interval, but of `min_rows` at least.
    #[inline]
    fn pieces<'r>(&self, rows: &'r [usize], min_rows: usize) -> std::slice::Chunks<'r, usize> {
        let n_rows = if self.atomic_batches {
            rows.len().max(1)
        } else {
            self.report_rows.max(min_rows)
        };
        rows.chunks(n_rows)
    }

    /// Counts rows, and polls the monitor once per report interval: leaves cost no atomic operation.
    #[inline]
    fn report(&self, rows: usize, unreported: &mut usize) -> Result<()> {
        *unreported += rows;
        if *unreported < self.report_rows {
            return Ok(());
        }
        self.monitor.advance(std::mem::take(unreported) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_one_report_interval_or_one_batch() {
        let data = Dataset::external(20);
        let monitor = Monitor::new();
        let rows = [0; 20];
        let lengths = |update: f64, atomic_batches: bool, min_rows: usize| -> Vec<usize> {
            let cost_model = CostModel {
                update,
                copy: 1.0,
                undo: None,
                atomic_batches,
            };
            let driver = Driver::new(&data, &cost_model, Order::Fixed, &monitor);
            driver.pieces(&rows, min_rows).map(<[usize]>::len).collect()
        };
        assert_eq!(lengths(1.0, false, 1), [20]);
        assert_eq!(lengths(REPORT_INTERVAL / 6.0, false, 1), [6, 6, 6, 2]);
        assert_eq!(lengths(REPORT_INTERVAL / 6.0, false, 15), [15, 5]);
        assert_eq!(lengths(REPORT_INTERVAL / 6.0, true, 1), [20]);
    }
}
