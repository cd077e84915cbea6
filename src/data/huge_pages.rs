//! A block of numbers, small or large.

use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
use memmap2::MmapMut;

/// Bytes from which a block has memory of its own: the size of a huge page.
const LARGE: usize = 1 << 21;

/// Numbers in memory that, for a large block, is asked of the system directly, on huge pages where
/// there are any. A block of hundreds of megabytes is filled several times faster than by page
/// faults of 4 KB, and numbers read in any order find their addresses translated.
#[derive(Debug)]
pub struct HugePageBuffer<T = f64> {
    memory: Memory<T>,
}

#[derive(Debug)]
enum Memory<T> {
    Small(Vec<T>),
    /// So many numbers, and perhaps room that is not used.
    Large(MmapMut, usize),
}

impl<T: Pod> HugePageBuffer<T> {
    /// `n` zeros.
    pub fn new(n: usize) -> Self {
        Self::zeroed(n).unwrap_or_else(|| Self {
            memory: Memory::Small(vec![T::zeroed(); n]),
        })
    }

    /// `n` zeros, or `None` if there is not enough memory.
    pub(crate) fn zeroed(n: usize) -> Option<Self> {
        let n_bytes = n.checked_mul(size_of::<T>())?;
        if n_bytes < LARGE {
            return Some(Self {
                memory: Memory::Small(vec![T::zeroed(); n]),
            });
        }
        // Whole huge pages are what the system aligns.
        let memory = MmapMut::map_anon(n_bytes.checked_next_multiple_of(LARGE)?).ok()?;
        // Advice may be declined; the block is as good without.
        #[cfg(target_os = "linux")]
        let _ = memory.advise(memmap2::Advice::HugePage);
        Some(Self {
            memory: Memory::Large(memory, n),
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
            Memory::Small(numbers) => Self {
                memory: Memory::Small(numbers.clone()),
            },
            Memory::Large(..) => {
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
            Memory::Small(numbers) => numbers,
            Memory::Large(memory, n) => &bytemuck::cast_slice(memory)[..*n],
        }
    }
}

impl<T: Pod> DerefMut for HugePageBuffer<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.memory {
            Memory::Small(numbers) => numbers,
            Memory::Large(memory, n) => &mut bytemuck::cast_slice_mut(memory)[..*n],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_with_zeros_and_keeps_what_is_written() {
        for n in [1, 1000, LARGE / 8 - 1, LARGE / 8, LARGE / 8 + 1] {
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
