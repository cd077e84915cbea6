//! Cache sizes that block sizes are derived from, in f64 values or in bytes.
//!
//! Estimates for current x86-64 and ARM server cores. Results do not depend on them.

/// Half of a core's second-level cache: 256 KB.
pub(crate) const L2_VALUES: f64 = (1 << 15) as f64;

/// What stays in a shared last-level cache while it is worked on: 8 MB.
pub(crate) const LLC_SHARE_VALUES: f64 = (1 << 20) as f64;

/// Upper bound on a last-level cache: 32 MB. More than this is read from memory.
pub(crate) const LLC_VALUES: f64 = (1 << 22) as f64;

/// [`LLC_SHARE_VALUES`] in bytes.
pub(crate) const LLC_SHARE_BYTES: usize = 8 << 20;

/// [`LLC_VALUES`] in bytes.
pub(crate) const LLC_BYTES: usize = 32 << 20;
