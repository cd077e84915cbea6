//! Folds: a partition of the samples.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use ndarray::{Array1, ArrayView1};

use super::{Resampling, reject};
use crate::Result;
use crate::runtime::memory;
use crate::runtime::random::{SplitMix, permutation};

/// A partition of the samples into folds.
///
/// Rows are kept permuted so that fold `i` is `rows[starts[i]..starts[i + 1]]`; therefore the
/// union of consecutive folds, a *span*, is one slice, and no engine builds index lists.
///
/// ```
/// use ndarray::array;
/// use onefold::Folds;
///
/// let folds = Folds::from_labels(&array![2, 0, 1, 0, 2, 2], 3)?;
/// assert_eq!((folds.len(), folds.n_samples()), (3, 6));
/// assert_eq!(folds.rows(0..1), [1, 3]);
/// assert_eq!(folds.rows(0..2), [1, 3, 2]);
/// assert_eq!(folds.complement(1), (&[1, 3][..], &[0, 4, 5][..]));
/// # Ok::<(), onefold::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folds {
    rows: Vec<usize>,
    starts: Vec<usize>,
}

impl Folds {
    /// Returns `n_folds` runs of consecutive samples whose sizes differ by at most one, larger ones
    /// first.
    ///
    /// ```
    /// use onefold::Folds;
    ///
    /// let folds = Folds::contiguous(5, 2)?;
    /// assert_eq!(folds.rows(0..1), [0, 1, 2]);
    /// assert_eq!(folds.rows(1..2), [3, 4]);
    /// # Ok::<(), onefold::Error>(())
    /// ```
    pub fn contiguous(n_samples: usize, n_folds: usize) -> Result<Self> {
        check_n_folds(n_samples, n_folds)?;
        let (size, larger) = (n_samples / n_folds, n_samples % n_folds);
        let starts = (0..=n_folds)
            .map(|fold| fold * size + fold.min(larger))
            .collect();
        Ok(Self {
            rows: (0..n_samples).collect(),
            starts,
        })
    }

    /// Returns `n_folds` folds of random samples, whose sizes are those of [`Folds::contiguous`].
    /// Equal seeds give equal folds on every machine.
    ///
    /// ```
    /// use onefold::Folds;
    ///
    /// let folds = Folds::shuffled(100, 10, 42)?;
    /// assert!((0..10).all(|fold| folds.rows(fold..fold + 1).len() == 10));
    /// assert_eq!(folds, Folds::shuffled(100, 10, 42)?);
    /// assert_ne!(folds, Folds::shuffled(100, 10, 43)?);
    /// # Ok::<(), onefold::Error>(())
    /// ```
    pub fn shuffled(n_samples: usize, n_folds: usize, seed: u64) -> Result<Self> {
        let mut folds = Self::contiguous(n_samples, n_folds)?;
        folds.rows = permutation(n_samples, seed);
        for bounds in folds.starts.windows(2) {
            folds.rows[bounds[0]..bounds[1]].sort_unstable();
        }
        Ok(folds)
    }

    /// Returns `n_folds` folds in which every class has nearly the same share, as scikit-learn's
    /// `StratifiedKFold` without shuffling. At least one class must have `n_folds` samples.
    ///
    /// ```
    /// use ndarray::array;
    /// use onefold::Folds;
    ///
    /// let folds = Folds::stratified(&array![0, 0, 0, 0, 1, 1], 2)?;
    /// assert_eq!(folds.rows(0..1), [0, 1, 4]);
    /// assert_eq!(folds.rows(1..2), [2, 3, 5]);
    /// # Ok::<(), onefold::Error>(())
    /// ```
    #[allow(clippy::cast_possible_truncation)] // codes are no more than u32 classes, nor are folds
    pub fn stratified<'a>(classes: impl Into<ArrayView1<'a, u32>>, n_folds: usize) -> Result<Self> {
        let classes = classes.into();
        check_n_folds(classes.len(), n_folds)?;
        // Classes are numbered in the order in which they appear.
        let mut codes = HashMap::new();
        let mut counts: Vec<usize> = Vec::new();
        let classes: Vec<u32> = classes
            .iter()
            .map(|&class| {
                let code = *codes.entry(class).or_insert(counts.len());
                counts.resize(counts.len().max(code + 1), 0);
                counts[code] += 1;
                code as u32
            })
            .collect();
        let largest = counts.iter().copied().max().unwrap_or(0);
        if largest < n_folds {
            return reject(format!(
                "the largest class has {largest} samples, fewer than the {n_folds} folds"
            ));
        }
        // Sorted by class, the samples take the folds in rotation: this gives the number of samples
        // of each class in each fold. Within a class, samples fill the folds in order.
        let mut rotation = (0..n_folds as u32).cycle();
        let assignments: Vec<Vec<u32>> = counts
            .iter()
            .map(|&count| {
                let mut folds: Vec<_> = rotation.by_ref().take(count).collect();
                folds.sort_unstable();
                folds
            })
            .collect();
        Self::from_class_assignments(&classes, &assignments, n_folds)
    }

    /// Returns one fold per sample.
    ///
    /// ```
    /// use onefold::Folds;
    ///
    /// let folds = Folds::leave_one_out(3)?;
    /// assert_eq!(folds.complement(1), (&[0][..], &[2][..]));
    /// # Ok::<(), onefold::Error>(())
    /// ```
    pub fn leave_one_out(n_samples: usize) -> Result<Self> {
        Self::contiguous(n_samples, n_samples)
    }

    /// Returns the folds given by `labels`: sample `i` is held out in fold `labels[i]`, one of
    /// `0..n_folds`.
    ///
    /// ```
    /// use ndarray::array;
    /// use onefold::Folds;
    ///
    /// let folds = Folds::from_labels(&array![1, 0, 1], 2)?;
    /// assert_eq!(folds.rows(1..2), [0, 2]);
    /// # Ok::<(), onefold::Error>(())
    /// ```
    pub fn from_labels<'a>(
        labels: impl Into<ArrayView1<'a, usize>>,
        n_folds: usize,
    ) -> Result<Self> {
        let labels = labels.into();
        let labels = as_slice(&labels);
        let mut sort = CountingSort::new(runs(&labels), labels.len(), n_folds)?;
        sort.push(&labels);
        Ok(sort.folds)
    }

    /// Assigns the i-th sample of class c to fold `assignments[c][i]`.
    pub(crate) fn from_class_assignments(
        classes: &[u32],
        assignments: &[impl AsRef<[u32]>],
        n_folds: usize,
    ) -> Result<Self> {
        let assignments = assignments.iter().map(AsRef::as_ref);
        let all = assignments.clone().flat_map(runs);
        let all = all.map(|(fold, length)| (fold as usize, length));
        let mut sort = CountingSort::new(all, classes.len(), n_folds)?;
        let mut next: Vec<_> = assignments.map(<[u32]>::iter).collect();
        // A block of labels at a time: allocating labels for all samples takes longer than the sort.
        let mut labels = Vec::with_capacity(BLOCK_SAMPLES);
        for classes in classes.chunks(BLOCK_SAMPLES) {
            labels.clear();
            for &class in classes {
                let Some(&fold) = next.get_mut(class as usize).and_then(Iterator::next) else {
                    return reject(format!("class {class} has more samples than assignments"));
                };
                labels.push(fold as usize);
            }
            sort.push(&labels);
        }
        Ok(sort.folds)
    }

    /// The same folds in the order `order`, a permutation of their numbers.
    pub(crate) fn permuted(&self, order: &[usize]) -> Self {
        let mut rows = Vec::with_capacity(self.rows.len());
        let mut starts = Vec::with_capacity(self.starts.len());
        starts.push(0);
        for &fold in order {
            rows.extend_from_slice(self.rows(fold..fold + 1));
            starts.push(rows.len());
        }
        Self { rows, starts }
    }

    /// The same folds with the rows of each in a random order, keyed by the fold.
    pub(crate) fn with_shuffled_rows(mut self, seed: u64) -> Self {
        for range in self.starts.windows(2) {
            let range = range[0]..range[1];
            SplitMix::keyed(seed, &range).shuffle(&mut self.rows[range.clone()]);
        }
        self
    }

    /// Number of folds.
    #[allow(clippy::len_without_is_empty)] // there are always at least two
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of samples.
    pub fn n_samples(&self) -> usize {
        self.rows.len()
    }

    /// The rows of a span of folds.
    pub fn rows(&self, span: Range<usize>) -> &[usize] {
        &self.rows[self.range(span)]
    }

    /// The positions of a span in fold order.
    pub fn range(&self, span: Range<usize>) -> Range<usize> {
        self.starts[span.start]..self.starts[span.end]
    }

    /// The first position of each fold in fold order, then the number of samples.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The rows that are not in `fold`, in fold order: those before it and those after it.
    pub fn complement(&self, fold: usize) -> (&[usize], &[usize]) {
        (self.rows(0..fold), self.rows(fold + 1..self.len()))
    }

    /// The fold of every sample: what [`Folds::from_labels`] takes.
    pub fn labels(&self) -> Array1<usize> {
        let mut labels = Array1::zeros(self.n_samples());
        for fold in 0..self.len() {
            for &row in self.rows(fold..fold + 1) {
                labels[row] = fold;
            }
        }
        labels
    }
}

/// Samples whose labels are assigned at a time.
const BLOCK_SAMPLES: usize = 1024;

/// Checks that there are from 2 to `n_samples` folds, and memory for them.
fn check_n_folds(n_samples: usize, n_folds: usize) -> Result<()> {
    memory::check_shape::<usize>(
        format_args!("folds of {n_samples} samples"),
        &[2, n_samples],
    )?;
    if n_folds < 2 || n_folds > n_samples {
        return reject(format!(
            "cannot split {n_samples} samples into {n_folds} folds"
        ));
    }
    Ok(())
}

/// The items of a view, copied if they are not contiguous.
fn as_slice<'a, T: Copy>(view: &'a ArrayView1<'_, T>) -> Cow<'a, [T]> {
    view.as_slice()
        .map_or_else(|| view.to_vec().into(), Cow::from)
}

/// Runs of equal labels, with their lengths. Counting whole runs is much faster where folds are
/// nearly contiguous: consecutive counts of one fold would depend on each other.
fn runs<T: Copy + PartialEq>(labels: &[T]) -> impl Iterator<Item = (T, usize)> {
    let runs = labels.chunk_by(|a, b| a == b);
    runs.map(|run| (run[0], run.len()))
}

/// A counting sort of samples by fold, stable within each fold.
struct CountingSort {
    folds: Folds,
    /// The position of the next sample of each fold.
    next: Vec<usize>,
    /// The next sample.
    row: usize,
}

impl CountingSort {
    /// Counts the labels of `n_samples` samples, given as runs in any order.
    fn new(
        runs: impl Iterator<Item = (usize, usize)>,
        n_samples: usize,
        n_folds: usize,
    ) -> Result<Self> {
        check_n_folds(n_samples, n_folds)?;
        let mut starts = vec![0; n_folds + 1];
        let mut row = 0;
        for (fold, length) in runs {
            if fold >= n_folds {
                return reject(format!("sample {row} has label {fold} of {n_folds} folds"));
            }
            starts[fold + 1] += length;
            row += length;
        }
        if row != n_samples {
            return reject(format!("{row} labels for {n_samples} samples"));
        }
        if let Some(empty) = starts[1..].iter().position(|&size| size == 0) {
            return reject(format!("fold {empty} is empty"));
        }
        for fold in 0..n_folds {
            starts[fold + 1] += starts[fold];
        }
        Ok(Self {
            next: starts.clone(),
            row: 0,
            folds: Folds {
                rows: vec![0; n_samples],
                starts,
            },
        })
    }

    /// Places the next samples into the folds given by their labels.
    fn push(&mut self, labels: &[usize]) {
        for (fold, length) in runs(labels) {
            let start = self.next[fold];
            self.next[fold] += length;
            let positions = &mut self.folds.rows[start..start + length];
            for (position, row) in positions.iter_mut().zip(self.row..) {
                *position = row;
            }
            self.row += length;
        }
    }
}

impl Resampling for Folds {
    fn n_samples(&self) -> usize {
        self.n_samples()
    }

    fn n_splits(&self) -> usize {
        self.len()
    }

    fn training(&self, split: usize) -> [&[usize]; 2] {
        self.complement(split).into()
    }

    fn held_out(&self, split: usize) -> &[usize] {
        self.rows(split..split + 1)
    }

    fn partition(&self) -> Option<&Folds> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::Splits;

    #[test]
    fn labels_come_back_from_any_view() {
        let labels = array![2, 0, 1, 0, 2, 2];
        let folds = Folds::from_labels(&labels, 3).expect("valid");
        assert_eq!(folds.labels(), labels);
        let table = array![[2, 9], [0, 9], [1, 9], [0, 9], [2, 9], [2, 9]];
        let strided = Folds::from_labels(table.column(0), 3).expect("valid");
        assert_eq!(strided, folds);
    }

    #[test]
    fn shuffled_folds_are_a_balanced_partition_in_increasing_order() {
        let folds = Folds::shuffled(23, 5, 0).expect("valid");
        assert_ne!(folds, Folds::contiguous(23, 5).expect("valid"));
        let sizes: Vec<_> = folds.starts.windows(2).map(|w| w[1] - w[0]).collect();
        assert_eq!(sizes, [5, 5, 5, 4, 4]);
        for fold in 0..5 {
            assert!(folds.rows(fold..fold + 1).is_sorted());
        }
        assert_eq!(
            Folds::from_labels(&folds.labels(), 5).expect("valid"),
            folds
        );
    }

    #[test]
    fn stratified_folds_are_those_of_scikit_learn() {
        let classes = array![2, 0, 1, 0, 2, 2, 1, 0, 1, 2, 2, 0, 1];
        let folds = Folds::stratified(&classes, 3).expect("valid");
        assert_eq!(
            folds.labels(),
            array![0, 0, 0, 1, 0, 1, 0, 2, 1, 1, 2, 2, 2]
        );
        // Class numbers need not be consecutive, and their order does not matter.
        let classes = array![u32::MAX, 3, u32::MAX, u32::MAX, 3, u32::MAX, 3];
        let folds = Folds::stratified(&classes, 3).expect("valid");
        assert_eq!(folds.labels(), array![0, 0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn each_class_has_its_own_assignments() {
        let assignments: [&[u32]; 3] = [&[1], &[2, 0, 0], &[1]];
        let folds = Folds::from_class_assignments(&[1, 0, 1, 2, 1], &assignments, 3);
        assert_eq!(folds.expect("valid").labels(), array![2, 1, 0, 1, 0]);
    }

    #[test]
    fn what_is_not_a_partition_is_refused() {
        let reason = |r: Result<Folds>| r.expect_err("refused").to_string();
        let assignments: [&[u32]; 2] = [&[0], &[1]];
        for class in [0, 2] {
            assert_eq!(
                reason(Folds::from_class_assignments(&[0, class], &assignments, 2)),
                format!("folds: class {class} has more samples than assignments")
            );
        }
        assert_eq!(
            reason(Folds::from_class_assignments(&[0, 1, 1], &assignments, 2)),
            "folds: 2 labels for 3 samples"
        );
        for folds in [
            Folds::contiguous(3, 4),
            Folds::shuffled(3, 4, 0),
            Folds::stratified(&[0, 0, 0], 4),
        ] {
            assert_eq!(reason(folds), "folds: cannot split 3 samples into 4 folds");
        }
        assert_eq!(
            reason(Folds::contiguous(3, 1)),
            "folds: cannot split 3 samples into 1 folds"
        );
        assert_eq!(
            reason(Folds::leave_one_out(1)),
            "folds: cannot split 1 samples into 1 folds"
        );
        assert_eq!(
            reason(Folds::stratified(&[0, 0, 1, 1], 3)),
            "folds: the largest class has 2 samples, fewer than the 3 folds"
        );
        assert_eq!(
            reason(Folds::from_labels(&[0, 2, 2], 3)),
            "folds: fold 1 is empty"
        );
        assert_eq!(
            reason(Folds::from_labels(&[0, 5], 2)),
            "folds: sample 1 has label 5 of 2 folds"
        );
        let split = Splits::new(3, vec![(vec![0], vec![3])]).expect_err("refused");
        assert_eq!(
            split.to_string(),
            "folds: the test set of split 0 names sample 3 of 3"
        );
        let split = Splits::new(3, vec![(vec![], vec![1])]).expect_err("refused");
        assert_eq!(
            split.to_string(),
            "folds: the train set of split 0 is empty"
        );
    }
}
