//! Kernel rows of the variables that are left after shrinking, gathered and kept.

/// Bytes that are kept: as much as stays near a core.
const KEPT: usize = 1 << 25;

/// The gathered kernel rows of the variables that were chosen so far: most are chosen again.
#[derive(Debug)]
pub(super) struct Kept<T> {
    /// Row after row, in the order in which they were chosen.
    values: Vec<T>,
    width: usize,
    /// Which row belongs to the variable at a place, if any does.
    rows: Vec<Option<usize>>,
    /// Whether the variable at a place was chosen since the rows were narrowed.
    is_recent: Vec<bool>,
}

impl<T: Copy> Kept<T> {
    /// None yet, of so many values each; `room` is memory to use.
    pub(super) fn new(width: usize, mut room: Vec<T>) -> Self {
        room.clear();
        Self {
            values: room,
            width,
            rows: vec![None; width],
            is_recent: vec![false; width],
        }
    }

    /// Whether there is room for one more.
    pub(super) fn has_room(&self) -> bool {
        (self.values.len() + self.width) * size_of::<T>() <= KEPT
    }

    /// Whether the row of a variable that is chosen is kept.
    pub(super) fn recall(&mut self, at: usize) -> bool {
        self.is_recent[at] = true;
        self.rows[at].is_some()
    }

    /// Keeps the row of the variable at a place, which `write` adds to what is there.
    pub(super) fn push(&mut self, at: usize, write: impl FnOnce(&mut Vec<T>)) {
        self.rows[at] = Some(self.values.len() / self.width);
        write(&mut self.values);
    }

    /// The row of the variable at a place, if it is kept.
    pub(super) fn get(&self, at: usize) -> Option<&[T]> {
        let start = self.rows[at]? * self.width;
        Some(&self.values[start..start + self.width])
    }

    /// Keeps of every row what belongs to these places, and of the rows those of these places that
    /// were asked for since the last time: the others may never be again.
    pub(super) fn narrow(mut self, places: &[usize]) -> Self {
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.retain(|&at| self.is_recent[places[at]] && self.rows[places[at]].is_some());
        order.sort_unstable_by_key(|&at| self.rows[places[at]]);
        let mut rows = vec![None; places.len()];
        let mut end = 0;
        for (row, at) in order.into_iter().enumerate() {
            let start = self.rows[places[at]].map_or(0, |row| row * self.width);
            // What is written stands before what is still to be read.
            for &place in places {
                self.values[end] = self.values[start + place];
                end += 1;
            }
            rows[at] = Some(row);
        }
        self.values.truncate(end);
        Self {
            values: self.values,
            width: places.len(),
            rows,
            is_recent: vec![false; places.len()],
        }
    }

    /// The memory, for others to use.
    pub(super) fn into_room(self) -> Vec<T> {
        self.values
    }
}
