//! Orders: partitions and sorts by the digits of ranks.

/// Fewer values than this are sorted by comparisons.
const MIN_VALUE_SORT: usize = 512;

/// Sorting this many samples by insertion or comparisons is faster than by digits.
const MIN_RADIX_SORT: usize = 160;

/// Sorting more than this many samples by digits of eleven bits is faster than by digits of eight.
const MIN_LONG_SORT: usize = 1500;

/// Moves items of side 1 before those of side 0, both in their order, and returns how many there are.
pub(super) fn partition<T: Copy + Default>(
    items: &mut [T],
    buffer: &mut Vec<T>,
    side: impl Fn(&T) -> usize,
) -> usize {
    if buffer.len() < items.len() {
        buffer.resize(items.len(), T::default());
    }
    let (mut n_left, mut n_right) = (0, 0);
    for index in 0..items.len() {
        let item = items[index];
        let left = side(&item);
        items[n_left] = item;
        buffer[n_right] = item;
        n_left += left;
        n_right += 1 - left;
    }
    items[n_left..].copy_from_slice(&buffer[..n_right]);
    n_left
}

/// Sorts keys by rank, their upper half; the order of equal ranks does not matter.
pub(super) fn sort_keys(keys: &mut Vec<u64>, buffer: &mut Vec<u64>, n_ranks: usize) {
    if keys.len() < MIN_RADIX_SORT {
        keys.sort_unstable();
        return;
    }
    let bits = usize::BITS - (n_ranks.max(2) - 1).leading_zeros();
    let is_long = keys.len() > MIN_LONG_SORT;
    let n_passes = if bits <= 8 {
        1
    } else {
        bits.div_ceil(if is_long { 11 } else { 8 })
    };
    let digit_bits = bits.div_ceil(n_passes);
    #[allow(clippy::cast_possible_truncation)] // a digit
    let digit = |key: u64, shift: u32, mask: u64| (key >> shift & mask) as usize;
    for pass in 0..n_passes {
        let (shift, mask) = (32 + pass * digit_bits, (1 << digit_bits) - 1);
        radix_pass(keys, buffer, 1 << digit_bits, |key| digit(key, shift, mask));
    }
}

/// Sorts by the upper 32 bits; rows, in the lower half, stay in their order.
#[allow(clippy::cast_possible_truncation)] // eleven bits
pub(super) fn sort_by_upper_half(keys: &mut Vec<u64>, buffer: &mut Vec<u64>) {
    if keys.len() < MIN_VALUE_SORT {
        keys.sort_unstable();
        return;
    }
    for shift in [32, 43, 54] {
        radix_pass(keys, buffer, 2048, |key| (key >> shift) as usize & 0x7ff);
    }
}

/// One stable pass of a radix sort with at most 2048 digits, skipped if all keys have the same digit.
fn radix_pass<K: Copy + Default>(
    keys: &mut Vec<K>,
    buffer: &mut Vec<K>,
    n_digits: usize,
    digit: impl Fn(K) -> usize,
) {
    let mut ends = [0_u32; 2048];
    let ends = &mut ends[..n_digits];
    for &key in keys.iter() {
        ends[digit(key)] += 1;
    }
    if keys
        .first()
        .is_none_or(|&key| ends[digit(key)] as usize == keys.len())
    {
        return;
    }
    let mut start = 0;
    for end in ends.iter_mut() {
        (start, *end) = (start + *end, start);
    }
    buffer.resize(keys.len(), K::default());
    for &key in keys.iter() {
        let place = &mut ends[digit(key)];
        buffer[*place as usize] = key;
        *place += 1;
    }
    std::mem::swap(keys, buffer);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn radix_sort_is_stable() {
        let mut keys: Vec<u64> = (0..3000_u64)
            .map(|i| ((i * 7919 % 613) << 40) | i)
            .collect();
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        sort_by_upper_half(&mut keys, &mut vec![]);
        assert_eq!(keys, sorted);
    }
}
