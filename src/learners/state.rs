//! Copy-on-write state of models.
//!
//! A model's numbers are *vectors*, one per output as far as an update can leave some outputs alone,
//! and a few *scalars*. A fork shares every vector with its origin by reference count and copies the
//! scalars only; the first write through either handle copies that vector alone. So a fork costs
//! O(vectors), and the models of a recursion, of several candidates or of all folds hold in memory
//! once what they have in common.
//!
//! | operation | cost |
//! |---|---|
//! | fork | one counter per vector, the scalars |
//! | first write to a shared vector | a copy of that vector |
//! | write to an unshared vector | nothing |
//! | copy into another state | all numbers |

use std::fmt::Display;
use std::iter::{repeat_n, repeat_with};
use std::sync::Arc;

use rayon::current_num_threads;

use super::undo::{Entry, Undo as _, UndoLog};
use crate::Result;
use crate::runtime::memory;
use crate::runtime::threads::is_parallel;

/// Values that a vector occupies besides its own: its pointer, length, counters and alignment.
const VECTOR_OVERHEAD: usize = 6;

/// Size of a state from which copies are checked. A check takes less time than such a copy.
const MIN_CHECKED_COPY_BYTES: u64 = 8 << 20;

/// The numbers of a model: vectors that are shared until they are written, and scalars.
#[derive(Debug, Default)]
pub struct State {
    vectors: Vec<Arc<[f64]>>,
    scalars: Vec<f64>,
    bytes_copied: u64,
}

impl State {
    /// From vectors and scalars.
    pub fn new(vectors: impl IntoIterator<Item = Vec<f64>>, scalars: Vec<f64>) -> Self {
        Self {
            vectors: vectors.into_iter().map(Arc::from).collect(),
            scalars,
            bytes_copied: 0,
        }
    }

    /// `n_vectors` vectors of `len` zeros and `n_scalars` zeros;
    /// [`Error::Memory`](crate::Error::Memory) names `what` if they do not fit.
    pub fn zeros(
        what: impl Display,
        n_vectors: usize,
        len: usize,
        n_scalars: usize,
    ) -> Result<Self> {
        let per_vector = len.saturating_add(VECTOR_OVERHEAD);
        let n_values = n_vectors.saturating_mul(per_vector);
        memory::check::<f64>(what, n_values.saturating_add(n_scalars) as u64)?;
        let vector = || repeat_n(0.0, len).collect::<Arc<[f64]>>();
        Ok(Self {
            vectors: repeat_with(vector).take(n_vectors).collect(),
            scalars: vec![0.0; n_scalars],
            bytes_copied: 0,
        })
    }

    /// Checks that every thread of the pool can copy the vectors.
    pub(super) fn check_copies(&self) -> Result<()> {
        let n_values = self.len() as u64;
        if n_values * (size_of::<f64>() as u64) < MIN_CHECKED_COPY_BYTES {
            return Ok(());
        }
        let n_copies = if is_parallel() {
            current_num_threads()
        } else {
            1
        };
        let what = format_args!("copying a model of {n_values} values for {n_copies} threads");
        memory::check::<f64>(what, n_values * n_copies as u64)
    }

    /// The number of vectors.
    pub fn n_vectors(&self) -> usize {
        self.vectors.len()
    }

    /// A vector, to read.
    ///
    /// # Panics
    /// When there is no such vector.
    #[inline(always)]
    pub fn vector(&self, index: usize) -> &[f64] {
        &self.vectors[index]
    }

    /// A vector to write; copied first if it is shared.
    ///
    /// # Panics
    /// When there is no such vector.
    #[inline(always)]
    pub fn vector_mut(&mut self, index: usize) -> &mut [f64] {
        self.parts_mut(index).0
    }

    /// Returns true if writing to a vector will copy it, unless its other handles are dropped before.
    ///
    /// # Panics
    /// When there is no such vector.
    #[inline(always)]
    pub fn is_shared(&self, index: usize) -> bool {
        Arc::strong_count(&self.vectors[index]) > 1
    }

    /// A vector and the scalars to write; the vector is copied first if it is shared.
    ///
    /// # Panics
    /// When there is no such vector.
    #[inline(always)]
    pub fn parts_mut(&mut self, index: usize) -> (&mut [f64], &mut [f64]) {
        let vector = &mut self.vectors[index];
        let before = vector.as_ptr();
        let values = Arc::make_mut(vector);
        if values.as_ptr() != before {
            self.bytes_copied += size_of_val(values) as u64;
        }
        (values, &mut self.scalars)
    }

    /// The scalars, to read.
    #[inline(always)]
    pub fn scalars(&self) -> &[f64] {
        &self.scalars
    }

    /// The scalars, to write.
    #[inline(always)]
    pub fn scalars_mut(&mut self) -> &mut [f64] {
        &mut self.scalars
    }

    /// Returns true if `self` and `other` hold the same vector in memory.
    pub fn shares(&self, other: &Self, index: usize) -> bool {
        Arc::ptr_eq(&self.vectors[index], &other.vectors[index])
    }

    /// Shares all vectors.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            vectors: self.vectors.clone(),
            scalars: self.scalars.clone(),
            bytes_copied: 0,
        }
    }

    /// Copies all numbers of a state of the same shape, in place where no vector is shared.
    pub fn copy_from(&mut self, source: &Self) {
        for (vector, source) in self.vectors.iter_mut().zip(&source.vectors) {
            match Arc::get_mut(vector) {
                Some(vector) => vector.copy_from_slice(source),
                None => *vector = Arc::from(&**source),
            }
            self.bytes_copied += size_of_val(&**source) as u64;
        }
        self.scalars.copy_from_slice(&source.scalars);
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        let vectors: usize = self.vectors.iter().map(|vector| vector.len()).sum();
        vectors + self.scalars.len()
    }

    /// Returns true if there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All values: vector after vector, then the scalars.
    pub fn to_vec(&self) -> Vec<f64> {
        let vectors = self.vectors.iter().flat_map(|vector| vector.iter());
        vectors.chain(&self.scalars).copied().collect()
    }

    /// Overwrites all values by those of [`State::to_vec`].
    ///
    /// # Panics
    /// When there are fewer values than the state has.
    pub fn assign(&mut self, mut values: &[f64]) {
        for index in 0..self.n_vectors() {
            let vector = self.vector_mut(index);
            let here;
            (here, values) = values.split_at(vector.len());
            vector.copy_from_slice(here);
        }
        self.scalars.copy_from_slice(values);
    }

    /// Bytes copied since the last call, by writes to shared vectors or by [`State::copy_from`].
    pub fn take_bytes_copied(&mut self) -> u64 {
        std::mem::take(&mut self.bytes_copied)
    }

    /// Saves every value in the log.
    pub fn save(&self, log: &mut UndoLog) {
        for (index, vector) in self.vectors.iter().enumerate() {
            log.save_all(index, 0, vector);
        }
        log.save_all(self.n_vectors(), 0, &self.scalars);
    }

    /// Restores what was saved in the log since it was `mark` long.
    pub fn revert(&mut self, log: &mut UndoLog, mark: usize) {
        log.revert_runs(mark, |vector, entries| self.restore(vector, entries));
    }

    /// Restores saved elements of one vector, the newest first; the scalars count as the vector after
    /// the last.
    pub(super) fn restore(&mut self, vector: usize, entries: &[Entry]) {
        let values = if vector < self.vectors.len() {
            self.vector_mut(vector)
        } else {
            &mut self.scalars
        };
        for entry in entries.iter().rev() {
            values[entry.index as usize] = entry.value;
        }
    }
}

impl Clone for State {
    /// A clone is a fork.
    fn clone(&self) -> Self {
        self.fork()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn state() -> State {
        State::new([vec![1.0, 2.0], vec![3.0], vec![]], vec![4.0])
    }

    fn shared(a: &State, b: &State) -> Vec<usize> {
        (0..a.n_vectors()).filter(|&v| a.shares(b, v)).collect()
    }

    #[test]
    fn the_first_write_copies_one_vector() {
        let mut one = state();
        assert_eq!((one.n_vectors(), one.len(), one.is_empty()), (3, 4, false));
        assert!(State::default().is_empty());
        let mut other = one.clone();
        assert_eq!(shared(&one, &other), [0, 1, 2]);
        assert_eq!(other.take_bytes_copied(), 0);
        assert!(other.is_shared(0));

        other.vector_mut(0)[1] = 9.0;
        other.scalars_mut()[0] = 8.0;
        assert_eq!(shared(&one, &other), [1, 2]);
        assert_eq!(other.to_vec(), [1.0, 9.0, 3.0, 8.0]);
        assert_eq!(one.to_vec(), [1.0, 2.0, 3.0, 4.0]);
        // What is not shared is written in place, by either handle.
        let address = other.vector(0).as_ptr();
        other.parts_mut(0).0[0] = 7.0;
        assert_eq!(other.vector(0).as_ptr(), address);
        assert!(!one.is_shared(0));
        one.vector_mut(0)[0] = 6.0;
        assert_eq!(
            (one.take_bytes_copied(), other.take_bytes_copied()),
            (0, 16)
        );
        assert_eq!(other.take_bytes_copied(), 0);
        // The last handle of a vector owns it.
        drop(one);
        other.vector_mut(1)[0] = 5.0;
        assert_eq!(other.take_bytes_copied(), 0);
        assert_eq!(other.to_vec(), [7.0, 9.0, 5.0, 8.0]);
    }

    #[test]
    fn a_copy_shares_nothing_and_keeps_its_memory() {
        let source = state();
        let mut copy = source.fork();
        copy.copy_from(&source);
        assert_eq!(copy.to_vec(), source.to_vec());
        assert!(shared(&copy, &source).is_empty());
        assert_eq!(copy.take_bytes_copied(), 24);
        let address = copy.vector(0).as_ptr();
        copy.assign(&[0.0; 4]);
        copy.copy_from(&source);
        assert_eq!(copy.vector(0).as_ptr(), address);
        assert_eq!(copy.to_vec(), source.to_vec());
        // A third handle of what is copied over stays as it is.
        copy.assign(&[5.0, 6.0, 7.0, 8.0]);
        let third = copy.fork();
        copy.copy_from(&source);
        assert_eq!(third.to_vec(), [5.0, 6.0, 7.0, 8.0]);
        assert!(shared(&copy, &third).is_empty());
    }

    #[test]
    fn reverting_one_handle_leaves_others_alone() {
        let mut one = state();
        let mut log = UndoLog::default();
        one.save(&mut log);
        one.assign(&[5.0, 6.0, 7.0, 8.0]);
        let mark = log.len();
        log.save_all(0, 1, &one.vector(0)[1..]);
        one.vector_mut(0)[1] = 9.0;
        let other = one.fork();
        one.revert(&mut log, mark);
        assert_eq!(one.to_vec(), [5.0, 6.0, 7.0, 8.0]);
        assert_eq!(shared(&one, &other), [1, 2]);
        one.revert(&mut log, 0);
        assert_eq!(one.to_vec(), [1.0, 2.0, 3.0, 4.0]);
        // Nothing is reverted in a vector without elements.
        assert_eq!(shared(&one, &other), [2]);
        assert_eq!(other.to_vec(), [5.0, 9.0, 7.0, 8.0]);
    }

    #[test]
    fn handles_are_independent_on_several_threads() {
        let parent = State::new((0..8).map(|v| vec![f64::from(v); 100]), vec![0.0]);
        let before = parent.to_vec();
        thread::scope(|scope| {
            for thread in 1..5 {
                let parent = &parent;
                scope.spawn(move || {
                    let mut child = parent.fork();
                    for (vector, element) in (0..8).flat_map(|v| (0..100).map(move |e| (v, e))) {
                        child.vector_mut(vector)[element] += f64::from(thread);
                        assert_eq!(parent.vector(vector)[element], vector as f64);
                    }
                    let expected = parent.to_vec().into_iter().map(|v| v + f64::from(thread));
                    assert!(child.to_vec()[..800].iter().copied().eq(expected.take(800)));
                    assert_eq!(child.take_bytes_copied(), 6400);
                });
            }
        });
        assert_eq!(parent.to_vec(), before);
    }
}
