//! Where engines get the rows of their folds from.

use std::ops::Range;

use crate::Result;
use crate::data::Dataset;

/// What is done with a piece of rows: its positions in fold order, data that hold it, and the row of
/// each position in these data.
pub(crate) type PieceWork<'w> = dyn FnMut(Range<usize>, &Dataset<'_>, &[usize]) -> Result<()> + 'w;

/// A source of rows by their positions in fold order.
pub(crate) trait RowSource: Sync {
    /// Calls `work` with the rows at `positions`, in one piece or in several consecutive ones. They
    /// will be read `n_readings` times in that call.
    fn read(
        &self,
        positions: Range<usize>,
        n_readings: usize,
        work: &mut PieceWork<'_>,
    ) -> Result<()>;

    /// Whether all rows are in the data that the engine has.
    fn is_in_memory(&self) -> bool {
        true
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
    fn read(&self, positions: Range<usize>, _: usize, work: &mut PieceWork<'_>) -> Result<()> {
        work(positions.clone(), self.data, &self.rows[positions])
    }
}
