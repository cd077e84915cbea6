//! What engines share at run time: progress, counters, threads, cache sizes, reused buffers,
//! random permutations and SIMD.

pub(crate) mod buffers;
pub(crate) mod cache;
pub mod cost;
pub mod monitor;
pub(crate) mod random;
pub mod simd;
pub(crate) mod threads;
