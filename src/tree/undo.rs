//! The undo log: old values of what an update overwrites.
//!
//! A log stores values and puts them back; nothing is ever subtracted, so the way back is exact to
//! the last bit. Learners write their updates once, against [`Undo`]: with [`Forget`] the saving
//! compiles to nothing, with [`Log`] the update can be taken back.

use crate::data::Row;

/// Who is told of every value that an update is about to overwrite.
pub trait Undo {
    /// Whether anything is saved.
    const SAVES: bool = true;

    /// State slot `slot` holds `value` and is about to change.
    fn save(&mut self, slot: usize, value: f64);

    /// The slots `start..start + values.len()` hold `values` and are about to change.
    #[inline(always)]
    fn save_all(&mut self, start: usize, values: &[f64]) {
        for (slot, &value) in (start..).zip(values) {
            self.save(slot, value);
        }
    }

    /// The features of `row` hold `weights`, which begin at slot `start`, and are about to change.
    #[inline(always)]
    fn save_row<R: Row>(&mut self, row: R, start: usize, weights: &[f64]) {
        for (feature, _) in row.entries() {
            self.save(start + feature, weights[feature]);
        }
    }
}

/// Saves nothing: for updates that are not taken back.
#[derive(Clone, Copy, Debug)]
pub struct Forget;

impl Undo for Forget {
    const SAVES: bool = false;

    #[inline(always)]
    fn save(&mut self, _: usize, _: f64) {}

    #[inline(always)]
    fn save_all(&mut self, _: usize, _: &[f64]) {}

    #[inline(always)]
    fn save_row<R: Row>(&mut self, _: R, _: usize, _: &[f64]) {}
}

/// Saves everything, so that the state can go back to any earlier length of the log.
#[derive(Debug, Default)]
pub struct Log {
    entries: Vec<(usize, f64)>,
}

impl Log {
    /// How many values are saved: a point to rewind to.
    #[allow(clippy::len_without_is_empty)] // a point in time, not a container's size
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Puts back what was saved since the log was `len` long, the newest first.
    pub fn rewind(&mut self, len: usize, state: &mut [f64]) {
        self.rewind_with(len, |slot, value| state[slot] = value);
    }

    /// [`Log::rewind`] for a state that is not one slice: `put` is told what to put back where.
    pub fn rewind_with(&mut self, len: usize, mut put: impl FnMut(usize, f64)) {
        for (slot, value) in self.entries.drain(len..).rev() {
            put(slot, value);
        }
    }
}

impl Undo for Log {
    #[inline(always)]
    fn save(&mut self, slot: usize, value: f64) {
        self.entries.push((slot, value));
    }

    #[inline(always)]
    fn save_row<R: Row>(&mut self, row: R, start: usize, weights: &[f64]) {
        // One check of the room for all of them.
        let features = row.entries().map(|(feature, _)| feature);
        self.entries
            .extend(features.map(|feature| (start + feature, weights[feature])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_value_of_a_slot_comes_back() {
        let mut state = [1.0, 2.0, 3.0];
        let mut log = Log::default();
        log.save(2, state[2]);
        state[2] = 0.0;
        let point = log.len();
        log.save_all(1, &state[1..]);
        log.save_row(&[9.0, 9.0][..], 0, &state[..2]);
        state = [7.0, 8.0, 9.0];
        log.rewind(point, &mut state);
        assert_eq!(state, [1.0, 2.0, 0.0]);
        log.rewind(0, &mut state);
        assert_eq!((state, log.len()), ([1.0, 2.0, 3.0], 0));
    }
}
