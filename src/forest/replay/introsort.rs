//! The sort of scikit-learn's trees, with the order in which it leaves equal values.
//!
//! An introsort: quicksort with the median of three and three parts (below the pivot, equal, above), heap
//! sort below a depth, insertion sort of at most 15 values, which is stable and therefore replaced by
//! counts of smaller values, which need no branches.
//!
//! **Reference.** Musser, "Introspective sorting and selection algorithms" (1997).

/// Ranges of at most this many keys are sorted by insertion in scikit-learn.
const MAX_INSERTION: usize = 15;

/// Sorts keys by rank, their upper half. Ranks must be below 2²⁷.
pub(super) fn introsort(keys: &mut [u64]) {
    if keys.len() > 1 {
        introsort_to(keys, 2 * keys.len().ilog2());
    }
}

fn rank(key: u64) -> u64 {
    key >> 32
}

fn introsort_to(mut keys: &mut [u64], mut max_depth: u32) {
    while keys.len() > MAX_INSERTION {
        if max_depth == 0 {
            heap_sort(keys);
            return;
        }
        max_depth -= 1;
        let (n_below, n_above) = part(keys);
        let end = keys.len() - n_above;
        let (rest, above) = keys.split_at_mut(end);
        introsort_to(&mut rest[..n_below], max_depth);
        keys = above;
    }
    if keys.len() <= 8 {
        insert::<8>(keys);
    } else {
        insert::<16>(keys);
    }
}

/// Puts keys below the pivot first, and those above it last. Returns how many there are of both.
#[allow(clippy::comparison_chain)] // two jumps
fn part(keys: &mut [u64]) -> (usize, usize) {
    let n = keys.len();
    let pivot = median(rank(keys[0]), rank(keys[n / 2]), rank(keys[n - 1]));
    let (mut place, mut n_below, mut end) = (0, 0, n);
    while place < end {
        let next = rank(keys[place]);
        if next < pivot {
            keys.swap(place, n_below);
            place += 1;
            n_below += 1;
        } else if next > pivot {
            end -= 1;
            keys.swap(place, end);
        } else {
            place += 1;
        }
    }
    (n_below, n - end)
}

fn median(a: u64, b: u64, c: u64) -> u64 {
    a.min(b).max(a.max(b).min(c))
}

/// Stable sort of at most `N` keys.
#[inline(always)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap
)]
fn insert<const N: usize>(keys: &mut [u64]) {
    let (mut unsorted, mut ranks, mut n_smaller) = ([0; N], [i32::MAX; N], [0_i32; N]);
    for (place, &key) in keys.iter().enumerate() {
        unsorted[place] = key;
        ranks[place] = (rank(key) as i32) << 4 | place as i32;
    }
    for &one in &ranks[..keys.len()] {
        for (n, &other) in n_smaller.iter_mut().zip(&ranks) {
            *n += i32::from(one < other);
        }
    }
    for (&key, &place) in unsorted.iter().zip(&n_smaller).take(keys.len()) {
        keys[place as usize] = key;
    }
}

fn heap_sort(keys: &mut [u64]) {
    let n = keys.len();
    for root in (0..=(n - 2) / 2).rev() {
        sink(keys, root);
    }
    for end in (1..n).rev() {
        keys.swap(0, end);
        sink(&mut keys[..end], 0);
    }
}

/// Moves a key of a heap down to its place.
fn sink(heap: &mut [u64], mut root: usize) {
    loop {
        let mut largest = root;
        for child in [2 * root + 1, 2 * root + 2] {
            if child < heap.len() && rank(heap[largest]) < rank(heap[child]) {
                largest = child;
            }
        }
        if largest == root {
            return;
        }
        heap.swap(root, largest);
        root = largest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys of few ranks, in the order of their lower halves.
    fn keys(n: u64, n_ranks: u64) -> Vec<u64> {
        let rank = |i: u64| i * i * 7919 % n_ranks;
        (0..n).map(|i| rank(i) << 32 | i).collect()
    }

    #[test]
    fn ranks_are_sorted_and_few_keys_stay_in_their_order() {
        for n in (0..40).chain([100, 1000, 5000]) {
            for n_ranks in [1, 2, 7, 101, 5003] {
                let mut sorted = keys(n, n_ranks);
                introsort(&mut sorted);
                assert!(sorted.is_sorted_by_key(|&key| rank(key)));
                let mut all = sorted.clone();
                all.sort_unstable();
                let mut expected = keys(n, n_ranks);
                expected.sort_unstable();
                assert_eq!(all, expected);
                assert!(sorted.len() > MAX_INSERTION || sorted == expected);
            }
        }
    }

    #[test]
    fn heaps_are_sorted_too() {
        let mut heap = keys(500, 37);
        heap_sort(&mut heap);
        assert!(heap.is_sorted_by_key(|&key| rank(key)));
    }

    #[test]
    fn equal_values_are_left_as_scikit_learn_leaves_them() {
        // sklearn.utils._sorting._py_simultaneous_sort(values, indices, 20, use_three_way_partition=True)
        // of values [i * i * 7 % 5 for i in range(20)]
        let values = (0..20_u64).map(|i| i * i * 7 % 5);
        let mut sorted: Vec<u64> = (0..)
            .zip(values)
            .map(|(i, value)| value << 32 | i)
            .collect();
        introsort(&mut sorted);
        let rows: Vec<u64> = sorted.iter().map(|key| key & 0xffff_ffff).collect();
        let expected = [
            0, 15, 10, 5, 4, 6, 1, 19, 9, 16, 11, 14, 13, 2, 12, 17, 18, 3, 8, 7,
        ];
        assert_eq!(rows, expected);
    }
}
