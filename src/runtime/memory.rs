//! Memory that this process may still use, and checks of sizes before memory is allocated.
//!
//! # Problem
//! An allocation that fails ends the process; one that the system grants but cannot back
//! ends it later. Neither is an error that a caller can handle.
//!
//! # Method
//! A size that follows from arguments is [checked](check) where it is first known: its bytes
//! must fit into the least of free memory, the limits of the control groups (versions 1 and 2) and of
//! the process (address space, data), and the system must map them. What is not checked, such as
//! the stacks of threads and buffers of a few rows, lives in [`SPARE_BYTES`], which every check leaves
//! free.

use std::fmt::Display;
use std::fs::read_to_string;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapMut;

use crate::{Error, Result};

/// Free memory assumed where the system does not report it.
const ASSUMED_FREE_BYTES: u64 = 4 << 30;

/// Bytes that every check leaves free for allocations that are not checked.
const SPARE_BYTES: u64 = 32 << 20;

/// Sizes below this are part of the spare bytes.
const MIN_CHECKED_BYTES: u64 = 1 << 20;

/// Checks up to one that fails on purpose; 0 is none.
static CHECKS_TO_FAILURE: AtomicU64 = AtomicU64::new(0);

/// Makes the `n`-th check from now on fail, whatever its size, and no other one; 0 takes that back.
/// Tests find out by it what a failure leaves behind. Returns what was left of the number before.
#[cfg(feature = "python")]
pub(crate) fn fail_check(n: u64) -> u64 {
    CHECKS_TO_FAILURE.swap(n, Ordering::Relaxed)
}

fn fails_on_purpose() -> bool {
    let less = |n: u64| n.checked_sub(1);
    CHECKS_TO_FAILURE.load(Ordering::Relaxed) > 0
        && CHECKS_TO_FAILURE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) == Ok(1)
}

/// Bytes that can be allocated without swapping.
pub(crate) fn available() -> u64 {
    System::read(true).available(0)
}

/// Checks that `n` values of type `T` can be allocated; otherwise [`Error::Memory`] names `what`.
pub(crate) fn check<T>(what: impl Display, n: u64) -> Result<()> {
    let bytes = n.saturating_mul(size_of::<T>() as u64);
    if fails_on_purpose() {
        return Err(shortage(what, bytes, SPARE_BYTES));
    }
    if bytes < MIN_CHECKED_BYTES {
        return Ok(());
    }
    let needed = bytes.saturating_add(SPARE_BYTES);
    let mut available = 0;
    // Usually there is enough even if cached files count as used.
    for cached_is_free in [false, true] {
        let system = System::read(cached_is_free);
        available = system.available(system.swap_free);
        if needed <= available && can_map(needed) {
            return Ok(());
        }
    }
    Err(shortage(what, bytes, available))
}

/// The error of a size that does not fit what is available besides the spare bytes.
pub(crate) fn shortage(what: impl Display, bytes: u64, available: u64) -> Error {
    Error::Memory {
        what: what.to_string(),
        bytes,
        available: available.saturating_sub(SPARE_BYTES),
    }
}

/// Checks that the system maps `bytes` besides the spare bytes, without asking how much memory
/// there is: a small part of the cost of a [`check`].
#[cfg(feature = "python")]
pub(crate) fn check_mappable(what: impl Display, bytes: u64) -> Result<()> {
    if !fails_on_purpose() && can_map(bytes + SPARE_BYTES) {
        return Ok(());
    }
    Err(shortage(what, bytes, available()))
}

/// [`check`] of an array of this shape.
pub(crate) fn check_shape<T>(what: impl Display, shape: &[usize]) -> Result<()> {
    let product = |n: u64, &length: &usize| n.saturating_mul(length as u64);
    check::<T>(what, shape.iter().fold(1, product))
}

/// `n` times `value`, or [`Error::Memory`].
pub(crate) fn filled<T: Clone>(what: impl Display, n: usize, value: T) -> Result<Vec<T>> {
    check::<T>(what, n as u64)?;
    Ok(vec![value; n])
}

/// Reserves memory for `n` more items, or fails with [`Error::Memory`].
pub(crate) fn reserve<T>(what: impl Display, items: &mut Vec<T>, n: usize) -> Result<()> {
    if items.capacity() - items.len() >= n {
        return Ok(());
    }
    let n_items = items.len().saturating_add(n) as u64;
    check::<T>(&what, n_items)?;
    let reserved = items.try_reserve(n).or_else(|_| items.try_reserve_exact(n));
    reserved.map_err(|_| {
        let bytes = n_items.saturating_mul(size_of::<T>() as u64);
        shortage(what, bytes, available())
    })
}

/// Returns true if the system maps this many bytes in one piece. Memory that the allocator has kept
/// does not count: each thread may have to use its own.
fn can_map(bytes: u64) -> bool {
    usize::try_from(bytes).is_ok_and(|bytes| MmapMut::map_anon(bytes).is_ok())
}

/// What the system reports, in bytes; `None` where it does not.
#[derive(Clone, Copy, Debug, Default)]
struct System {
    /// Memory that can be used without swapping.
    free: Option<u64>,
    swap_free: u64,
    /// The least that the limits of the control groups leave.
    control_groups: Option<u64>,
    /// The least that the limits of the process leave.
    limits: Option<u64>,
}

impl System {
    /// Read anew each time: limits and use change. Without `cached_is_free`, files that are cached
    /// count as used in control groups, whose statistics take long to read.
    fn read(cached_is_free: bool) -> Self {
        let meminfo = read_to_string("/proc/meminfo").unwrap_or_default();
        let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
        let limits = read_to_string("/proc/self/limits").unwrap_or_default();
        let status = || read_to_string("/proc/self/status").unwrap_or_default();
        Self {
            free: kilobytes(&meminfo, "MemAvailable:"),
            swap_free: kilobytes(&meminfo, "SwapFree:").unwrap_or(0),
            control_groups: control_groups(&groups, Path::new("/sys/fs/cgroup"), cached_is_free),
            limits: limits_left(&limits, status),
        }
    }

    /// The least of what is known, with `swap` added to the free memory.
    fn available(self, swap: u64) -> u64 {
        let free = self.free.map(|free| free.saturating_add(swap));
        let known = [free, self.control_groups, self.limits];
        let least = known.into_iter().flatten().min();
        least.unwrap_or(ASSUMED_FREE_BYTES)
    }
}

/// The bytes of the line `name` of a file such as /proc/meminfo.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes << 10)
}

/// What the limits of the process leave of its address space and data, from /proc/self/limits and
/// /proc/self/status. The latter takes long to read and is needed only where there is a limit.
fn limits_left(limits: &str, status: impl Fn() -> String) -> Option<u64> {
    let left = |limit: &str, used: &str| -> Option<u64> {
        let line = limits.lines().find_map(|line| line.strip_prefix(limit))?;
        let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(limit.saturating_sub(kilobytes(&status(), used).unwrap_or(0)))
    };
    let address_space = left("Max address space", "VmSize:");
    let data = left("Max data size", "VmData:");
    address_space.into_iter().chain(data).min()
}

/// What the control groups listed in `groups`, the text of /proc/self/cgroup, and their ancestors
/// leave. With `cached_is_free`, pages of files count as free: the kernel drops them first.
fn control_groups(groups: &str, root: &Path, cached_is_free: bool) -> Option<u64> {
    let left = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, Path::new(fields.next()?));
        let (root, names) = match controllers {
            "" => (root.to_owned(), VERSION_2),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (root.join("memory"), VERSION_1)
            }
            _ => return None,
        };
        let ancestors = path.ancestors().map(|path| path.strip_prefix("/"));
        let directories = ancestors.map(|path| root.join(path.unwrap_or(Path::new(""))));
        directories
            .filter_map(|directory| names.remaining(&directory, cached_is_free))
            .min()
    });
    left.min()
}

/// The names of a control group's files and of the counters of cached files.
struct Names {
    limit: &'static str,
    used: &'static str,
    cached: [&'static str; 2],
}

const VERSION_1: Names = Names {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    cached: ["total_inactive_file ", "total_active_file "],
};

const VERSION_2: Names = Names {
    limit: "memory.max",
    used: "memory.current",
    cached: ["inactive_file ", "active_file "],
};

impl Names {
    /// What the group at `directory` leaves; `None` if it has no limit.
    fn remaining(&self, directory: &Path, cached_is_free: bool) -> Option<u64> {
        let read = |name: &str| read_to_string(directory.join(name)).ok();
        let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
        let limit = number(self.limit)?;
        let statistics = cached_is_free.then(|| read("memory.stat")).flatten();
        let statistics = statistics.unwrap_or_default();
        let cached = self.cached.iter().filter_map(|name| {
            let line = statistics
                .lines()
                .find_map(|line| line.strip_prefix(name))?;
            line.trim().parse::<u64>().ok()
        });
        let used = number(self.used)?.saturating_sub(cached.sum());
        Some(limit.saturating_sub(used))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn sizes_that_fit_pass_and_others_are_named() {
        assert!(check::<f64>("nothing", 0).is_ok());
        assert!(check_shape::<f64>("a few", &[100, 100]).is_ok());
        assert_eq!(filled("a few", 3, 1.5).expect("fits"), [1.5; 3]);
        let mut items = vec![1, 2];
        reserve("items", &mut items, 1000).expect("fits");
        assert!(items.capacity() >= 1002);
        assert!(reserve("items", &mut items, usize::MAX).is_err());
        assert_eq!(items, [1, 2]);
        let message = |shape: &[usize]| {
            let refused = check_shape::<f64>("n_clusters=7", shape);
            refused.expect_err("refused").to_string()
        };
        let petabytes = message(&[1 << 40, 1 << 10]);
        assert!(
            petabytes.starts_with("n_clusters=7 needs 9007199254740992 bytes (8.0 PiB)"),
            "{petabytes}"
        );
        // A product that overflows is the largest number.
        assert!(message(&[usize::MAX, usize::MAX]).contains("18446744073709551615 bytes"));
        assert!(!can_map(u64::MAX));
    }

    #[test]
    fn the_least_of_the_known_limits_holds() {
        let system = System {
            free: Some(100),
            swap_free: 50,
            control_groups: Some(120),
            limits: None,
        };
        assert_eq!((system.available(0), system.available(50)), (100, 120));
        let limited = System {
            limits: Some(7),
            ..system
        };
        assert_eq!(limited.available(50), 7);
        assert_eq!(System::default().available(0), ASSUMED_FREE_BYTES);
    }

    #[test]
    fn limits_of_the_process_are_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max data size             unlimited            unlimited            bytes\n\
                      Max address space         3145728              unlimited            bytes\n";
        let status = || "VmSize:\t    1024 kB\nVmData:\t      64 kB\n".to_owned();
        assert_eq!(limits_left(limits, status), Some(2 << 20));
        assert_eq!(limits_left("", status), None);
    }

    #[test]
    fn limits_of_control_groups_and_their_ancestors_are_read() {
        let root = std::env::temp_dir().join(format!("onefold-cgroup-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("created");
            fs::write(path, text).expect("written");
        };
        write("a/memory.max", "1000\n");
        write("a/memory.current", "600\n");
        write(
            "a/memory.stat",
            "anon 300\ninactive_file 100\nactive_file 50\n",
        );
        write("a/b/memory.max", "max\n");
        write("a/b/memory.current", "5\n");
        assert_eq!(control_groups("0::/a/b\n", &root, true), Some(550));
        assert_eq!(control_groups("0::/a/b\n", &root, false), Some(400));
        write("memory/c/memory.limit_in_bytes", "900\n");
        write("memory/c/memory.usage_in_bytes", "800\n");
        write("memory/c/memory.stat", "total_inactive_file 20\n");
        let both = "4:cpu,memory:/c\n3:cpuset:/x\n0::/a/b\n";
        assert_eq!(control_groups(both, &root, true), Some(120));
        assert_eq!(control_groups("0::/nowhere\n", &root, true), None);
        fs::remove_dir_all(root).expect("removed");
    }
}
