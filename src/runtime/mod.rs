//! What engines share at run time: progress, counters, threads, memory, cache sizes, reused
//! buffers, random permutations and SIMD.

pub(crate) mod buffers;
pub(crate) mod cache;
pub mod cost;
pub(crate) mod memory;
pub mod monitor;
pub(crate) mod random;
pub mod simd;
pub(crate) mod threads;
