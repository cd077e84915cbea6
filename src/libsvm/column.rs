//! A growable column in owned or borrowed memory.

use std::ops::{Deref, DerefMut};

use crate::Result;
use crate::runtime::memory;

/// What columns hold, in messages.
pub(super) const WHAT: &str = "a column of the file";

/// Items in owned memory, or in a buffer of the caller as long as they fit.
///
/// numpy allocates huge pages, which are filled in a third of the time of ordinary ones.
#[derive(Debug)]
pub enum GrowableColumn<'a, T> {
    /// Owned memory.
    Owned(Vec<T>),
    /// A buffer and the number of items in it.
    Borrowed(&'a mut [T], usize),
}

impl<T> Default for GrowableColumn<'_, T> {
    fn default() -> Self {
        Self::Owned(Vec::new())
    }
}

impl<T> From<Vec<T>> for GrowableColumn<'_, T> {
    fn from(items: Vec<T>) -> Self {
        Self::Owned(items)
    }
}

impl<T> Deref for GrowableColumn<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Owned(items) => items,
            Self::Borrowed(buffer, n) => &buffer[..*n],
        }
    }
}

impl<T> DerefMut for GrowableColumn<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Owned(items) => items,
            Self::Borrowed(buffer, n) => &mut buffer[..*n],
        }
    }
}

impl<T: PartialEq> PartialEq for GrowableColumn<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Copy> GrowableColumn<'_, T> {
    /// Appends items; if the buffer is too small, all move to owned memory.
    pub(super) fn extend(&mut self, items: impl ExactSizeIterator<Item = T>) -> Result<()> {
        if let Self::Borrowed(buffer, n) = self {
            let end = *n + items.len();
            if let Some(free) = buffer.get_mut(*n..end) {
                for (slot, item) in free.iter_mut().zip(items) {
                    *slot = item;
                }
                *n = end;
                return Ok(());
            }
            let mut owned = Vec::new();
            memory::reserve(WHAT, &mut owned, end)?;
            owned.extend_from_slice(self);
            *self = Self::Owned(owned);
        }
        if let Self::Owned(owned) = self {
            memory::reserve(WHAT, owned, items.len())?;
            owned.extend(items);
        }
        Ok(())
    }

    /// Reserves memory for all items, if those present are about this `fraction`.
    pub(super) fn reserve(&mut self, fraction: f64) {
        if let Self::Owned(items) = self {
            reserve(items, fraction);
        }
    }

    /// Frees unused memory.
    pub(super) fn shrink(&mut self) {
        if let Self::Owned(items) = self {
            items.shrink_to_fit();
        }
    }
}

/// Reserves memory for all items, if those present are about this `fraction`.
///
/// Repeated growth copies the vector each time. A low estimate costs time, an excess is freed by
/// [`GrowableColumn::shrink`].
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(super) fn reserve<T>(items: &mut Vec<T>, fraction: f64) {
    let expected = (1.02 * items.len() as f64 / fraction) as usize;
    // If the allocation fails, the vector grows as needed.
    let _ = items.try_reserve_exact(expected.saturating_sub(items.len()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_move_to_owned_memory_when_the_buffer_is_full() {
        let mut buffer = [0; 3];
        let mut column = GrowableColumn::Borrowed(&mut buffer, 0);
        column.extend([1, 2].into_iter()).expect("fits");
        assert!(matches!(column, GrowableColumn::Borrowed(_, 2)));
        assert_eq!(*column, [1, 2]);
        column.extend([3, 4].into_iter()).expect("fits");
        assert!(matches!(column, GrowableColumn::Owned(_)));
        assert_eq!(*column, [1, 2, 3, 4]);
        column.reserve(0.1);
        column.shrink();
        assert_eq!(column, GrowableColumn::from(vec![1, 2, 3, 4]));
        assert_eq!(buffer, [1, 2, 0]);
    }
}
