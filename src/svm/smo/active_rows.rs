//! Kernel rows of the active variables, gathered and cached.

/// Capacity in bytes: as much as the last-level cache holds.
const CACHE_BYTES: usize = 1 << 25;

/// Minimum capacity: both rows of a pair.
const MIN_ROWS: usize = 2;

/// A cache of gathered rows by the position of their variable, with CLOCK replacement: a new row
/// replaces one that was not used since the clock hand last passed it.
#[derive(Debug)]
pub(super) struct ClockCache<T> {
    /// Row after row.
    buffer: Vec<T>,
    width: usize,
    capacity: usize,
    /// The cached row of each position.
    rows: Vec<Option<usize>>,
    /// The position of each cached row.
    row_owner: Vec<usize>,
    /// True if a row was used since the hand passed it.
    is_recent: Vec<bool>,
    clock_hand: usize,
}

impl<T: Copy + Default> ClockCache<T> {
    /// An empty cache for rows of `width` values, stored in `buffer`.
    pub(super) fn new(width: usize, buffer: Vec<T>) -> Self {
        Self {
            buffer,
            width,
            capacity: capacity::<T>(width),
            rows: vec![None; width],
            row_owner: vec![],
            is_recent: vec![],
            clock_hand: 0,
        }
    }

    /// Caches the row of a position: calls `write` if it is missing. Keeps the row of `other`.
    pub(super) fn ensure(&mut self, position: usize, other: usize, write: impl FnOnce(&mut [T])) {
        let row = if let Some(row) = self.rows[position] {
            row
        } else {
            let row = self.vacate(self.rows[other]);
            let (start, end) = (row * self.width, (row + 1) * self.width);
            if self.buffer.len() < end {
                self.buffer.resize(end, T::default());
            }
            write(&mut self.buffer[start..end]);
            self.rows[position] = Some(row);
            self.row_owner[row] = position;
            row
        };
        self.is_recent[row] = true;
    }

    /// A row to overwrite, other than `held`.
    fn vacate(&mut self, held: Option<usize>) -> usize {
        if self.row_owner.len() < self.capacity {
            self.row_owner.push(0);
            self.is_recent.push(true);
            return self.row_owner.len() - 1;
        }
        loop {
            let row = self.clock_hand;
            self.clock_hand = (row + 1) % self.capacity;
            if Some(row) == held {
                continue;
            }
            if !std::mem::replace(&mut self.is_recent[row], false) {
                self.rows[self.row_owner[row]] = None;
                return row;
            }
        }
    }

    /// The row of a position; empty if it is not cached.
    pub(super) fn get(&self, position: usize) -> &[T] {
        self.rows[position].map_or(&[], |row| &self.buffer[row * self.width..][..self.width])
    }

    /// Restricts rows and columns to the listed positions.
    pub(super) fn shrink_further(mut self, positions: &[usize]) -> Self {
        let mut order: Vec<usize> = (0..positions.len()).collect();
        order.retain(|&at| self.rows[positions[at]].is_some());
        order.sort_unstable_by_key(|&at| self.rows[positions[at]]);
        let mut rows = vec![None; positions.len()];
        let mut end = 0;
        for (row, &at) in order.iter().enumerate() {
            let start = self.rows[positions[at]].map_or(0, |row| row * self.width);
            // In place: the destination lies before everything that is still to be read.
            for &position in positions {
                self.buffer[end] = self.buffer[start + position];
                end += 1;
            }
            rows[at] = Some(row);
        }
        Self {
            buffer: self.buffer,
            width: positions.len(),
            capacity: capacity::<T>(positions.len()),
            rows,
            is_recent: vec![false; order.len()],
            row_owner: order,
            clock_hand: 0,
        }
    }

    /// The buffer, for reuse.
    pub(super) fn into_buffer(self) -> Vec<T> {
        self.buffer
    }
}

fn capacity<T>(width: usize) -> usize {
    (CACHE_BYTES / (width * size_of::<T>()).max(1)).max(MIN_ROWS)
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
        let mut cache = ClockCache::<u64>::new(columns.len(), vec![7; 100]);
        cache.capacity = 5;
        let (mut written, mut last) = (0, 0);
        for step in 0..500_usize {
            let at = step * step % 17;
            cache.ensure(at, last, |out| {
                written += 1;
                out.copy_from_slice(&row(at, &columns));
            });
            assert_eq!(cache.get(at), row(at, &columns), "step {step}");
            assert_eq!(cache.get(last), row(last, &columns), "before step {step}");
            last = at;
        }
        assert!(cache.row_owner.len() == 5 && written > 5 && written < 500);

        let positions: Vec<usize> = (1..40).step_by(3).collect();
        let cache = cache.shrink_further(&positions);
        let cached = (0..positions.len()).filter(|&at| cache.rows[at].is_some());
        let cached: Vec<usize> = cached.collect();
        assert_eq!(cached.len(), cache.row_owner.len());
        for at in cached {
            assert_eq!(cache.get(at), row(positions[at], &positions));
        }
    }
}
