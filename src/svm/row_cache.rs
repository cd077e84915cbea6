//! LIBSVM's cache: rows by index, of which the least recently used is evicted.

/// A cache of rows with keys in `0..n`. A row is whatever the owner stores: values, or their location.
#[derive(Debug)]
pub(super) struct RowCache<R> {
    capacity: usize,
    len: usize,
    rows: Vec<Option<R>>,
    /// The keys of cached rows as a circular list by time of use. Entry `n` is its head, between the
    /// most and the least recently used.
    links: Vec<Link>,
}

/// The keys used next and before; no kernel matrix has more rows than fit a u32.
#[derive(Clone, Copy, Debug)]
struct Link {
    next: u32,
    previous: u32,
}

impl<R> RowCache<R> {
    /// An empty cache for `capacity` rows, at least 1, of `n`.
    #[allow(clippy::cast_possible_truncation)] // see `Link`
    pub(super) fn new(n: usize, capacity: usize) -> Self {
        let (next, previous) = (n as u32, n as u32);
        Self {
            capacity,
            len: 0,
            rows: (0..n).map(|_| None).collect(),
            links: vec![Link { next, previous }; n + 1],
        }
    }

    /// The row of a key, which becomes the most recently used.
    pub(super) fn get(&mut self, key: usize) -> Option<&R> {
        if self.rows[key].is_some() && self.links[self.rows.len()].previous as usize != key {
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
        if self.len < self.capacity {
            return None;
        }
        let oldest = self.links[self.rows.len()].next as usize;
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
        let Link { next, previous } = self.links[key];
        self.links[previous as usize].next = next;
        self.links[next as usize].previous = previous;
    }

    #[allow(clippy::cast_possible_truncation)] // see `Link`
    fn link_newest(&mut self, key: usize) {
        let (head, key_link) = (self.rows.len(), key as u32);
        let newest = self.links[head].previous;
        self.links[newest as usize].next = key_link;
        self.links[head].previous = key_link;
        self.links[key] = Link {
            next: head as u32,
            previous: newest,
        };
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
