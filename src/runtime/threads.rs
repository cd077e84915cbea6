//! The thread pool of the call.

/// Whether work is worth splitting: the rayon pool of the caller has several threads. Outside a
/// pool that is rayon's global one, except in the Python extension, where threads of a global pool
/// would be missing after `fork`.
pub(crate) fn is_parallel() -> bool {
    let has_pool = cfg!(not(feature = "python")) || rayon::current_thread_index().is_some();
    has_pool && rayon::current_num_threads() > 1
}
