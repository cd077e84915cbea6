//! A buffer of numbers: heap memory, or mapped memory on huge pages.

use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
use memmap2::MmapMut;

/// Bytes of a huge page; buffers of at least as many are mapped.
const HUGE_PAGE_BYTES: usize = 1 << 21;

/// A buffer of numbers. A large one is mapped, on huge pages where the system has them: hundreds of
/// megabytes are filled several times faster than by page faults of 4 KB, and scattered reads miss the
/// translation of addresses less often.
#[derive(Debug)]
pub struct HugePageBuffer<T = f64> {
    memory: Memory<T>,
}

#[derive(Debug)]
enum Memory<T> {
    Heap(Vec<T>),
    /// Mapped memory, and the number of elements in use.
    Mapped(MmapMut, usize),
}

impl<T: Pod> HugePageBuffer<T> {
    /// `n` zeros.
    pub fn new(n: usize) -> Self {
        Self::zeroed(n).unwrap_or_else(|| Self {
            memory: Memory::Heap(vec![T::zeroed(); n]),
        })
    }

    /// `n` zeros, or `None` if there is not enough memory.
    pub(crate) fn zeroed(n: usize) -> Option<Self> {
        let n_bytes = n.checked_mul(size_of::<T>())?;
        if n_bytes < HUGE_PAGE_BYTES {
            return Some(Self {
                memory: Memory::Heap(vec![T::zeroed(); n]),
            });
        }
        // Whole huge pages are what the system aligns.
        let memory = MmapMut::map_anon(n_bytes.checked_next_multiple_of(HUGE_PAGE_BYTES)?).ok()?;
        // If the system declines the advice, pages are small.
        #[cfg(target_os = "linux")]
        let _ = memory.advise(memmap2::Advice::HugePage);
        Some(Self {
            memory: Memory::Mapped(memory, n),
        })
    }
}

impl<T: Pod> Default for HugePageBuffer<T> {
    fn default() -> Self {
        Self::new(0)
    }
}

impl<T: Pod> Clone for HugePageBuffer<T> {
    fn clone(&self) -> Self {
        match &self.memory {
            Memory::Heap(numbers) => Self {
                memory: Memory::Heap(numbers.clone()),
            },
            Memory::Mapped(..) => {
                let mut copy = Self::new(self.len());
                copy.copy_from_slice(self);
                copy
            }
        }
    }
}

impl<T: Pod> Deref for HugePageBuffer<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        match &self.memory {
            Memory::Heap(numbers) => numbers,
            Memory::Mapped(memory, n) => &bytemuck::cast_slice(memory)[..*n],
        }
    }
}

impl<T: Pod> DerefMut for HugePageBuffer<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.memory {
            Memory::Heap(numbers) => numbers,
            Memory::Mapped(memory, n) => &mut bytemuck::cast_slice_mut(memory)[..*n],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_with_zeros_and_keeps_what_is_written() {
        for n in [
            1,
            1000,
            HUGE_PAGE_BYTES / 8 - 1,
            HUGE_PAGE_BYTES / 8,
            HUGE_PAGE_BYTES / 8 + 1,
        ] {
            let mut block = HugePageBuffer::<f64>::new(n);
            assert_eq!(block.len(), n);
            assert!(block.iter().all(|&number| number == 0.0));
            block[n - 1] = 2.5;
            let copy = block.clone();
            block[n - 1] = 3.5;
            assert_eq!((copy.len(), copy[n - 1], block[n - 1]), (n, 2.5, 3.5));
        }
        assert!(HugePageBuffer::<f32>::new(0).is_empty());
        assert!(HugePageBuffer::<f32>::zeroed(usize::MAX).is_none());
        assert!(HugePageBuffer::<f64>::zeroed(usize::MAX / 8).is_none());
    }
}
