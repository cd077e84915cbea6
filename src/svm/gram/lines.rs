//! Kernel rows as they are stored, for loops that look at one block of values after the other.
//!
//! A row that is coded need not be decoded as a whole, written to memory and read again: a block of it
//! is decoded where it is looked at, and stays in the nearest cache. A loop over [`Lines`] is compiled
//! for values and for codes; what it computes is the same.

use std::fmt::Debug;
use std::ops::Deref;

use super::coded::Decoded;
use super::{Gram, GramRow};

/// Values that are looked at together: few enough to stay at hand.
pub(in crate::svm) const BLOCK: usize = 512;

/// Kernel rows in the form in which they are kept.
pub(in crate::svm) trait Lines: Copy + Debug {
    /// A kernel value, or what stands for it.
    type Value: Copy + Default + Debug;

    /// A whole row.
    type Line: Deref<Target = [Self::Value]>;

    /// Where a block is decoded, if it must be.
    type Room;

    /// Row `i`.
    fn line(self, i: usize) -> Self::Line;

    /// Some values of row `i`.
    fn pick(self, i: usize, columns: &[u32], out: &mut [Self::Value]);

    /// Room for one block.
    fn room() -> Self::Room;

    /// The kernel values of at most [`BLOCK`] stored ones.
    fn values<'r>(self, stored: &'r [Self::Value], room: &'r mut Self::Room) -> &'r [f32];

    /// Memory for parts of rows, which may hold anything.
    fn lend(self) -> Vec<Self::Value>;

    /// Takes the memory back, for the next who asks.
    fn take_back(self, memory: Vec<Self::Value>);
}

/// The values of some columns of a row.
pub(super) fn pick<T: Copy>(row: &[T], columns: &[u32], out: &mut [T]) {
    for (out, &column) in out.iter_mut().zip(columns) {
        *out = row[column as usize];
    }
}

impl<'a> Lines for &'a Gram<'a> {
    type Value = f32;
    type Line = GramRow<'a>;
    type Room = ();

    #[inline]
    fn line(self, i: usize) -> GramRow<'a> {
        self.row(i)
    }

    fn pick(self, i: usize, columns: &[u32], out: &mut [f32]) {
        if !self.source.pick(i, columns, out) {
            pick(&self.row(i), columns, out);
        }
    }

    #[inline(always)]
    fn room() {}

    #[inline(always)]
    fn values<'r>(self, stored: &'r [f32], (): &'r mut ()) -> &'r [f32] {
        stored
    }

    fn lend(self) -> Vec<f32> {
        self.shelf().gathered.lend()
    }

    fn take_back(self, memory: Vec<f32>) {
        self.shelf().gathered.take_back(memory);
    }
}

impl<'a> Lines for &'a Decoded {
    type Value = u8;
    type Line = &'a [u8];
    type Room = [f32; BLOCK];

    #[inline]
    fn line(self, i: usize) -> &'a [u8] {
        self.codes().row(i)
    }

    fn pick(self, i: usize, columns: &[u32], out: &mut [u8]) {
        pick(self.codes().row(i), columns, out);
    }

    #[inline(always)]
    fn room() -> [f32; BLOCK] {
        [0.0; BLOCK]
    }

    #[inline(always)]
    fn values<'r>(self, stored: &'r [u8], room: &'r mut [f32; BLOCK]) -> &'r [f32] {
        let values = &mut room[..stored.len()];
        self.table().look_up(stored, values);
        values
    }

    fn lend(self) -> Vec<u8> {
        self.gathered().lend()
    }

    fn take_back(self, memory: Vec<u8>) {
        self.gathered().take_back(memory);
    }
}
