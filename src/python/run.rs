//! The one seam between Python and native work.
//!
//! [`run`] gives the work a thread pool of its own, releases the GIL, and meanwhile polls for
//! Ctrl-C and reports progress. The pool lives for the call: rayon's global pool hangs after
//! `fork`, because its workers do not exist in the child.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::{Monitor, Result};

/// How often the waiting thread looks for Ctrl-C and reports progress.
const POLL: Duration = Duration::from_millis(50);

/// Runs `work` on `n_jobs` native threads without the GIL.
///
/// `progress`, where given, is called with (units done, units expected) about twenty times a
/// second. When it raises, or when Ctrl-C is pressed, the work is cancelled, waited for, and the
/// exception goes to the caller.
pub(super) fn run<T: Send>(
    py: Python<'_>,
    n_jobs: usize,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Monitor) -> Result<T> + Send,
) -> PyResult<T> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(n_jobs.max(1))
        .thread_name(|i| format!("onefold-{i}"))
        .build()
        .map_err(|e| PyRuntimeError::new_err(format!("cannot start {n_jobs} threads: {e}")))?;
    let monitor = Monitor::new();
    let (sender, mut receiver) = channel();
    let look = |py: Python<'_>| -> PyResult<()> {
        py.check_signals()?;
        if let Some(report) = progress {
            report.call1(monitor.progress())?;
        }
        Ok(())
    };
    let mut raised = None;
    let mut outcome = None;
    pool.in_place_scope(|scope| {
        let monitor = &monitor;
        scope.spawn(move |_| {
            // The receiver outlives the scope, so this cannot fail.
            let _ = sender.send(work(monitor));
        });
        loop {
            // Wait with the GIL released, and take it only to look around.
            let receiver = &mut receiver;
            match py.detach(move || receiver.recv_timeout(POLL)) {
                Ok(result) => {
                    outcome = Some(result);
                    break;
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let (None, Err(error)) = (&raised, look(py)) {
                        raised = Some(error);
                        monitor.cancel();
                    }
                }
                // The work panicked: leaving the scope passes the panic on.
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let result =
        outcome.ok_or_else(|| PyRuntimeError::new_err("native work ended without a result"))?;
    if let (Some(report), Ok(_)) = (progress, &result) {
        report.call1(monitor.progress())?;
    }
    Ok(result?)
}
