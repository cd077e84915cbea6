//! Kernel rows of the variables that are left after shrinking, gathered and kept.

/// Bytes that are kept: as much as stays near a core.
const KEPT: usize = 1 << 25;

/// The two rows of a pair must have room at least.
const FEWEST: usize = 2;

/// The gathered kernel rows of variables that were chosen: most are chosen again.
///
/// When there is no more room, a new row takes the place of one that was not chosen since a hand, which
/// goes round all places, passed it last: nearly the one that was chosen longest ago.
#[derive(Debug)]
pub(super) struct Kept<T> {
    /// Row after row.
    values: Vec<T>,
    width: usize,
    capacity: usize,
    /// Which row belongs to the variable at a place, if any does.
    rows: Vec<Option<usize>>,
    /// The place of the variable that each row belongs to.
    owners: Vec<usize>,
    /// Whether a row was chosen since the hand passed it.
    is_recent: Vec<bool>,
    hand: usize,
}

impl<T: Copy + Default> Kept<T> {
    /// None yet, of so many values each; `room` is memory to use.
    pub(super) fn new(width: usize, room: Vec<T>) -> Self {
        Self {
            values: room,
            width,
            capacity: capacity::<T>(width),
            rows: vec![None; width],
            owners: vec![],
            is_recent: vec![],
            hand: 0,
        }
    }

    /// Sees to it that the row of the variable at a place is kept: `write` is called if it is not. That
    /// of `other` stays.
    pub(super) fn keep(&mut self, at: usize, other: usize, write: impl FnOnce(&mut [T])) {
        let row = if let Some(row) = self.rows[at] {
            row
        } else {
            let row = self.place(self.rows[other]);
            let (start, end) = (row * self.width, (row + 1) * self.width);
            if self.values.len() < end {
                self.values.resize(end, T::default());
            }
            write(&mut self.values[start..end]);
            self.rows[at] = Some(row);
            self.owners[row] = at;
            row
        };
        self.is_recent[row] = true;
    }

    /// A row to write to, other than `held`.
    fn place(&mut self, held: Option<usize>) -> usize {
        if self.owners.len() < self.capacity {
            self.owners.push(0);
            self.is_recent.push(true);
            return self.owners.len() - 1;
        }
        loop {
            let row = self.hand;
            self.hand = (row + 1) % self.capacity;
            if Some(row) == held {
                continue;
            }
            if !std::mem::replace(&mut self.is_recent[row], false) {
                self.rows[self.owners[row]] = None;
                return row;
            }
        }
    }

    /// The row of the variable at a place, if it is kept.
    pub(super) fn get(&self, at: usize) -> &[T] {
        self.rows[at].map_or(&[], |row| &self.values[row * self.width..][..self.width])
    }

    /// Keeps of every row what belongs to these places, and of the rows those of these places.
    pub(super) fn narrow(mut self, places: &[usize]) -> Self {
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.retain(|&at| self.rows[places[at]].is_some());
        order.sort_unstable_by_key(|&at| self.rows[places[at]]);
        let mut rows = vec![None; places.len()];
        let mut end = 0;
        for (row, &at) in order.iter().enumerate() {
            let start = self.rows[places[at]].map_or(0, |row| row * self.width);
            // What is written stands before what is still to be read.
            for &place in places {
                self.values[end] = self.values[start + place];
                end += 1;
            }
            rows[at] = Some(row);
        }
        Self {
            values: self.values,
            width: places.len(),
            capacity: capacity::<T>(places.len()),
            rows,
            is_recent: vec![false; order.len()],
            owners: order,
            hand: 0,
        }
    }

    /// The memory, for others to use.
    pub(super) fn into_room(self) -> Vec<T> {
        self.values
    }
}

fn capacity<T>(width: usize) -> usize {
    (KEPT / (width * size_of::<T>()).max(1)).max(FEWEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row `at` of a matrix whose value in a column tells both.
    fn row(at: usize, columns: &[usize]) -> Vec<u64> {
        columns.iter().map(|c| (at * 1000 + c) as u64).collect()
    }

    #[test]
    fn rows_are_those_of_their_variables_whatever_was_forgotten() {
        let columns: Vec<usize> = (0..40).collect();
        let mut kept = Kept::<u64>::new(columns.len(), vec![7; 100]);
        kept.capacity = 5;
        let (mut written, mut last) = (0, 0);
        for step in 0..500_usize {
            let at = step * step % 17;
            kept.keep(at, last, |out| {
                written += 1;
                out.copy_from_slice(&row(at, &columns));
            });
            assert_eq!(kept.get(at), row(at, &columns), "step {step}");
            assert_eq!(kept.get(last), row(last, &columns), "before step {step}");
            last = at;
        }
        assert!(kept.owners.len() == 5 && written > 5 && written < 500);

        let places: Vec<usize> = (1..40).step_by(3).collect();
        let narrowed = kept.narrow(&places);
        let owned = (0..places.len()).filter(|&at| narrowed.rows[at].is_some());
        let owned: Vec<usize> = owned.collect();
        assert_eq!(owned.len(), narrowed.owners.len());
        for at in owned {
            assert_eq!(narrowed.get(at), row(places[at], &places));
        }
    }
}
