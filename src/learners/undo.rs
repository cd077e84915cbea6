//! The undo log: old values of what an update overwrites.
//!
//! A log stores values and puts them back; nothing is ever subtracted, so reverting is exact to the
//! last bit. Kernels are written once, against [`Undo`]: with [`NoUndo`] the saving compiles to
//! nothing, with [`UndoLog`] the update can be reverted.

use crate::Result;
use crate::data::Row;
use crate::runtime::memory;

/// Receives every value that an update is about to overwrite. The scalars of a
/// [`State`](super::State) count as the vector after the last.
pub trait Undo {
    /// Whether anything is saved.
    const SAVES: bool = true;

    /// Element `index` of `vector` holds `value` and is about to change.
    fn save(&mut self, vector: usize, index: usize, value: f64);

    /// The elements of `vector` from `start` on hold `values` and are about to change.
    #[inline(always)]
    fn save_all(&mut self, vector: usize, start: usize, values: &[f64]) {
        for (index, &value) in (start..).zip(values) {
            self.save(vector, index, value);
        }
    }

    /// The elements of `vector` at the stored features of `row`, counted from `start`, hold those of
    /// `weights` and are about to change.
    #[inline(always)]
    fn save_row<R: Row>(&mut self, row: R, vector: usize, start: usize, weights: &[f64]) {
        for (feature, _) in row.entries() {
            self.save(vector, start + feature, weights[feature]);
        }
    }
}

/// Saves nothing: for updates that are not reverted.
#[derive(Clone, Copy, Debug)]
pub struct NoUndo;

impl Undo for NoUndo {
    const SAVES: bool = false;

    #[inline(always)]
    fn save(&mut self, _: usize, _: usize, _: f64) {}

    #[inline(always)]
    fn save_all(&mut self, _: usize, _: usize, _: &[f64]) {}

    #[inline(always)]
    fn save_row<R: Row>(&mut self, _: R, _: usize, _: usize, _: &[f64]) {}
}

/// Entries from which memory is reserved before they are saved.
const MIN_RESERVED: usize = 1 << 16;

/// Saves everything, so that a state can be reverted to any earlier length of the log.
#[derive(Debug, Default)]
pub struct UndoLog {
    entries: Vec<Entry>,
    /// Added to the index of every vector: see [`UndoLog::set_offset`].
    offset: u32,
}

/// A saved value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    vector: u32,
    pub(super) index: u32,
    pub(super) value: f64,
}

impl UndoLog {
    /// The number of saved values: a mark to revert to.
    #[allow(clippy::len_without_is_empty)] // a point in time, not a container's size
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Reserves memory for about `n_values` more, if that is much.
    #[inline]
    pub(crate) fn reserve(&mut self, n_values: f64) -> Result<()> {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturating
        let n_values = n_values as usize;
        if n_values < MIN_RESERVED {
            return Ok(());
        }
        memory::reserve("the undo log", &mut self.entries, n_values)
    }

    /// Removes the entries after the first `mark` and hands them to `restore`, the newest run of
    /// entries of one vector first.
    pub(super) fn revert_runs(&mut self, mark: usize, mut restore: impl FnMut(usize, &[Entry])) {
        let newer = self.entries[mark..].chunk_by(|a, b| a.vector == b.vector);
        for run in newer.rev() {
            restore(run[0].vector as usize, run);
        }
        self.entries.truncate(mark);
    }

    /// From now on vector `v` is saved as vector `offset + v`: for models made of several states.
    ///
    /// # Panics
    /// When there are more than 2³² vectors.
    pub fn set_offset(&mut self, offset: usize) {
        self.offset = u32::try_from(offset).expect("at most 2³² vectors");
    }

    #[allow(clippy::cast_possible_truncation)] // models of 2³² vectors or features exceed memory
    #[inline(always)]
    fn entry(&self, vector: usize, index: usize, value: f64) -> Entry {
        Entry {
            vector: self.offset + vector as u32,
            index: index as u32,
            value,
        }
    }
}

impl Undo for UndoLog {
    #[inline(always)]
    fn save(&mut self, vector: usize, index: usize, value: f64) {
        let entry = self.entry(vector, index, value);
        self.entries.push(entry);
    }

    #[inline(always)]
    fn save_row<R: Row>(&mut self, row: R, vector: usize, start: usize, weights: &[f64]) {
        // `extend` reserves once for all entries.
        let template = self.entry(vector, 0, 0.0);
        let features = row.entries().map(|(feature, _)| feature);
        #[allow(clippy::cast_possible_truncation)] // as in `entry`
        self.entries.extend(features.map(|feature| Entry {
            index: (start + feature) as u32,
            value: weights[feature],
            ..template
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn the_oldest_value_of_an_element_comes_back() {
        let mut state = State::new([vec![1.0, 2.0]], vec![3.0]);
        let mut log = UndoLog::default();
        log.save(1, 0, state.scalars()[0]);
        state.scalars_mut()[0] = 0.0;
        let mark = log.len();
        log.save_all(0, 1, &state.vector(0)[1..]);
        log.save_all(1, 0, state.scalars());
        log.save_row(&[9.0, 9.0][..], 0, 0, state.vector(0));
        state.assign(&[7.0, 8.0, 9.0]);
        state.revert(&mut log, mark);
        assert_eq!(state.to_vec(), [1.0, 2.0, 0.0]);
        state.revert(&mut log, 0);
        assert_eq!((state.to_vec(), log.len()), (vec![1.0, 2.0, 3.0], 0));
    }
}
