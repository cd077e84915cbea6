//! The thread pool of the call.

/// Whether the caller runs in a thread pool with company. Outside a pool rayon would start the
/// global one, which must never be: it hangs after `fork`.
pub(crate) fn has_company() -> bool {
    rayon::current_thread_index().is_some() && rayon::current_num_threads() > 1
}
