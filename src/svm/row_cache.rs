//! LIBSVM's cache: rows by index, of which the least recently used is evicted.

/// A cache of rows with keys in `0..n`. A row is whatever the owner stores: values, or their location.
#[derive(Debug)]
pub(super) struct RowCache<R> {
    capacity: usize,
    len: usize,
    rows: Vec<Option<R>>,
    /// The keys of cached rows as a circular list by time of use: the next and the previous key of each.
    /// Entry `n` is its head, between the most and the least recently used.
    next: Vec<usize>,
    previous: Vec<usize>,
}

impl<R> RowCache<R> {
    /// An empty cache for `capacity` rows, at least 1, of `n`.
    pub(super) fn new(n: usize, capacity: usize) -> Self {
        Self {
            capacity,
            len: 0,
            rows: (0..n).map(|_| None).collect(),
            next: vec![n; n + 1],
            previous: vec![n; n + 1],
        }
    }

    /// The row of a key, which becomes the most recently used.
    pub(super) fn get(&mut self, key: usize) -> Option<&R> {
        if self.rows[key].is_some() {
            self.unlink(key);
            self.link_newest(key);
        }
        self.rows[key].as_ref()
    }

    /// The row of a key; does not count as use.
    pub(super) fn peek(&self, key: usize) -> Option<&R> {
        self.rows[key].as_ref()
    }

    /// Removes the least recently used row if the cache is full.
    pub(super) fn evict_if_full(&mut self) -> Option<R> {
        let oldest = self.next[self.rows.len()];
        if self.len < self.capacity || oldest == self.rows.len() {
            return None;
        }
        self.unlink(oldest);
        self.len -= 1;
        self.rows[oldest].take()
    }

    /// Adds or replaces the row of a key as the most recently used.
    pub(super) fn insert(&mut self, key: usize, row: R) {
        if self.get(key).is_none() {
            self.evict_if_full();
            self.link_newest(key);
            self.len += 1;
        }
        self.rows[key] = Some(row);
    }

    fn unlink(&mut self, key: usize) {
        let (previous, next) = (self.previous[key], self.next[key]);
        self.next[previous] = next;
        self.previous[next] = previous;
    }

    fn link_newest(&mut self, key: usize) {
        let head = self.rows.len();
        let newest = self.previous[head];
        (self.next[newest], self.next[key]) = (key, head);
        (self.previous[head], self.previous[key]) = (key, newest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a list of keys by time of use.
    #[test]
    fn the_least_recently_used_row_is_evicted() {
        for capacity in [1, 2, 5] {
            let mut cache = RowCache::new(17, capacity);
            let mut keys: Vec<usize> = vec![];
            for step in 0..500_usize {
                let key = step * step % 17;
                assert_eq!(cache.peek(key).is_some(), keys.contains(&key));
                let is_hit = cache.get(key) == Some(&(10 * key));
                assert_eq!(is_hit, keys.contains(&key), "step {step}");
                keys.retain(|&other| other != key);
                if !is_hit {
                    let evicted = (keys.len() == capacity).then(|| keys.remove(0));
                    assert_eq!(cache.evict_if_full(), evicted.map(|old| 10 * old));
                    cache.insert(key, 10 * key);
                }
                keys.push(key);
                assert!(cache.len == keys.len() && cache.len <= capacity);
            }
        }
    }
}
