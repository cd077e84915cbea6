//! Kernel rows of the active variables, gathered and cached.

use crate::runtime::cache::LLC_BYTES;
use crate::svm::row_cache::RowCache;

/// Minimum capacity: both rows of a pair.
const MIN_ROWS: usize = 2;

/// A cache of gathered rows by the position of their variable.
#[derive(Debug)]
pub(super) struct ActiveRows<T> {
    /// Row after row.
    buffer: Vec<T>,
    width: usize,
    /// Where the row of a position is in the buffer, in rows.
    slots: RowCache<usize>,
    n_slots: usize,
}

impl<T: Copy + Default> ActiveRows<T> {
    /// An empty cache of rows of `width` values, stored in `buffer`; as many as the last-level cache
    /// holds.
    pub(super) fn new(width: usize, buffer: Vec<T>) -> Self {
        let capacity = LLC_BYTES / (width * size_of::<T>()).max(1);
        Self {
            buffer,
            width,
            slots: RowCache::new(width, capacity.max(MIN_ROWS)),
            n_slots: 0,
        }
    }

    /// Caches the row of a position: calls `write` if it is missing. The row used before stays.
    pub(super) fn ensure(&mut self, position: usize, write: impl FnOnce(&mut [T])) {
        if self.slots.get(position).is_some() {
            return;
        }
        let slot = self.slots.evict_if_full().unwrap_or(self.n_slots);
        self.n_slots = self.n_slots.max(slot + 1);
        let (start, end) = (slot * self.width, (slot + 1) * self.width);
        if self.buffer.len() < end {
            self.buffer.resize(end, T::default());
        }
        write(&mut self.buffer[start..end]);
        self.slots.insert(position, slot);
    }

    /// The row of a position; empty if it is not cached.
    pub(super) fn get(&self, position: usize) -> &[T] {
        let slot = self.slots.peek(position);
        slot.map_or(&[], |slot| &self.buffer[slot * self.width..][..self.width])
    }

    /// Restricts rows and columns to the listed positions.
    pub(super) fn shrink_further(mut self, positions: &[usize]) -> Self {
        let cached = positions.iter().enumerate();
        let cached = cached.filter_map(|(new, &old)| Some((*self.slots.peek(old)?, new)));
        let mut cached: Vec<(usize, usize)> = cached.collect();
        cached.sort_unstable();
        // In place: the destination lies before everything that is still to be read.
        let mut end = 0;
        for &(slot, _) in &cached {
            for &position in positions {
                self.buffer[end] = self.buffer[slot * self.width + position];
                end += 1;
            }
        }
        let mut rows = Self::new(positions.len(), self.buffer);
        rows.n_slots = cached.len();
        for (slot, (_, position)) in cached.into_iter().enumerate() {
            rows.slots.insert(position, slot);
        }
        rows
    }

    /// The buffer, for reuse.
    pub(super) fn into_buffer(self) -> Vec<T> {
        self.buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row `at` of a matrix with distinct values.
    fn row(at: usize, columns: &[usize]) -> Vec<u64> {
        columns.iter().map(|c| (at * 1000 + c) as u64).collect()
    }

    #[test]
    fn rows_are_those_of_their_variables_whatever_was_evicted() {
        let columns: Vec<usize> = (0..40).collect();
        let mut rows = ActiveRows::<u64>::new(columns.len(), vec![7; 100]);
        rows.slots = RowCache::new(columns.len(), 5);
        let (mut written, mut last) = (0, 0);
        for step in 0..500_usize {
            let at = step * step % 17;
            for at in [last, at] {
                rows.ensure(at, |out| {
                    written += 1;
                    out.copy_from_slice(&row(at, &columns));
                });
            }
            assert_eq!(rows.get(at), row(at, &columns), "step {step}");
            assert_eq!(rows.get(last), row(last, &columns), "before step {step}");
            last = at;
        }
        assert!(rows.n_slots == 5 && written > 5 && written < 500);

        let positions: Vec<usize> = (1..40).step_by(3).collect();
        let rows = rows.shrink_further(&positions);
        let cached = (0..positions.len()).filter(|&at| !rows.get(at).is_empty());
        let cached: Vec<usize> = cached.collect();
        assert!(!cached.is_empty() && cached.len() == rows.n_slots);
        for at in cached {
            assert_eq!(rows.get(at), row(positions[at], &positions));
        }
    }
}
