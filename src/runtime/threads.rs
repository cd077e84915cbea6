//! The thread pool of the call.

/// Returns true inside a thread pool of several threads. Outside a pool rayon would start its global
/// pool, which hangs after `fork`.
pub(crate) fn is_parallel() -> bool {
    rayon::current_thread_index().is_some() && rayon::current_num_threads() > 1
}
