//! A column that grows at its end.

use std::ops::{Deref, DerefMut};

/// Items in memory of their own, or in memory that the caller lends for as long as it suffices.
///
/// Lending is for callers whose memory is better than ours: numpy's comes in huge pages, which
/// are filled in a third of the time.
#[derive(Debug)]
pub enum Column<'a, T> {
    /// Memory of its own.
    Owned(Vec<T>),
    /// The first so many items of lent memory.
    Lent(&'a mut [T], usize),
}

impl<T> Default for Column<'_, T> {
    fn default() -> Self {
        Self::Owned(Vec::new())
    }
}

impl<T> From<Vec<T>> for Column<'_, T> {
    fn from(items: Vec<T>) -> Self {
        Self::Owned(items)
    }
}

impl<T> Deref for Column<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Owned(items) => items,
            Self::Lent(room, n) => &room[..*n],
        }
    }
}

impl<T> DerefMut for Column<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Owned(items) => items,
            Self::Lent(room, n) => &mut room[..*n],
        }
    }
}

impl<T: PartialEq> PartialEq for Column<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Copy> Column<'_, T> {
    /// Appends items; when the lent memory is too small, all move to memory of their own.
    pub(super) fn extend(&mut self, items: impl ExactSizeIterator<Item = T>) {
        if let Self::Lent(room, n) = self {
            let end = *n + items.len();
            if let Some(free) = room.get_mut(*n..end) {
                for (place, item) in free.iter_mut().zip(items) {
                    *place = item;
                }
                *n = end;
                return;
            }
            *self = Self::Owned(self.to_vec());
        }
        if let Self::Owned(own) = self {
            own.extend(items);
        }
    }

    /// Makes room for all, when the items so far are about this `share`.
    pub(super) fn reserve(&mut self, share: f64) {
        if let Self::Owned(items) = self {
            reserve(items, share);
        }
    }

    /// Gives back what is not used.
    pub(super) fn shrink(&mut self) {
        if let Self::Owned(items) = self {
            items.shrink_to_fit();
        }
    }
}

/// Room for all items, when those that are there are about this `share`.
///
/// A vector that grows step by step is copied again and again. The guess may be wrong: too little
/// costs time, too much is given back.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(super) fn reserve<T>(items: &mut Vec<T>, share: f64) {
    let all = (1.02 * items.len() as f64 / share) as usize;
    // Without the room, the vector grows as it must.
    let _ = items.try_reserve_exact(all.saturating_sub(items.len()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lent_memory_is_left_when_it_is_full() {
        let mut room = [0; 3];
        let mut column = Column::Lent(&mut room, 0);
        column.extend([1, 2].into_iter());
        assert!(matches!(column, Column::Lent(_, 2)));
        assert_eq!(*column, [1, 2]);
        column.extend([3, 4].into_iter());
        assert!(matches!(column, Column::Owned(_)));
        assert_eq!(*column, [1, 2, 3, 4]);
        column.reserve(0.1);
        column.shrink();
        assert_eq!(column, Column::from(vec![1, 2, 3, 4]));
        assert_eq!(room, [1, 2, 0]);
    }
}
