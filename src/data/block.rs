//! A large block of numbers.

use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

/// Numbers in memory that is asked of the system directly, on huge pages where there are any. A
/// block of hundreds of megabytes is filled several times faster than by page faults of 4 KB, and
/// rows read in any order find their addresses translated.
#[derive(Debug)]
pub struct Block {
    memory: MmapMut,
}

impl Block {
    /// `n` zeros, or `None` if there is not enough memory.
    pub(super) fn zeroed(n: usize) -> Option<Self> {
        let n_bytes = n.checked_mul(size_of::<f64>())?;
        let memory = MmapMut::map_anon(n_bytes).ok()?;
        // Advice may be declined; the block is as good without.
        #[cfg(target_os = "linux")]
        let _ = memory.advise(memmap2::Advice::HugePage);
        Some(Self { memory })
    }
}

impl Deref for Block {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        bytemuck::cast_slice(&self.memory)
    }
}

impl DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [f64] {
        bytemuck::cast_slice_mut(&mut self.memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_with_zeros_and_keeps_what_is_written() {
        let mut block = Block::zeroed(1000).expect("memory");
        assert_eq!(block[..], [0.0; 1000]);
        block[999] = 2.5;
        assert_eq!((block.len(), block[999]), (1000, 2.5));
        assert!(Block::zeroed(usize::MAX).is_none());
    }
}
