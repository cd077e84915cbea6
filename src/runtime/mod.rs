//! What engines share at run time: progress, counters, threads, memory, cache sizes, reused
//! buffers, random permutations and SIMD.

pub(crate) mod buffers;
pub(crate) mod cache;
pub mod cost;
pub(crate) mod memory;
pub mod monitor;
pub(crate) mod random;
#[cfg(feature = "internals")]
pub mod simd;
#[cfg(not(feature = "internals"))]
#[allow(dead_code, unreachable_pub)]
pub(crate) mod simd;
pub(crate) mod threads;
