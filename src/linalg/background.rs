//! Long calls that cannot be interrupted, on a thread of their own.
//!
//! faer does not poll a [`Monitor`]. A call that may take longer than a fraction of a second owns its
//! operands and runs on another thread, while the calling thread polls. After a cancellation the call
//! goes on to its end in the background; its result is dropped.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::runtime::memory;
use crate::{Error, Monitor, Result};

/// Multiplications from which a call is worth a thread: about a tenth of a second.
const MIN_MULTIPLICATIONS: f64 = 2e8;

/// The stack of a thread, as the standard library allocates it.
const STACK_BYTES: u64 = 2 << 20;

/// How often the monitor is polled.
const POLL: Duration = Duration::from_millis(20);

/// `work()`, which takes about `n_multiplications`; [`Error::Interrupted`] as soon as the monitor says
/// so.
pub(super) fn in_background<T: Send + 'static>(
    n_multiplications: f64,
    monitor: &Monitor,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    monitor.check()?;
    if n_multiplications < MIN_MULTIPLICATIONS {
        return Ok(work());
    }
    let (sender, receiver) = channel();
    let send = move || {
        // Fails if nobody waits any more.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    };
    let name = "onefold-linalg".to_owned();
    let started = thread::Builder::new().name(name).spawn(send);
    started.map_err(|_| Error::Memory {
        what: "the stack of a thread".into(),
        bytes: STACK_BYTES,
        available: memory::available(),
    })?;
    loop {
        match receiver.recv_timeout(POLL) {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(RecvTimeoutError::Timeout) => monitor.check()?,
            Err(RecvTimeoutError::Disconnected) => return Err(Error::Interrupted),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn results_and_panics_come_back() {
        let monitor = Monitor::new();
        for n_multiplications in [0.0, f64::INFINITY] {
            let found = in_background(n_multiplications, &monitor, || 7);
            assert_eq!(found.expect("not cancelled"), 7);
            let panic = || in_background(n_multiplications, &monitor, || panic!("as it should"));
            assert!(catch_unwind(AssertUnwindSafe(panic)).is_err());
        }
    }

    #[test]
    fn a_cancelled_call_is_abandoned_before_it_ends() {
        let monitor = Arc::new(Monitor::new());
        let (end, ends) = channel::<()>();
        let canceller = Arc::clone(&monitor);
        let found = in_background(f64::INFINITY, &monitor, move || {
            canceller.cancel();
            // Until the caller has given up.
            ends.recv()
        });
        assert!(matches!(found, Err(Error::Interrupted)));
        drop(end);
        let found = in_background(0.0, &monitor, || 7);
        assert!(matches!(found, Err(Error::Interrupted)));
    }
}
