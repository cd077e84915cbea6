//! Progress and cancellation, shared between the thread that waits and the threads that work.
//!
//! Work calls [`Monitor::advance`] once a node, a block or every few iterations: at least every
//! 100 ms. It costs two relaxed atomic operations.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::{Error, Result};

/// How far the work is, and whether it should stop.
#[derive(Debug, Default)]
pub struct Monitor {
    done: AtomicU64,
    total: AtomicU64,
    cancelled: AtomicBool,
}

impl Monitor {
    /// A monitor of work that has not begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// Announces how many units of work there are in all; more may be announced later.
    pub fn add_total(&self, units: u64) {
        self.total.fetch_add(units, Ordering::Relaxed);
    }

    /// Reports `units` of work as done, or [`Error::Interrupted`] when the work should stop.
    pub fn advance(&self, units: u64) -> Result<()> {
        self.done.fetch_add(units, Ordering::Relaxed);
        self.check()
    }

    /// [`Error::Interrupted`] when the work should stop.
    pub fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Asks the work to stop at its next [`Monitor::advance`] or [`Monitor::check`].
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Units done and units expected.
    pub fn progress(&self) -> (u64, u64) {
        (
            self.done.load(Ordering::Relaxed),
            self.total.load(Ordering::Relaxed),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_until_it_is_cancelled() {
        let monitor = Monitor::new();
        monitor.add_total(10);
        assert!(monitor.advance(3).is_ok());
        assert_eq!(monitor.progress(), (3, 10));
        monitor.cancel();
        assert!(matches!(monitor.check(), Err(Error::Interrupted)));
        assert!(matches!(monitor.advance(1), Err(Error::Interrupted)));
    }
}
