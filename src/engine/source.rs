//! Where engines get the rows of their folds from.

use std::ops::Range;

use crate::data::Dataset;
use crate::learners::{CostModel, Learner};
use crate::{Error, Monitor, Result};

/// Receives some rows: their positions in fold order, data that hold them, and the row of each position
/// in these data.
pub(crate) type RowVisitor<'w> = dyn FnMut(Range<usize>, &Dataset<'_>, &[usize]) -> Result<()> + 'w;

/// A source of rows by their positions in fold order.
pub(crate) trait RowSource: Sync {
    /// Calls `visit` with the rows at `positions`, in one piece or in several consecutive ones, each of
    /// which it will read `n_reads` times.
    fn read(
        &self,
        positions: Range<usize>,
        n_reads: usize,
        visit: &mut RowVisitor<'_>,
    ) -> Result<()>;

    /// The largest number of rows in a block, or `None` if all rows are in the data that the engine
    /// has.
    fn block_rows(&self) -> Option<usize> {
        None
    }

    /// What a learner's operations cost on these rows, estimated from the first block.
    fn cost_model(&self, learner: &dyn Learner) -> Result<CostModel> {
        let mut cost_model = None;
        self.read(0..1, 1, &mut |_, data, _| {
            cost_model = Some(learner.cost_model(data));
            Ok(())
        })?;
        cost_model.ok_or_else(|| Error::parameter("X", "rows", "none"))
    }
}

/// Rows in memory, used where they are.
#[derive(Debug)]
pub(crate) struct InMemory<'a> {
    pub(crate) data: &'a Dataset<'a>,
    /// The row at each position in fold order.
    pub(crate) rows: &'a [usize],
}

impl RowSource for InMemory<'_> {
    fn read(&self, positions: Range<usize>, _: usize, visit: &mut RowVisitor<'_>) -> Result<()> {
        visit(positions.clone(), self.data, &self.rows[positions])
    }
}

/// The source of `rows` of `data`. Rows on disk are read in blocks, which begin at the positions that
/// `starts` gives for a number of rows per block.
#[cfg_attr(
    not(feature = "stored"),
    allow(unused_variables, clippy::unnecessary_wraps)
)]
pub(crate) fn row_source<'a>(
    data: &'a Dataset<'a>,
    rows: &'a [usize],
    monitor: &'a Monitor,
    starts: impl Fn(usize) -> Vec<usize>,
) -> Result<Box<dyn RowSource + 'a>> {
    #[cfg(feature = "stored")]
    if let crate::data::Rows::Stored(stored) = *data.rows() {
        let blocks = crate::stored::StoredBlocks::new((*data, stored), rows, monitor, starts)?;
        return Ok(Box::new(blocks));
    }
    Ok(Box::new(InMemory { data, rows }))
}

/// Where blocks of `block_rows` positions begin, whatever the folds, and where the last ends.
pub(crate) fn even_starts(n_positions: usize, block_rows: usize) -> Vec<usize> {
    let mut starts: Vec<_> = (0..n_positions).step_by(block_rows).collect();
    starts.push(n_positions);
    starts
}
