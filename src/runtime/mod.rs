//! What engines share at run time: progress, counters, threads, cache sizes, reused buffers and SIMD.

pub(crate) mod buffers;
pub(crate) mod cache;
pub mod cost;
pub mod monitor;
pub mod simd;
pub(crate) mod threads;
