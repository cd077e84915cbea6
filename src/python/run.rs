//! The one seam between Python and native work.
//!
//! [`run`] gives the work a thread pool of its own, releases the GIL, and meanwhile polls for
//! Ctrl-C and reports progress. The pool lives for the call: rayon's global pool hangs after
//! `fork`, because its workers do not exist in the child.
//!
//! The calling thread does what only it can do: Python interrupts a call that blocks, such as the
//! `read` of a pipe, only on its main thread, so native threads pass such calls on to it by
//! [`on_calling_thread`].
//!
//! A panic becomes a `RuntimeError`; pyo3 would raise an exception that `except Exception` misses.

use std::any::Any;
use std::cell::RefCell;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{available_parallelism, sleep};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyRuntimeError, PySystemExit};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::runtime::memory;
use crate::{Monitor, Result};

/// How often the waiting thread looks for Ctrl-C and reports progress.
const POLL: Duration = Duration::from_millis(50);

/// The stack of a native thread.
const STACK_BYTES: u64 = 2 << 20;

/// How long the end of the interpreter waits for native work to stop.
const MAX_EXIT_WAIT: Duration = Duration::from_secs(5);

/// A message of the native threads to the calling thread.
enum Message {
    Done,
    Call(Box<dyn FnOnce(Python<'_>) + Send>),
}

thread_local! {
    /// On a thread of a pool: the way to the thread that called [`run`].
    static CALLING_THREAD: RefCell<Option<Sender<Message>>> = const { RefCell::new(None) };
}

/// Runs `work` without the GIL on `n_jobs` native threads, or as many as the machine has.
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
    let n_threads = limited(n_jobs);
    let stacks = format!("a call on {n_threads} threads (n_jobs)");
    memory::check_mappable(stacks, n_threads as u64 * STACK_BYTES)?;
    let (sender, mut receiver) = channel();
    let pool = start_threads(n_threads, &sender)?;
    let running = Running::new();
    let monitor = &running.0.monitor;
    let mut outcome = None;
    let mut raised = None;
    pool.in_place_scope(|scope| {
        let outcome = &mut outcome;
        scope.spawn(move |_| {
            *outcome = Some(catch_unwind(AssertUnwindSafe(|| work(monitor))));
            // The receiver outlives the scope, so this cannot fail.
            let _ = sender.send(Message::Done);
        });
        raised = wait(py, &mut receiver, monitor, progress).err();
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let outcome = outcome.unwrap_or_else(|| Err(Box::new("the work ended without a result")));
    let found = outcome.map_err(|panic| panicked(&*panic))?;
    if running.0.is_at_exit.load(Ordering::Relaxed) {
        // What a thread raises to end without a message.
        return Err(PySystemExit::new_err(()));
    }
    if let (Some(report), Ok(_)) = (progress, &found) {
        report.call1(monitor.progress())?;
    }
    Ok(found?)
}

/// Runs short work on the calling thread; a panic becomes a `RuntimeError`.
pub(super) fn guarded<T, E: Into<PyErr>>(work: impl FnOnce() -> Result<T, E>) -> PyResult<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(found) => found.map_err(Into::into),
        Err(panic) => Err(panicked(&*panic)),
    }
}

fn panicked(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("unknown");
    PyRuntimeError::new_err(format!("internal error, please report it: {text}"))
}

/// `n_jobs`, or one for each core that the process may use.
fn limited(n_jobs: usize) -> usize {
    let n_cores = available_parallelism().map_or(1, NonZero::get);
    n_jobs.clamp(1, n_cores)
}

/// A pool of `n_threads`, or of one thread where the system starts no more.
fn start_threads(n_threads: usize, calling_thread: &Sender<Message>) -> PyResult<ThreadPool> {
    let start = |n_threads| {
        let calling_thread = calling_thread.clone();
        ThreadPoolBuilder::new()
            .num_threads(n_threads)
            .thread_name(|i| format!("onefold-{i}"))
            .start_handler(move |_| CALLING_THREAD.set(Some(calling_thread.clone())))
            .build()
    };
    let pool = start(n_threads).or_else(|_| start(1));
    pool.map_err(|error| PyMemoryError::new_err(format!("cannot start a thread: {error}")))
}

/// Waits until the work is done, and meanwhile serves its calls, looks for Ctrl-C and reports
/// progress. The first exception cancels the work.
fn wait(
    py: Python<'_>,
    receiver: &mut Receiver<Message>,
    monitor: &Monitor,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let look = || -> PyResult<()> {
        py.check_signals()?;
        if let Some(report) = progress {
            report.call1(monitor.progress())?;
        }
        Ok(())
    };
    let mut ended = Ok(());
    let mut next_look = Instant::now() + POLL;
    loop {
        let now = Instant::now();
        if now >= next_look {
            next_look = now + POLL;
            if ended.is_ok() {
                ended = look();
            }
            if ended.is_err() {
                monitor.cancel();
            }
        }
        // Wait with the GIL released.
        let (receiver, timeout) = (&mut *receiver, next_look.saturating_duration_since(now));
        match py.detach(move || receiver.recv_timeout(timeout)) {
            Ok(Message::Call(call)) if ended.is_ok() => call(py),
            // The thread that waits for the answer finds that there will be none.
            Ok(Message::Call(_)) | Err(RecvTimeoutError::Timeout) => {}
            Ok(Message::Done) | Err(RecvTimeoutError::Disconnected) => return ended,
        }
    }
}

/// Calls `call` on the thread that waits in [`run`], and waits for its result. Elsewhere than on a
/// thread of a pool it is called at once.
pub(super) fn on_calling_thread<T: Send + 'static>(
    call: impl FnOnce(Python<'_>) -> PyResult<T> + Send + 'static,
) -> PyResult<T> {
    let Some(calling_thread) = CALLING_THREAD.with_borrow(Clone::clone) else {
        return Python::attach(call);
    };
    let (sender, receiver) = channel();
    let answer = move |py: Python<'_>| {
        // The receiver waits for this, so it cannot fail.
        let _ = sender.send(call(py));
    };
    // Neither fails unless the work has been cancelled.
    let _ = calling_thread.send(Message::Call(Box::new(answer)));
    receiver
        .recv()
        .unwrap_or_else(|_| Err(PyKeyboardInterrupt::new_err(())))
}

/// A call of [`run`] that has not returned.
struct Call {
    monitor: Monitor,
    /// The process that it runs in; a child process inherits the list, but not the threads.
    process: u32,
    /// Whether it was cancelled because the interpreter ends.
    is_at_exit: AtomicBool,
}

/// Locked only with the GIL held, as it is during `fork`: no child process inherits a locked list.
static RUNNING: Mutex<Vec<Arc<Call>>> = Mutex::new(Vec::new());

fn running() -> MutexGuard<'static, Vec<Arc<Call>>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a call in the list of those that have not returned.
struct Running(Arc<Call>);

impl Running {
    fn new() -> Self {
        let call = Arc::new(Call {
            monitor: Monitor::new(),
            process: process::id(),
            is_at_exit: AtomicBool::new(false),
        });
        running().push(Arc::clone(&call));
        Self(call)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        running().retain(|call| !Arc::ptr_eq(call, &self.0));
    }
}

/// Cancels all native work and waits for its end, a few seconds at most.
///
/// Called when the interpreter ends. After that, a daemon thread that returns to Python is unwound
/// through our frames, which ends the process with SIGABRT (before Python 3.14).
#[pyfunction]
pub(super) fn stop_all(py: Python<'_>) {
    let is_own = |call: &&Arc<Call>| call.process == process::id();
    for call in running().iter().filter(is_own) {
        call.is_at_exit.store(true, Ordering::Relaxed);
        call.monitor.cancel();
    }
    let start = Instant::now();
    while running().iter().any(|call| is_own(&call)) && start.elapsed() < MAX_EXIT_WAIT {
        py.detach(|| sleep(Duration::from_millis(1)));
    }
}
