//! The memory budget for kernel values.

use crate::runtime::memory;
use crate::{Error, Result};

/// A number of bytes for kernel values, possibly a share of a larger budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    bytes: u64,
    total: u64,
}

impl Default for Budget {
    /// Half of the available memory.
    fn default() -> Self {
        Self::of(memory::available() / 2)
    }
}

impl Budget {
    /// `megabytes` (of 2²⁰ bytes) or all available memory, whichever is less; by default half of it.
    pub fn new(megabytes: Option<f64>) -> Result<Self> {
        match megabytes {
            None => Ok(Self::default()),
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked
            Some(size) if size > 0.0 && size.is_finite() => Ok(Self::of(
                memory::available().min((size * 1_048_576.0) as u64),
            )),
            Some(size) => Err(Error::parameter(
                "kernel memory",
                "positive and finite",
                size,
            )),
        }
    }

    fn of(bytes: u64) -> Self {
        Self {
            bytes,
            total: bytes,
        }
    }

    /// Number of f32 rows of `n` values that fit.
    pub(super) fn rows(self, n: usize) -> usize {
        let row = (n * size_of::<f32>()).max(1) as u64;
        usize::try_from(self.bytes / row).unwrap_or(usize::MAX)
    }

    /// The rest beside a quantised matrix of `n` × `n` bytes, if that fits and an f32 matrix exceeds
    /// the budget or `max_f32_bytes`.
    pub(super) fn beside_quantized(self, n: usize, max_f32_bytes: u64) -> Option<Self> {
        let quantized = (n as u64).checked_mul(n as u64)?;
        let bytes = self.bytes.checked_sub(quantized)?;
        let is_better = quantized.saturating_mul(4) > self.bytes.min(max_f32_bytes);
        is_better.then_some(Self { bytes, ..self })
    }

    /// The budget, limited to `bytes`.
    pub(super) fn at_most(self, bytes: u64) -> Self {
        Self {
            bytes: self.bytes.min(bytes),
            ..self
        }
    }

    /// An equal share for each of `parts`.
    pub(super) fn share(self, parts: u64) -> Self {
        Self {
            bytes: self.bytes / parts.max(1),
            ..self
        }
    }

    /// `parts` of `n_shares` equal shares.
    pub(super) fn fraction(self, parts: u64, n_shares: u64) -> Self {
        Self {
            bytes: self.bytes / n_shares.max(1) * parts,
            ..self
        }
    }

    /// For messages: total megabytes, and the number of parts.
    pub(super) fn described(self) -> String {
        let megabytes = self.total as f64 / 1_048_576.0;
        match self.total / self.bytes.max(1) {
            0 | 1 => format!("{megabytes:.3}"),
            parts => format!("{megabytes:.3} for {parts} of them"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_as_given_or_half_of_the_free_memory() {
        let budget = Budget::new(Some(2.0)).expect("valid");
        assert_eq!(
            (budget.rows(1 << 10), budget.share(2).rows(1 << 10)),
            (512, 256)
        );
        let share = budget.share(3);
        assert_eq!(
            [budget.described(), share.described()],
            ["2.000", "2.000 for 3 of them"]
        );
        assert!(Budget::new(None).expect("valid").rows(1) > 0);
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let message = Budget::new(Some(bad)).expect_err("refused").to_string();
            assert!(
                message.contains("kernel memory must be positive"),
                "{message}"
            );
        }
    }
}
