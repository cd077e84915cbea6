//! A pool of buffers to reuse: fresh memory costs more than most of what is computed in it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Buffers that no thread uses at the moment.
#[derive(Debug)]
pub(crate) struct BufferPool<T> {
    idle: Mutex<Vec<T>>,
}

impl<T> Default for BufferPool<T> {
    fn default() -> Self {
        Self {
            idle: Mutex::new(Vec::new()),
        }
    }
}

impl<T> BufferPool<T> {
    /// An idle buffer, if there is one.
    pub(crate) fn acquire(&self) -> Option<T> {
        self.lock().pop()
    }

    /// Returns a buffer to the pool.
    pub(crate) fn release(&self, buffer: T) {
        self.lock().push(buffer);
    }

    /// Removes all idle buffers.
    pub(crate) fn drain(&self) -> Vec<T> {
        std::mem::take(&mut *self.lock())
    }

    /// A panic in another thread ends the work anyway, so a poisoned lock is taken as it is.
    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_released_buffer_is_acquired_again() {
        let pool = BufferPool::default();
        assert_eq!(pool.acquire(), None);
        pool.release(vec![1, 2]);
        pool.release(vec![3]);
        assert_eq!(pool.acquire(), Some(vec![3]));
        assert_eq!(pool.drain(), [[1, 2]]);
        assert_eq!(pool.acquire(), None);
    }
}
