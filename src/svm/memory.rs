//! How much memory there is for kernel values.

use std::fs::read_to_string;

use crate::{Error, Result};

/// What is assumed to be free where the system does not say.
const ASSUMED: u64 = 4 << 30;

/// A number of bytes that kernel values may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(u64);

impl Budget {
    /// `megabytes` (of 2²⁰ bytes), or half of what is free.
    pub fn new(megabytes: Option<f64>) -> Result<Self> {
        match megabytes {
            None => Ok(Self(free() / 2)),
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked
            Some(size) if size > 0.0 && size.is_finite() => Ok(Self((size * 1_048_576.0) as u64)),
            Some(size) => Err(Error::Parameter {
                name: "memory_mb",
                rule: "positive and finite",
                value: size.to_string(),
            }),
        }
    }

    /// How many rows of `n` kernel values fit.
    pub(super) fn rows(self, n: usize) -> usize {
        let row = (n * size_of::<f32>()).max(1) as u64;
        usize::try_from(self.0 / row).unwrap_or(usize::MAX)
    }

    /// An equal share for each of `parts`.
    pub(super) fn share(self, parts: u64) -> Self {
        Self(self.0 / parts.max(1))
    }

    /// In megabytes, for messages.
    pub(super) fn megabytes(self) -> f64 {
        self.0 as f64 / 1_048_576.0
    }
}

/// What Linux could give without swapping, or the rest of the limit of a container.
fn free() -> u64 {
    let system = read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text
            .lines()
            .find(|line| line.starts_with("MemAvailable:"))?;
        let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kilobytes << 10)
    });
    let number = |name: &str| -> Option<u64> {
        let path = format!("/sys/fs/cgroup/memory.{name}");
        read_to_string(path).ok()?.trim().parse().ok()
    };
    let container = number("max")
        .zip(number("current"))
        .map(|(limit, used)| limit.saturating_sub(used));
    let known = [system, container].into_iter().flatten();
    known.min().unwrap_or(ASSUMED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_what_was_asked_for_or_half_of_what_is_free() {
        let budget = Budget::new(Some(2.0)).expect("valid");
        assert_eq!(
            (budget.rows(1 << 10), budget.share(2).rows(1 << 10)),
            (512, 256)
        );
        assert!(Budget::new(None).expect("valid").megabytes() > 0.0);
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let message = Budget::new(Some(bad)).expect_err("refused").to_string();
            assert!(message.contains("memory_mb must be positive"), "{message}");
        }
    }
}
